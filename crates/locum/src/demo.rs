//! `locum demo`: a tour with a scripted model over the real engine, in the user's own folder. It
//! needs no key and no network, and changes nothing. With `--fast`, or where nobody can be asked,
//! it answers itself.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use crate::complaint::Complaint;
use crate::data::{Places, fresh_key};
use crate::flags::{Approvals, Bounds, Demo, Run};
use crate::print::note;
use crate::run;
use crate::tour::{FAST, MODEL};

/// One of the three workers has to wait for a slot, so that it is seen how that looks.
const SLOTS: u32 = 2;

pub(crate) fn demo(flags: &Demo, data: Option<&Path>) -> Result<u8, Complaint> {
    let itself = flags.fast || !io::stdin().is_terminal();
    let key = fresh_key("demo");
    let tour = Run {
        text: Some("Show me around.".into()),
        model: Some(if flags.fast { FAST } else { MODEL }.into()),
        session: Some(key.clone()),
        json: flags.json,
        approvals: Some(if itself { Approvals::Itself } else { Approvals::Ask }),
        bounds: Bounds { slots: Some(SLOTS), ..Bounds::default() },
        ..Run::default()
    };
    let code = run::run(&tour, &Places { data, config: None })?;
    note("");
    for (command, shows) in [
        (format!("locum agents -s {key} --tree"), "who was there, and what each one did"),
        (format!("locum replay {key}"), "every decision, one by one"),
        (format!("locum timeline {key}"), "who waited for what"),
        ("locum run --help".to_owned(), "with a model of your own"),
    ] {
        note(&format!("  {command:<50}  {shows}"));
    }
    Ok(code)
}
