//! What tools are to the driver: declared first, then run, one errand at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use locum_kernel::{AgentId, Errand, Kit, Output, Ready, Relay, ToolSpec};

use crate::live::Live;
use crate::provider::Task;

/// The tools of a session. Dropping a task ends the tool and whatever it started.
pub trait Toolbox: Debug + Send + Sync {
    /// What the kernel judges calls by. A box whose tools come and go says so with
    /// [`locum_kernel::Input::Retooled`].
    fn specs(&self) -> Vec<ToolSpec>;

    /// Runs one call. A tool that fails says so in its output; it is the model that decides. What
    /// it prints on the way goes to `live`.
    fn run(&self, errand: Errand, live: Live) -> Task<Output>;

    /// Whether this box runs a tool of this name.
    fn has(&self, tool: &str) -> bool {
        self.specs().iter().any(|spec| spec.name == tool)
    }

    /// What became of a question that a running call of this box has put with
    /// [`locum_kernel::Input::Wondered`].
    fn answered(&self, _relay: &Relay) {}

    /// Brings what an agent wants before its first turn, and says what came of it.
    /// After a crash it may be asked again for what is there already. Why it cannot be is what the
    /// agent ends with.
    fn prepare(&self, _agent: AgentId, _kit: Kit) -> Task<Result<Ready, String>> {
        Box::pin(async { Ok(Ready::default()) })
    }

    /// An agent has ended: what it left running ends with it.
    fn ended(&self, _agent: AgentId) {}
}

/// Several boxes as one; of two tools with one name the first is meant.
#[derive(Debug, Default)]
pub struct Tools {
    boxes: Vec<Box<dyn Toolbox>>,
    /// Which box has it; tools that came later are looked for.
    places: BTreeMap<String, usize>,
}

impl Tools {
    #[must_use]
    pub fn new(boxes: Vec<Box<dyn Toolbox>>) -> Tools {
        let mut places = BTreeMap::new();
        for (at, tools) in boxes.iter().enumerate() {
            for spec in tools.specs() {
                places.entry(spec.name).or_insert(at);
            }
        }
        Tools { boxes, places }
    }
}

impl Toolbox for Tools {
    fn specs(&self) -> Vec<ToolSpec> {
        let mut named = BTreeSet::new();
        let all = self.boxes.iter().flat_map(|tools| tools.specs());
        all.filter(|spec| named.insert(spec.name.clone())).collect()
    }

    fn run(&self, errand: Errand, live: Live) -> Task<Output> {
        let known = self.places.get(&errand.tool).and_then(|at| self.boxes.get(*at));
        let tools = known.or_else(|| self.boxes.iter().find(|tools| tools.has(&errand.tool)));
        if let Some(tools) = tools {
            return tools.run(errand, live);
        }
        let missing = format!("Tool not found: {}", errand.tool);
        Box::pin(async move { Output::error(missing) })
    }

    fn answered(&self, relay: &Relay) {
        for tools in &self.boxes {
            tools.answered(relay);
        }
    }

    fn prepare(&self, agent: AgentId, kit: Kit) -> Task<Result<Ready, String>> {
        let tasks = self.boxes.iter().map(|tools| tools.prepare(agent, kit.clone()));
        let tasks: Vec<_> = tasks.collect();
        Box::pin(async move {
            let mut all = Ready::default();
            let mut told: Vec<String> = Vec::new();
            for task in tasks {
                let ready = task.await?;
                all.tools.extend(ready.tools);
                told.extend(ready.told);
                all.copy = all.copy.or(ready.copy);
            }
            all.told = (!told.is_empty()).then(|| told.join("\n"));
            Ok(all)
        })
    }

    fn ended(&self, agent: AgentId) {
        for tools in &self.boxes {
            tools.ended(agent);
        }
    }
}
