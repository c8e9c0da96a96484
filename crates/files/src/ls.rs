//! `ls`: what is in one folder, everything, in order of names. Nothing is left out for git's sake.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{Dir, FileType, readlinkat};

use crate::args::Ls;
use crate::desk::{Answer, Desk};
use crate::error::{Error, shown};
use crate::meta::Facts;
use crate::spot::look;
use crate::walk::ENTRIES_MAX;

const ROWS: usize = 500;
const ROWS_MAX: usize = 2000;

impl Desk {
    pub fn ls(&self, args: &Ls) -> Result<Answer, Error> {
        let spot = self.roots.to_read(args.path.as_deref().unwrap_or("."))?;
        let spot = self.with_hint(spot)?;
        if let Some(facts) = spot.facts.filter(|facts| !facts.kind.is_dir()) {
            return Ok(Answer::text(row(&spot.root.say(&spot.path), &facts, None)));
        }
        let folder = spot.open_folder()?;
        let failed = |errno| Error::io(&spot.named, errno);
        let mut names = Vec::new();
        for entry in Dir::read_from(&folder).map_err(failed)?.take(ENTRIES_MAX) {
            let name = entry.map_err(failed)?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(name);
            }
        }
        names.sort_unstable();
        let count = names.len();
        let offset = args.offset.unwrap_or(0).min(count);
        names.drain(..offset);
        names.truncate(args.limit.unwrap_or(ROWS).clamp(1, ROWS_MAX));
        let next = offset + names.len();
        let rest = count - next;
        let mut rows = Vec::new();
        for name in names {
            let name = OsStr::from_bytes(&name);
            // Gone between listing and looking: then it is not here.
            let Ok(facts) = look(&folder, name) else { continue };
            let target = (facts.kind == FileType::Symlink)
                .then(|| readlinkat(&folder, name, Vec::new()).ok())
                .flatten();
            let target = target.map(|target| shown(&target.to_string_lossy()));
            rows.push(row(&shown(&name.to_string_lossy()), &facts, target));
        }
        if rest > 0 {
            rows.push(format!("[… and {rest} more: the next are at \"offset\": {next}]"));
        }
        if rows.is_empty() && count > 0 {
            rows.push(format!("[{count} entries are in {}; offset is past them]", spot.named));
        } else if rows.is_empty() {
            rows.push(format!("[{} is empty]", spot.named));
        }
        Ok(Answer::text(rows.join("\n")))
    }
}

fn row(name: &str, facts: &Facts, target: Option<String>) -> String {
    match (facts.special(), target) {
        (_, Some(target)) => format!("{name} -> {target}"),
        (Some(kind), None) => format!("{name}  {kind}"),
        (None, None) if facts.kind.is_dir() => format!("{name}/"),
        (None, None) => format!("{name}  {} bytes", facts.size),
    }
}
