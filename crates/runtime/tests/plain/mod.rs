//! The plainest session there is, for tests and examples to change what they are about.

use std::collections::BTreeMap;

use locum_kernel::{
    Audience, Config, Definition, Kind, Message, PolicyMode, To, TreeLimits, Urgency,
};

/// Main alone, without tools, with a scripted model.
pub(crate) fn config(session: &str) -> Config {
    Config {
        offers: Vec::new(),
        session: session.into(),
        workspace: String::new(),
        main: Definition::new("main", Kind::Main),
        model: "script:test.yaml".into(),
        audience: Audience::Present,
        mode: PolicyMode::Ask,
        rules: Vec::new(),
        limits: TreeLimits::default(),
        tools: Vec::new(),
        definitions: Vec::new(),
        models: BTreeMap::new(),
    }
}

/// Somebody says this to whoever has the floor.
pub(crate) fn message(text: &str) -> Message {
    Message {
        pictures: Vec::new(),
        channel: "cli".into(),
        sender: "me".into(),
        external_id: None,
        text: text.into(),
        urgency: Urgency::Queue,
        to: To::Floor,
        reply_to: None,
    }
}
