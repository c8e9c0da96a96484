//! What tools are to the driver: declared first, then run, one errand at a time.

use std::collections::BTreeMap;
use std::fmt::Debug;

use locum_kernel::{AgentId, Errand, Output, ToolSpec};

use crate::live::Live;
use crate::provider::Task;

/// The tools of a session. Dropping a task ends the tool and whatever it started.
pub trait Toolbox: Debug + Send + Sync {
    /// What the kernel judges calls by. The same for as long as the session is open.
    fn specs(&self) -> Vec<ToolSpec>;

    /// Runs one call. A tool that fails says so in its output; it is the model that decides. What
    /// it prints on the way goes to `live`.
    fn run(&self, errand: Errand, live: Live) -> Task<Output>;

    /// An agent has ended: what it left running ends with it.
    fn ended(&self, _agent: AgentId) {}
}

/// Several boxes as one; of two tools with one name the first is meant.
#[derive(Debug, Default)]
pub struct Tools {
    boxes: Vec<Box<dyn Toolbox>>,
    specs: Vec<ToolSpec>,
    /// Which box has it.
    places: BTreeMap<String, usize>,
}

impl Tools {
    #[must_use]
    pub fn new(boxes: Vec<Box<dyn Toolbox>>) -> Tools {
        let (mut specs, mut places) = (Vec::new(), BTreeMap::new());
        for (at, tools) in boxes.iter().enumerate() {
            for spec in tools.specs() {
                if !places.contains_key(&spec.name) {
                    places.insert(spec.name.clone(), at);
                    specs.push(spec);
                }
            }
        }
        Tools { boxes, specs, places }
    }
}

impl Toolbox for Tools {
    fn specs(&self) -> Vec<ToolSpec> {
        self.specs.clone()
    }

    fn run(&self, errand: Errand, live: Live) -> Task<Output> {
        let tools = self.places.get(&errand.tool).and_then(|at| self.boxes.get(*at));
        if let Some(tools) = tools {
            return tools.run(errand, live);
        }
        let missing = format!("Tool not found: {}", errand.tool);
        Box::pin(async move { Output::error(missing) })
    }

    fn ended(&self, agent: AgentId) {
        for tools in &self.boxes {
            tools.ended(agent);
        }
    }
}
