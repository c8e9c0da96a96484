//! `locum sessions export`: a whole session as lines of JSON, to a file or standard output.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use locum_runtime::driver::retell;

use super::{Sight, context};
use crate::complaint::Complaint;
use crate::flags::Format;
use crate::print;
use crate::text;

pub(super) fn run(
    sight: &Sight,
    key: &str,
    format: Format,
    output: Option<&Path>,
) -> Result<(), Complaint> {
    let mut lines = match format {
        Format::Events => events(sight, key)?,
        Format::ContextJsonl => context::lines(sight, key)?,
    };
    lines.push('\n');
    let lines = lines.trim_start();
    let Some(file) = output else {
        // Whoever closed standard output does not want to read it.
        let _ = io::stdout().write_all(lines.as_bytes());
        return Ok(());
    };
    fs::write(file, lines).map_err(|error| unwritable(file, &error))?;
    print::note(&format!("{} lines in {}", lines.lines().count(), file.display()));
    Ok(())
}

fn events(sight: &Sight, key: &str) -> Result<String, Complaint> {
    sight.session(key)?;
    let all = sight.as_far(key, |records| {
        let mut all = Vec::new();
        retell(records, key, |_, _, lines| {
            let lines = lines.iter().filter_map(|line| serde_json::to_string(line).ok());
            all.extend(lines.map(text::spelled_out));
            true
        })?;
        Ok(all)
    })?;
    Ok(all.join("\n"))
}

pub(super) fn unwritable(path: &Path, error: &io::Error) -> Complaint {
    Complaint {
        code: "E124",
        what: format!("{} cannot be written.", path.display()),
        cause: error.to_string(),
        next: "name a place that can be written, then run again".into(),
        exit: 2,
    }
}
