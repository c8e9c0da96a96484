//! The Anthropic Messages wire.

use locum_kernel::Usage;
use serde_json::{Value, json};

use super::events::{Event, Speech, arguments, named};
use super::talk::{Talk, content, list, text};

pub(super) fn read(body: &Value) -> Result<Talk, String> {
    let messages = list(body, "messages")?;
    let mut talk = Talk::new(body, messages)?;
    talk.system(content(body.get("system")));
    for message in messages {
        match text(message, "role") {
            "user" => user(&mut talk, message.get("content")),
            "assistant" => talk.replied(),
            "system" => talk.system(content(message.get("content"))),
            role => return Err(format!("`messages`: there is no role {role:?}.")),
        }
    }
    Ok(talk)
}

/// Results and words in the order in which they are there; words that follow each other are one.
fn user(talk: &mut Talk, said: Option<&Value>) {
    let Some(Value::Array(blocks)) = said else {
        talk.user(content(said));
        return;
    };
    let is_result = |block: &Value| text(block, "type").ends_with("tool_result");
    for run in blocks.chunk_by(|a, b| !is_result(a) && !is_result(b)) {
        match run {
            [result] if is_result(result) => talk.heard(content(result.get("content"))),
            words => talk.user(content(Some(&Value::Array(words.to_vec())))),
        }
    }
}

pub(super) fn whole(speech: &Speech) -> Value {
    let content: Vec<Value> = blocks(speech).into_iter().map(|block| block.whole).collect();
    let mut message = message(speech, usage(&speech.usage));
    message["content"] = content.into();
    message["stop_reason"] = stop_reason(speech).into();
    message
}

pub(super) fn stream(speech: &Speech) -> Vec<Event> {
    // What is said is counted at the end; the beginning knows of one token.
    let first = Usage { output: 1, reasoning: 0, ..speech.usage };
    let start = json!({"type": "message_start", "message": message(speech, usage(&first))});
    let mut events = vec![Event::frame(named("message_start", &start))];
    for (index, block) in blocks(speech).into_iter().enumerate() {
        let start =
            json!({"type": "content_block_start", "index": index, "content_block": block.empty});
        events.push(Event::frame(named("content_block_start", &start)));
        if index == 0 {
            events.push(Event::frame(named("ping", &json!({"type": "ping"}))));
        }
        events.extend(block.deltas.into_iter().map(|(is_said, delta)| {
            let delta = json!({"type": "content_block_delta", "index": index, "delta": delta});
            let text = named("content_block_delta", &delta);
            if is_said { Event::chunk(text) } else { Event::frame(text) }
        }));
        let stop = json!({"type": "content_block_stop", "index": index});
        events.push(Event::frame(named("content_block_stop", &stop)));
    }
    let delta = json!({"stop_reason": stop_reason(speech), "stop_sequence": null});
    let delta = json!({"type": "message_delta", "delta": delta, "usage": usage(&speech.usage)});
    events.push(Event::last(named("message_delta", &delta)));
    events.push(Event::last(named("message_stop", &json!({"type": "message_stop"}))));
    events
}

/// One block of content: as it begins, how it grows, and what it comes to.
struct Block {
    empty: Value,
    /// And whether it is part of what is said.
    deltas: Vec<(bool, Value)>,
    whole: Value,
}

fn blocks(speech: &Speech) -> Vec<Block> {
    let (words, tag) = (&speech.words, &speech.tag);
    let mut blocks = Vec::new();
    if !words.reasoning.is_empty() {
        let piece = |piece| (true, json!({"type": "thinking_delta", "thinking": piece}));
        let mut deltas: Vec<_> = speech.pieces(&words.reasoning).map(piece).collect();
        deltas.push((false, json!({"type": "signature_delta", "signature": tag})));
        let empty = json!({"type": "thinking", "thinking": "", "signature": ""});
        let whole = json!({"type": "thinking", "thinking": words.reasoning, "signature": tag});
        blocks.push(Block { empty, deltas, whole });
    }
    if !words.say.is_empty() {
        let piece = |piece| (true, json!({"type": "text_delta", "text": piece}));
        let deltas = speech.pieces(&words.say).map(piece).collect();
        let empty = json!({"type": "text", "text": ""});
        blocks.push(Block { empty, deltas, whole: json!({"type": "text", "text": words.say}) });
    }
    for (index, call) in words.calls.iter().enumerate() {
        let json_delta = |piece: &str| json!({"type": "input_json_delta", "partial_json": piece});
        // A call without arguments is an object that never grows.
        let none = call.arguments.as_object().is_some_and(serde_json::Map::is_empty);
        let input = if none { String::new() } else { arguments(call) };
        let mut deltas = vec![(false, json_delta(""))];
        deltas.extend(speech.pieces(&input).map(|piece| (true, json_delta(piece))));
        let block = |input: &Value| {
            let id = format!("toolu_{tag}_{index}");
            json!({"type": "tool_use", "id": id, "name": call.name, "input": input})
        };
        let nothing = json!({});
        // What is no object can only be streamed: clients of the whole expect an object.
        let whole = if call.arguments.is_object() { &call.arguments } else { &nothing };
        blocks.push(Block { empty: block(&nothing), deltas, whole: block(whole) });
    }
    blocks
}

fn message(speech: &Speech, usage: Value) -> Value {
    let mut message = json!({
        "id": format!("msg_{}", speech.tag),
        "type": "message",
        "role": "assistant",
        "model": speech.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
    });
    message["usage"] = usage;
    message
}

fn stop_reason(speech: &Speech) -> &'static str {
    if speech.words.calls.is_empty() { "end_turn" } else { "tool_use" }
}

/// Here what was cached is not part of the input.
fn usage(usage: &Usage) -> Value {
    let Usage { input, output, cached, cache_write, reasoning } = usage;
    let mut value = json!({
        "input_tokens": input.saturating_sub(*cached).saturating_sub(*cache_write),
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": cache_write,
        "output_tokens": output,
    });
    if *reasoning > 0 {
        value["output_tokens_details"] = json!({"thinking_tokens": reasoning});
    }
    value
}

pub(super) fn error(status: u16, message: &str) -> Value {
    let kind = match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": message}})
}
