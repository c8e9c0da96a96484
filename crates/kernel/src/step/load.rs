//! `load`: what a definition says, read without making anybody. Only other systems' models know
//! the tool, so a name that is no definition is still an agent whose result is wanted.

use alloc::string::{String, ToString};
use serde_json::{Map, Value};

use super::Step;
use crate::prompt::catalogue;
use crate::{AgentId, CallId, Made, Output, Wanted};

/// A definition is brought to be read as it is brought to be started.
pub(super) fn wanted(arguments: &Map<String, Value>) -> Option<Wanted> {
    let (name, parameters) = (source(arguments)?.into(), arguments.get("parameters").cloned());
    Some(Wanted { name, skill: false, parameters, message: String::new() })
}

/// The name a call wants to read.
fn source(arguments: &Map<String, Value>) -> Option<&str> {
    let named = ["source", "name"].into_iter().find_map(|key| arguments.get(key));
    named.and_then(Value::as_str).filter(|name| !name.trim().is_empty())
}

impl Step<'_> {
    pub(super) fn load(&self, id: AgentId, call: CallId, arguments: &Map<String, Value>) -> Output {
        let others = ["agent", "agent_id"].iter().any(|key| arguments.contains_key(*key));
        let Some(name) = source(arguments) else {
            if others || arguments.contains_key("source") {
                return self.result_of(id, arguments).unwrap_or_else(Output::error);
            }
            return Output::ok(catalogue(self.session, &self.session[id]).join("\n"));
        };
        let made = self.session[id].call(call).and_then(|call| call.made.clone());
        let found = match made {
            Some(Made::Of(digest)) => Ok(digest),
            Some(Made::Not(why)) => Err(why),
            None => self.find_definition(name),
        };
        match found {
            Ok(digest) => match self.session.world.definitions.get(&digest) {
                Some(definition) => Output::ok(definition.instructions.clone()),
                None => Output::error("no such definition"),
            },
            Err(why) => self.result_of(id, arguments).unwrap_or_else(|_| Output::error(why)),
        }
    }

    fn result_of(&self, id: AgentId, arguments: &Map<String, Value>) -> Result<Output, String> {
        self.get_agent(id, arguments).map(|row| Output::ok(row.to_string()))
    }
}
