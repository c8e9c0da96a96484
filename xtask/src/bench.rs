//! `cargo xtask bench [kernel|journal|engine]`: how fast it is, always beside a floor measured in
//! the same run. Absolute times say more about the machine than about us.

mod engine;
mod idle;
mod table;

use std::process::ExitCode;

use anyhow::Result;

use crate::run;

pub(crate) fn main(what: Option<&str>) -> Result<ExitCode> {
    let root = run::root()?;
    let all = what.is_none();
    for (name, package) in [("kernel", "locum-kernel"), ("journal", "locum-journal")] {
        if all || what == Some(name) {
            let status = run::cargo(&root).args(["bench", "-p", package]).status()?;
            if !status.success() {
                return Ok(run::code(status));
            }
        }
    }
    if all || what == Some("engine") {
        return engine::main(&root);
    }
    Ok(ExitCode::SUCCESS)
}
