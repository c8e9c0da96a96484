//! `locum queue`: the messages of a session that wait their turn.

use locum_kernel::{Waits, view};
use locum_runtime::clock::{Clock as _, System, rfc3339};
use serde_json::{Value, json};

use super::{Sight, show_json};
use crate::complaint::Complaint;
use crate::flags::Queue;
use crate::print;
use crate::text;

pub(super) fn list(flags: &Queue, sight: &Sight) -> Result<(), Complaint> {
    let (key, session) = sight.find(flags.session.as_deref())?;
    let waiting = view(&session, System.now()).queue;
    if flags.json {
        show_json(&waiting.iter().map(waits_json).collect::<Vec<_>>().into());
        return Ok(());
    }
    if waiting.is_empty() {
        print::line(&format!("nothing waits in {}", text::row(&key, 200)));
        return Ok(());
    }
    let head = ["#", "INPUT", "SINCE (UTC)", "FROM", "TEXT"];
    let rows = waiting.iter().map(|waits| {
        vec![
            waits.position.to_string(),
            waits.input.to_string(),
            text::moment(waits.at),
            text::row(&format!("{} ({})", waits.sender, waits.channel), 40),
            text::row(&waits.text, 100),
        ]
    });
    print::line(&text::table(&head, &rows.collect::<Vec<_>>()));
    Ok(())
}

pub(super) fn waits_json(waits: &Waits) -> Value {
    json!({
        "input": waits.input.to_string(),
        "position": waits.position,
        "channel": waits.channel,
        "from": waits.sender,
        "text": waits.text,
        "since": rfc3339(waits.at),
    })
}
