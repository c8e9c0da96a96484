//! `locum undo`: takes back what an agent changed in files, where its definition had that kept.

use std::path::{Path, PathBuf};

use locum_tools::{Act, Past, Verdict, What, cut_commands};

use crate::address;
use crate::complaint::Complaint;
use crate::flags::Undo;
use crate::look::Sight;
use crate::print;
use crate::text;

/// Something stays as it is.
const LEFT: u8 = 1;

pub(crate) fn undo(flags: &Undo, data: Option<&Path>) -> Result<u8, Complaint> {
    let sight = Sight::open(data)?;
    let (key, session) = sight.find(flags.session.as_deref())?;
    let agent = address::agent(&session, &flags.agent)?;
    let past = Past::of(sight.folder(), &key, agent);
    let failed = |error| Complaint::undo(&agent.to_string(), &error);
    if flags.list {
        for row in past.rows().map_err(failed)? {
            if let Some(line) = shown(&row.what) {
                print::line(&format!("{} {line}", text::row(&row.call, 40)));
            }
        }
        return Ok(0);
    }
    let act = if flags.dry_run { Act::Say } else { Act::Do };
    let files = locum_tools::undo(&past, act).map_err(failed)?;
    let cut = cut_commands(&past).map_err(failed)?;
    if files.is_empty() && cut == 0 {
        print::line(&format!("{agent} has changed nothing that was kept"));
    }
    let mut exit = 0;
    for (path, verdict) in &files {
        print::line(&said(path, verdict));
        if matches!(verdict, Verdict::Left(_)) {
            exit = LEFT;
        }
    }
    if cut > 0 {
        print::line(&format!("{cut} of its commands were cut: what they changed is not known"));
        exit = LEFT;
    }
    if flags.dry_run {
        print::line("nothing was done: --dry-run");
    }
    Ok(exit)
}

fn name(path: &Path) -> String {
    text::row(&path.to_string_lossy(), 1_000)
}

fn said(path: &Path, verdict: &Verdict) -> String {
    let path = name(path);
    match verdict {
        Verdict::Restored => format!("restored  {path}"),
        Verdict::Removed => format!("removed   {path}"),
        Verdict::AsItWas => format!("as it was {path}"),
        Verdict::Left(why) => format!("left      {path}: {}", text::row(why, 300)),
    }
}

fn shown(what: &What) -> Option<String> {
    let row = |word: &str, path: &PathBuf| Some(format!("{word} {}", name(path)));
    match what {
        What::Changed { path, before: None, .. } => row("created", path),
        What::Changed { path, after: None, .. } => row("deleted", path),
        What::Changed { path, .. } => row("changed", path),
        // Followed by one of the above, or cut.
        What::About { .. } | What::Ran => None,
        What::Runs => Some("ran a command".into()),
    }
}
