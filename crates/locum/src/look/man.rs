//! `locum completions` and `locum man`: what the flags say, for shells and for readers.

use std::fs;
use std::io::{self, Write as _};

use clap::CommandFactory as _;

use crate::complaint::Complaint;
use crate::flags::{Completions, Flags, Man};
use crate::print;

pub(super) fn completions(flags: &Completions) {
    let mut script = Vec::new();
    clap_complete::generate(flags.shell, &mut Flags::command(), "locum", &mut script);
    // Whoever closed standard output does not want to read it.
    let _ = io::stdout().write_all(&script);
}

pub(super) fn pages(flags: &Man) -> Result<(), Complaint> {
    let written = fs::create_dir_all(&flags.dir)
        .and_then(|()| clap_mangen::generate_to(Flags::command(), &flags.dir));
    written.map_err(|error| super::export::unwritable(&flags.dir, &error))?;
    print::line(&format!("man -l {}", flags.dir.join("locum.1").display()));
    Ok(())
}
