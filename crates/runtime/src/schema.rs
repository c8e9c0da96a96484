//! What tools are to a model: a line about each and the shape of its arguments. One table for the
//! tools that are always there; toolboxes bring their own.

use std::fmt::Debug;

use serde_json::{Map, Value, json};

/// What a model is told of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    pub about: String,
    /// A JSON schema of its arguments.
    pub schema: Value,
}

impl Default for Description {
    /// Of a tool nobody knows anything about: any arguments may be right.
    fn default() -> Description {
        Description { about: String::new(), schema: json!({ "type": "object" }) }
    }
}

/// Who can say what tools are.
pub trait Describe: Debug + Send + Sync {
    /// None if it does not know the tool.
    fn describe(&self, name: &str) -> Option<Description>;
}

/// The tools of this table.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuiltIn;

impl Describe for BuiltIn {
    fn describe(&self, name: &str) -> Option<Description> {
        let (_, about, arguments) = TABLE.iter().find(|(known, ..)| *known == name)?;
        Some(Description { about: (*about).to_owned(), schema: object(arguments) })
    }
}

/// Several as one; the first who knows a tool is believed.
#[derive(Debug, Default)]
pub struct Described(pub Vec<Box<dyn Describe>>);

impl Describe for Described {
    fn describe(&self, name: &str) -> Option<Description> {
        self.0.iter().find_map(|it| it.describe(name))
    }
}

enum Shape {
    Text,
    Whole,
    Number,
    Flag,
    Texts,
    /// Anything with names.
    Open,
    OneOf(&'static [&'static str]),
    /// A list of these.
    List(&'static [Argument]),
}

use Shape::{Flag, List, Number, OneOf, Open, Text, Texts, Whole};

/// Its name, whether it must be there, its shape, and what it is for if the name does not say so.
type Argument = (&'static str, Need, Shape, &'static str);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Must,
    May,
}

use Need::{May, Must};

fn object(arguments: &[Argument]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, need, shape, about) in arguments {
        let mut schema = shape.schema();
        if !about.is_empty() {
            schema["description"] = json!(about);
        }
        properties.insert((*name).to_owned(), schema);
        if *need == Must {
            required.push(*name);
        }
    }
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

impl Shape {
    fn schema(&self) -> Value {
        match self {
            Text => json!({ "type": "string" }),
            Whole => json!({ "type": "integer" }),
            Number => json!({ "type": "number" }),
            Flag => json!({ "type": "boolean" }),
            Texts => json!({ "type": "array", "items": { "type": "string" } }),
            Open => json!({ "type": "object" }),
            OneOf(words) => json!({ "type": "string", "enum": words }),
            List(arguments) => json!({ "type": "array", "items": object(arguments) }),
        }
    }
}

const EDIT: &[Argument] = &[
    ("old", Must, Text, "text that is there, word for word"),
    ("new", Must, Text, "what takes its place"),
    ("all", May, Flag, "everywhere, not only where it is unique"),
];

const WHO: &str = "id, label or path of an agent";

const VALUES: &str = "values it asks for, by name";

const TABLE: &[(&str, &str, &[Argument])] = &[
    // Working with others; the kernel answers these.
    (
        "use_agent",
        "Let an agent talk with the user until it completes; you get its result.",
        &[
            ("agent", Must, Text, "name from the list of who can be called"),
            ("message", Must, Text, "its task, with everything it needs to know"),
            ("parameters", May, Open, VALUES),
            ("label", May, Text, "a short name for this one"),
        ],
    ),
    (
        "use_skill",
        "Let a specialist with a skill's instructions take over until it completes.",
        &[
            ("skill", Must, Text, "name from the list of who can be called"),
            ("message", Must, Text, "what is to be done"),
        ],
    ),
    (
        "spawn_agent",
        "Start an agent in the background and go on at once; its result comes as a message.",
        &[
            ("agent", Must, Text, "name from the list of who can be called"),
            ("message", Must, Text, "its task, with everything it needs to know"),
            ("parameters", May, Open, VALUES),
            ("label", May, Text, "a short name for this one"),
            ("model", May, Text, ""),
            ("budget_usd", May, Number, "the most it may spend"),
            ("after", May, Texts, "agents (id or label) that must be done before it starts"),
        ],
    ),
    (
        "call_recipe",
        "Run a recipe to its end, without the user; its last message is the result.",
        &[
            ("recipe", Must, Text, "name from the list of who can be called"),
            ("parameters", May, Open, VALUES),
            ("message", May, Text, ""),
        ],
    ),
    (
        "wait",
        "Wait for agents you started, until any or all of them are done, or the time is over.",
        &[
            ("mode", Must, OneOf(&["any", "all"]), ""),
            ("agents", May, Texts, "ids or labels; all of yours if left out"),
            ("timeout_s", May, Whole, ""),
        ],
    ),
    ("list_agents", "List the agents you started: state, why, what they need.", &[]),
    (
        "get_agent",
        "Look at one agent: state, latest words, result.",
        &[("agent_id", Must, Text, WHO)],
    ),
    (
        "agent_eval",
        "Send a message to an agent you started, let it continue, or inspect it.",
        &[
            ("agent_id", Must, Text, WHO),
            ("message", May, Text, ""),
            ("continue", May, Flag, ""),
            ("inspect", May, Flag, ""),
        ],
    ),
    (
        "agent_close",
        "Stop an agent you started, and everyone below it.",
        &[("agent_id", Must, Text, WHO), ("reason", May, Text, "")],
    ),
    (
        "complete",
        "Hand your result back to whoever gave you your task. This ends your work.",
        &[("result", Must, Text, "the whole result: nothing else you said is passed on")],
    ),
    (
        "ask_user",
        "Ask the user and wait for the answer.",
        &[("question", Must, Text, ""), ("options", May, Texts, "answers to choose from")],
    ),
    (
        "ask_parent",
        "Ask whoever gave you your task and wait for the answer.",
        &[("question", Must, Text, "")],
    ),
    // Working on things.
    (
        "read",
        "Read a file.",
        &[
            ("path", Must, Text, ""),
            ("offset", May, Whole, "first line, from 1"),
            ("limit", May, Whole, "how many lines"),
        ],
    ),
    (
        "write",
        "Write a whole file, in place of what is there.",
        &[("path", Must, Text, ""), ("content", Must, Text, "")],
    ),
    (
        "edit",
        "Change parts of a file.",
        &[("path", Must, Text, ""), ("edits", Must, List(EDIT), "made in this order")],
    ),
    (
        "ls",
        "List a folder.",
        &[
            ("path", May, Text, ""),
            ("offset", May, Whole, "names to pass over"),
            ("limit", May, Whole, ""),
        ],
    ),
    (
        "glob",
        "Find files by a pattern of their names, such as src/**/*.rs.",
        &[
            ("pattern", Must, Text, ""),
            ("path", May, Text, "folder to look in"),
            ("offset", May, Whole, "names to pass over"),
            ("limit", May, Whole, ""),
        ],
    ),
    (
        "grep",
        "Find lines in files by a regular expression.",
        &[
            ("pattern", Must, Text, ""),
            ("path", May, Text, "file or folder to look in"),
            ("glob", May, Text, "only files with such names"),
            ("limit", May, Whole, "most lines to return"),
            ("offset", May, Whole, "lines to pass over"),
            ("ignore_case", May, Flag, ""),
            ("literal", May, Flag, "no expression, but the text itself"),
            ("context", May, Whole, "lines around each"),
        ],
    ),
    (
        "exec",
        "Run a shell command.",
        &[
            ("command", Must, Text, ""),
            ("cwd", May, Text, "a folder of the workspace"),
            ("timeout_s", May, Whole, ""),
            ("background", May, Flag, "return at once; see process"),
            ("network", May, Flag, "only if it needs one: the user is asked"),
            ("tty", May, Flag, "in a terminal, for programs that want one"),
        ],
    ),
    (
        "process",
        "Look after commands in the background.",
        &[
            ("action", Must, OneOf(&["list", "log", "write", "wait", "kill"]), ""),
            ("id", May, Text, ""),
            ("input", May, Text, "what to write"),
            ("timeout_s", May, Whole, ""),
        ],
    ),
    (
        "web_fetch",
        "Fetch a page of the web as text.",
        &[
            ("url", Must, Text, ""),
            ("offset", May, Whole, "the character to begin at, for long pages"),
            ("limit", May, Whole, ""),
        ],
    ),
    (
        "memory_save",
        "Remember something beyond this conversation.",
        &[
            ("text", Must, Text, ""),
            ("scope", May, OneOf(&["user", "workspace", "agent"]), "who else may find it"),
        ],
    ),
    (
        "memory_search",
        "Search what was remembered.",
        &[("query", Must, Text, ""), ("limit", May, Whole, "")],
    ),
    ("memory_get", "Read one thing that was remembered.", &[("id", Must, Text, "")]),
    (
        "cron",
        "Do something at set times.",
        &[
            ("action", Must, OneOf(&["add", "list", "remove"]), ""),
            ("name", May, Text, ""),
            ("schedule", May, Text, "a cron expression"),
            ("text", May, Text, "what to do then"),
            ("tz", May, Text, ""),
        ],
    ),
    (
        "message",
        "Send a message to a channel.",
        &[("channel", Must, Text, ""), ("text", Must, Text, "")],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_become_schemas() {
        let wait = BuiltIn.describe("wait").unwrap();
        assert_eq!(
            wait.schema,
            json!({
                "type": "object",
                "properties": {
                    "mode": { "type": "string", "enum": ["any", "all"] },
                    "agents": {
                        "type": "array", "items": { "type": "string" },
                        "description": "ids or labels; all of yours if left out",
                    },
                    "timeout_s": { "type": "integer" },
                },
                "required": ["mode"],
            })
        );
        let edit = BuiltIn.describe("edit").unwrap().schema;
        assert_eq!(edit["properties"]["edits"]["items"]["required"], json!(["old", "new"]));
        assert_eq!(BuiltIn.describe("list_agents").unwrap().schema["properties"], json!({}));
        assert_eq!(BuiltIn.describe("server__tool"), None);
    }

    /// Whatever makes somebody from a definition takes what the definition asks for.
    #[test]
    fn values_can_be_given() {
        for tool in ["use_agent", "spawn_agent", "call_recipe"] {
            let schema = BuiltIn.describe(tool).unwrap().schema;
            let values = &schema["properties"]["parameters"];
            let expected =
                json!({ "type": "object", "description": "values it asks for, by name" });
            assert_eq!(*values, expected, "{tool}");
        }
    }

    #[test]
    fn no_tool_is_told_of_twice() {
        for (at, (name, about, _)) in TABLE.iter().enumerate() {
            assert!(TABLE[..at].iter().all(|(other, ..)| other != name), "{name}");
            assert!(about.ends_with('.'), "{name} is described in a sentence");
        }
    }
}
