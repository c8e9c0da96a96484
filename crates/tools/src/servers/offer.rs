//! What servers have beside tools: things to read and words to say, as two tools that are there
//! when any server has such things.

use std::fmt::Write as _;

use locum_kernel::{Class, Errand, Output, ToolSpec};
use locum_mcp::{Called, Error, Known, Prompt, PromptText, Resource, Speaker};
use locum_runtime::schema::Description;
use serde_json::{Value, json};

use super::Inner;
use crate::text;

pub(super) const RESOURCES: &str = "mcp_resources";
pub(super) const PROMPT: &str = "mcp_prompt";

/// Rows of one list that are shown; more are counted.
const ROWS: usize = 200;

/// A server is somebody else's program, whatever it is asked for.
pub(super) fn specs(known: &[(String, Known)]) -> Vec<ToolSpec> {
    let spec = |name| ToolSpec::new(name, Class::Network, Some("server"));
    let resources = known.iter().any(|(_, it)| it.resources).then(|| spec(RESOURCES));
    let prompts = known.iter().any(|(_, it)| it.prompts).then(|| spec(PROMPT));
    resources.into_iter().chain(prompts).collect()
}

pub(super) fn describe(tool: &str) -> Option<Description> {
    let named = |about: &str| json!({ "type": "string", "description": about });
    match tool {
        RESOURCES => Some(Description {
            about: "Lists what MCP servers have to read, or reads one of it.".to_owned(),
            schema: json!({ "type": "object", "properties": {
                "server": named("one server; all of them if left out"),
                "uri": named("what to read, as listed; its server must be named too"),
            } }),
        }),
        PROMPT => Some(Description {
            about: "Gets a prompt that an MCP server has prepared.".to_owned(),
            schema: json!({ "type": "object", "required": ["server"], "properties": {
                "server": named("which server"),
                "name": named("which prompt; all are listed if left out"),
                "arguments": { "type": "object", "description": "texts by name" },
            } }),
        }),
        _ => None,
    }
}

pub(super) async fn run(inner: &Inner, errand: &Errand) -> Output {
    let arguments = &errand.arguments;
    let done = match (errand.tool.as_str(), text(arguments, "server")) {
        (RESOURCES, Some(server)) => match text(arguments, "uri") {
            Some(uri) => inner.all.read_resource(server, uri).await,
            None => listed(inner, server).await.map(said),
        },
        (RESOURCES, None) if text(arguments, "uri").is_some() => {
            return Output::error("say which server has it: {\"server\": …, \"uri\": …}");
        }
        (RESOURCES, None) => Ok(said(all(inner).await)),
        (_, Some(server)) => prompt(inner, server, arguments).await,
        (_, None) => return Output::error("\"server\" is missing: say which server has it"),
    };
    match done {
        Ok(called) => inner.shown(called).await,
        Err(error) => Output::error(error.to_string()),
    }
}

fn said(text: String) -> Called {
    Called { text, ..Called::default() }
}

async fn listed(inner: &Inner, server: &str) -> Result<String, Error> {
    let resources = inner.all.resources(server).await?;
    // Not every server that has the one knows the other.
    let templates = inner.all.resource_templates(server).await.unwrap_or_default();
    Ok(resource_rows(&resources, &templates))
}

/// One that fails does not hide what the others have.
async fn all(inner: &Inner) -> String {
    let mut text = String::new();
    for (server, _) in inner.known().into_iter().filter(|(_, known)| known.resources) {
        let rows = listed(inner, &server).await.unwrap_or_else(|error| error.to_string());
        let _ = writeln!(text, "{server}:\n{rows}");
    }
    text
}

async fn prompt(inner: &Inner, server: &str, arguments: &Value) -> Result<Called, Error> {
    let Some(name) = text(arguments, "name") else {
        return Ok(said(prompt_rows(&inner.all.prompts(server).await?)));
    };
    let given = arguments.get("arguments").cloned().unwrap_or(Value::Null);
    inner.all.prompt(server, name, given).await.map(told)
}

/// What is to be said, by whom.
pub(super) fn told(prompt: PromptText) -> Called {
    let mut all = Called { text: prompt.description.unwrap_or_default(), ..Called::default() };
    for message in prompt.messages {
        let by = match message.by {
            Speaker::User => "user",
            Speaker::Assistant => "assistant",
        };
        let gap = if all.text.is_empty() { "" } else { "\n\n" };
        let _ = write!(all.text, "{gap}{by}: {}", message.content.text);
        all.images.extend(message.content.images);
        all.resource_links.extend(message.content.resource_links);
        all.cut.extend(message.content.cut);
    }
    all
}

pub(super) fn resource_rows(resources: &[Resource], templates: &[Resource]) -> String {
    let row = |it: &Resource| {
        let kind = it.media_type.as_ref().map(|kind| format!(" ({kind})")).unwrap_or_default();
        let about = it.description.as_ref().or(it.title.as_ref()).unwrap_or(&it.name);
        format!("{}{kind}  {}", it.uri, about.lines().next().unwrap_or_default())
    };
    let templates = templates.iter().map(|it| format!("template {}", row(it)));
    rows(resources.iter().map(row).chain(templates).collect())
}

pub(super) fn prompt_rows(prompts: &[Prompt]) -> String {
    let row = |it: &Prompt| {
        let arguments = it.arguments.iter().map(|argument| {
            if argument.required { argument.name.clone() } else { format!("[{}]", argument.name) }
        });
        let arguments: Vec<String> = arguments.collect();
        let about = it.description.as_ref().or(it.title.as_ref()).map_or("", String::as_str);
        let about = about.lines().next().unwrap_or_default();
        format!("{} {{{}}}  {about}", it.name, arguments.join(", "))
    };
    rows(prompts.iter().map(row).collect())
}

fn rows(mut rows: Vec<String>) -> String {
    let more = rows.len().saturating_sub(ROWS);
    rows.truncate(ROWS);
    if more > 0 {
        rows.push(format!("and {more} more"));
    }
    if rows.is_empty() { "nothing".to_owned() } else { rows.join("\n") }
}
