//! Tools that only a script has: they say what the script says they say, take the time it says,
//! and change nothing but the file it names. For demos, and for tests that must see what ran.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use locum_kernel::{Class, Errand, Output, ToolSpec};
use serde_json::{Value, json};

use super::Script;
use crate::clock::Clock;
use crate::live::Live;
use crate::provider::Task;
use crate::rules::usual;
use crate::tool::Toolbox;

#[derive(Clone, Debug)]
pub(super) struct Prop {
    pub(super) class: Class,
    pub(super) idempotent: bool,
    /// Its output; `{{name}}` is the argument of that name.
    pub(super) says: String,
    /// The output is an error.
    pub(super) fails: bool,
    pub(super) takes_ms: u64,
    /// Every run adds a line to this file, when it begins.
    pub(super) log: Option<PathBuf>,
}

/// The tools of one script.
#[derive(Debug)]
pub struct Props {
    props: BTreeMap<String, Prop>,
    clock: Arc<dyn Clock>,
}

impl Props {
    #[must_use]
    pub fn new(script: &Script, clock: Arc<dyn Clock>) -> Props {
        Props { props: script.props.clone(), clock }
    }
}

impl Toolbox for Props {
    fn specs(&self) -> Vec<ToolSpec> {
        let spec = |(name, prop): (&String, &Prop)| ToolSpec {
            brought: false,
            caution: None,
            identity: None,
            name: name.clone(),
            class: prop.class,
            idempotent: prop.idempotent,
            // So that rules read its lines as they would those of a real one.
            subject: (prop.class == Class::Exec).then(|| "command".to_owned()),
            timeout_ms: None,
        };
        self.props.iter().map(spec).collect()
    }

    fn run(&self, errand: Errand, _live: Live) -> Task<Output> {
        let Some(prop) = self.props.get(&errand.tool).cloned() else {
            return Box::pin(async move { Output::error(format!("no {} here", errand.tool)) });
        };
        let clock = Arc::clone(&self.clock);
        Box::pin(async move {
            if let Some(file) = &prop.log
                && let Err(error) = log(file, &errand)
            {
                return Output::error(format!("{} cannot be written: {error}", file.display()));
            }
            if prop.takes_ms > 0 {
                clock.sleep_until(clock.now().plus_ms(prop.takes_ms)).await;
            }
            let text = said(&prop.says, &errand.arguments);
            if prop.fails { Output::error(text) } else { Output::ok(text) }
        })
    }
}

/// What the program itself has besides the usual tools.
const OTHERS: [(&str, Class); 5] = [
    ("process", Class::Exec),
    ("passthrough", Class::Exec),
    ("memory_save", Class::Write),
    ("memory_search", Class::Read),
    ("memory_get", Class::Read),
];

/// A tool of the script that stands for one of the program's is judged like that one: otherwise
/// a call that asks in earnest would run unasked in the rehearsal.
pub(super) fn stands_in(name: &str, class: Class) -> Result<(), String> {
    let other = || OTHERS.iter().find(|(known, _)| *known == name).map(|(_, class)| *class);
    match usual(name).map(|tool| tool.class).or_else(other) {
        Some(real) if real != class => {
            let (real, class) = (real.word(), class.word());
            Err(format!(
                "{name} is a tool of the program, of class {real}, and this one is of class \
                 {class}. Say `class: {real}`, or give it another name"
            ))
        }
        Some(_) | None => Ok(()),
    }
}

/// One line, in one write: lines of two processes never mix.
fn log(file: &PathBuf, errand: &Errand) -> std::io::Result<()> {
    let line = json!({ "tool": errand.tool, "arguments": errand.arguments });
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    file.write_all(format!("{line}\n").as_bytes())
}

fn said(template: &str, arguments: &Value) -> String {
    let mut text = template.to_owned();
    for (name, value) in arguments.as_object().into_iter().flatten() {
        let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text = text.replace(&format!("{{{{{name}}}}}"), &shown);
    }
    text
}
