//! What is told of a damaged session: what is missing of it, and the ways on.

use std::path::Path;

use locum_journal::{Loss, Sqlite};
use locum_kernel::Seq;

use crate::complaint::set_aside;
use crate::look::sessions::is_aside;
use crate::text::{quote, row};

/// One line: what of it cannot be read, and why.
pub(crate) fn told(session: &str, loss: &Loss) -> String {
    let Loss { last, entries, reached, why } = loss;
    let missing = match entries {
        Some(1) => format!("1 entry after {last} cannot be read"),
        Some(count) if *count > 0 => format!("{count} entries after {last} cannot be read"),
        Some(_) | None if reached > last => {
            format!("what came after {last}, up to {reached}, cannot be read")
        }
        Some(_) => format!("all up to {last} can be read"),
        None => format!("what came after {last} cannot be read"),
    };
    format!("session {} is damaged: {missing} ({})", row(session, 200), row(why, 300))
}

/// What can be done about it. The past before the damage can be gone on with under another name;
/// whoever wants the name itself moves what is damaged out of its way.
pub(crate) fn ways(journal: &Path, session: &str) -> String {
    let loss = Sqlite::look(journal).and_then(|records| records.loss(session));
    let last = loss.ok().flatten().map_or(Seq(0), |loss| loss.last);
    let name = quote(session);
    let fork = (last > Seq(0)).then(|| format!("locum fork {name} --at {}", last.0));
    let aside = match (is_aside(session), &fork) {
        (false, _) => Some(set_aside(session)),
        (true, Some(_)) => None,
        (true, None) => Some(format!("locum sessions rm {name}, when nobody wants it")),
    };
    fork.into_iter().chain(aside).collect::<Vec<_>>().join("\ndo: ")
}
