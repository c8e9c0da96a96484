//! The one composition root: flags are read and rooms are wired here, and only here.

#![expect(clippy::print_stdout, reason = "the command line speaks through standard output")]

fn main() {
    println!("locum {}", env!("CARGO_PKG_VERSION"));
}
