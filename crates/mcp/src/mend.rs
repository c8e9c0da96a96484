//! Lists of tools in which one is malformed. The SDK takes a list whole or not at all; here the
//! good ones are taken, and what was left out is told in a note that rides along.

use rmcp::model::{JsonRpcMessage, ServerJsonRpcMessage, ServerResult, Tool};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::limits;
use crate::logs::clip;

/// Where the note is. A server that writes one itself only tells of itself.
const LEFT_OUT: &str = "locum/leftOut";

/// A message as it came.
pub(crate) fn message(bytes: &[u8]) -> serde_json::Result<ServerJsonRpcMessage> {
    let message = serde_json::from_slice(bytes)?;
    Ok(match mended(bytes, &message) {
        Some(mended) => serde_json::from_value(mended).unwrap_or(message),
        None => message,
    })
}

/// The same for the data of an event, of which others make a message.
pub(crate) fn text(text: String) -> String {
    if !is_suspect(text.as_bytes()) {
        return text;
    }
    let message = serde_json::from_str(&text).ok();
    let mended = message.and_then(|message| mended(text.as_bytes(), &message));
    mended.map_or(text, |mended| mended.to_string())
}

/// Parsing twice is for those few that need it.
fn is_suspect(bytes: &[u8]) -> bool {
    const KEY: &[u8] = b"\"tools\"";
    bytes.windows(KEY.len()).any(|part| part == KEY)
}

fn mended(bytes: &[u8], message: &ServerJsonRpcMessage) -> Option<Value> {
    let JsonRpcMessage::Response(response) = message else { return None };
    let is_list = matches!(response.result, ServerResult::ListToolsResult(_));
    if is_list || !is_suspect(bytes) {
        return None;
    }
    let mut value: Value = serde_json::from_slice(bytes).ok()?;
    let result = value.get_mut("result")?.as_object_mut()?;
    // What a call returns has content.
    if result.contains_key("content") {
        return None;
    }
    let mut left_out: Vec<String> = Vec::new();
    result.get_mut("tools")?.as_array_mut()?.retain(|tool| match Tool::deserialize(tool) {
        Ok(_) => true,
        Err(error) => {
            if left_out.len() < limits::PARTS {
                left_out.push(complaint(tool, &error));
            }
            false
        }
    });
    if left_out.is_empty() {
        return None;
    }
    result.insert("_meta".to_owned(), json!({ LEFT_OUT: left_out }));
    Some(value)
}

fn complaint(tool: &Value, error: &serde_json::Error) -> String {
    let why = clip(&error.to_string(), 200);
    match tool.get("name").and_then(Value::as_str) {
        Some(name) => format!("tool `{}`: {why}", clip(name, 80)),
        None => format!("a tool without a name: {why}"),
    }
}

/// What was left out of a page.
pub(crate) fn left_out(meta: Option<&rmcp::model::MetaObject>) -> Vec<String> {
    let noted = meta.and_then(|meta| meta.get(LEFT_OUT)).and_then(Value::as_array);
    let noted = noted.into_iter().flatten().filter_map(Value::as_str);
    noted.take(limits::PARTS).map(|line| clip(line, 400)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_tools_stay() {
        let good = json!({ "name": "a", "inputSchema": { "type": "object" } });
        let cases = [
            (json!([good]), 1, &[] as &[&str]),
            (json!([good, { "name": "b" }]), 1, &["tool `b`: missing field `inputSchema`"]),
            (json!([{ "name": "b", "inputSchema": "x" }]), 0, &["tool `b`: "]),
            (json!([7, good, { "inputSchema": {} }]), 1, &["a tool without", "a tool without"]),
        ];
        for kind in [json!({}), json!({ "resultType": "complete" })] {
            for (tools, count, told) in &cases {
                let mut result = kind.clone();
                result["tools"] = tools.clone();
                let whole = json!({ "jsonrpc": "2.0", "id": 1, "result": result }).to_string();
                let read = [message(whole.as_bytes()), serde_json::from_str(&text(whole.clone()))];
                for read in read {
                    let Ok(JsonRpcMessage::Response(it)) = read else { panic!("{whole}") };
                    let ServerResult::ListToolsResult(page) = it.result else { panic!("{whole}") };
                    let lines = left_out(page.meta.as_ref());
                    assert_eq!((page.tools.len(), lines.len()), (*count, told.len()), "{lines:?}");
                    for (line, words) in lines.iter().zip(*told) {
                        assert!(line.starts_with(words), "{line}");
                    }
                }
            }
        }
    }

    #[test]
    fn nothing_else_is_touched() {
        let cases = [
            json!({ "jsonrpc": "2.0", "id": 1, "result": { "content": [], "tools": [7] } }),
            json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": "x" } }),
            json!({ "jsonrpc": "2.0", "method": "x", "params": { "tools": [7] } }),
        ];
        for case in cases {
            assert_eq!(text(case.to_string()), case.to_string());
        }
    }
}
