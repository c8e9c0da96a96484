//! What the measured sessions are made of: a person and a model who take turns for ever.

use std::collections::BTreeMap;

use locum_kernel::{
    Audience, Config, Definition, Entry, Input, Kind, Message, PolicyMode, Reply, Seq, Session,
    Time, To, TreeLimits, Urgency, VERSION, owed, step,
};

pub(crate) fn talk(count: usize) -> Vec<Entry> {
    let mut session = Session::new();
    let mut entries = Vec::new();
    let mut say = |session: &mut Session, input: Input| {
        let seq = Seq(session.seq().0 + 1);
        let at = Time(1_000_000 + seq.0 * 2_000);
        let events = step(session, at, input).unwrap();
        entries.push(Entry { v: VERSION, seq, at, events });
        entries.len()
    };
    say(&mut session, Input::Configured(Box::new(config())));
    loop {
        say(&mut session, Input::Said(message()));
        let key = owed(&session)[0].key();
        let reply =
            Reply { text: "It is so, and for these reasons. ".repeat(4), ..Reply::default() };
        if say(&mut session, Input::Replied { key, reply }) >= count {
            return entries;
        }
    }
}

fn config() -> Config {
    Config {
        offers: Vec::new(),
        session: "main".into(),
        workspace: String::new(),
        main: Definition::new("main", Kind::Main),
        model: "bench".into(),
        audience: Audience::Absent,
        mode: PolicyMode::Ask,
        rules: Vec::new(),
        limits: TreeLimits::default(),
        tools: Vec::new(),
        definitions: Vec::new(),
        models: BTreeMap::new(),
    }
}

fn message() -> Message {
    Message {
        pictures: Vec::new(),
        channel: "bench".into(),
        sender: "me".into(),
        external_id: None,
        text: "And what of this?".into(),
        urgency: Urgency::Queue,
        to: To::Floor,
        reply_to: None,
    }
}
