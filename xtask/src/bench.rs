//! `cargo xtask bench`: how long one decision of the kernel takes.

use std::process::ExitCode;

use anyhow::Result;

use crate::run;

pub(crate) fn main() -> Result<ExitCode> {
    let status = run::cargo(&run::root()?).args(["bench", "-p", "locum-kernel"]).status()?;
    Ok(run::code(status))
}
