//! The `OpenAI` Chat Completions wire.

use locum_kernel::{Usage, Use};
use serde_json::{Value, json};

use super::events::{CREATED, Event, Speech, arguments};
use super::talk::{Talk, content, list, text};

pub(super) fn read(body: &Value) -> Result<Talk, String> {
    let messages = list(body, "messages")?;
    let mut talk = Talk::new(body, messages)?;
    let usage = body.pointer("/stream_options/include_usage");
    talk.stream_usage = usage.and_then(Value::as_bool).unwrap_or(false);
    for message in messages {
        let said = || content(message.get("content"));
        match text(message, "role") {
            "user" => talk.user(said()),
            "assistant" => talk.replied(),
            "tool" | "function" => talk.heard(said()),
            "system" | "developer" => talk.system(said()),
            role => return Err(format!("`messages`: there is no role {role:?}.")),
        }
    }
    Ok(talk)
}

pub(super) fn whole(speech: &Speech) -> Value {
    let words = &speech.words;
    let silent = words.say.is_empty() && !words.calls.is_empty();
    let say = if silent { Value::Null } else { words.say.as_str().into() };
    let mut message = json!({"role": "assistant", "content": say, "refusal": null});
    if !words.reasoning.is_empty() {
        message["reasoning_content"] = words.reasoning.as_str().into();
    }
    if !words.calls.is_empty() {
        let call = |(index, call)| tool_call(speech, index, call, &arguments(call));
        message["tool_calls"] = words.calls.iter().enumerate().map(call).collect();
    }
    let choice = json!({
        "index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(speech),
    });
    let mut whole = envelope(speech, "chat.completion", json!([choice]));
    whole["usage"] = usage(&speech.usage);
    whole
}

pub(super) fn stream(speech: &Speech, tells_usage: bool) -> Vec<Event> {
    let chunk = |choices: Value, usage: Value| {
        let mut chunk = envelope(speech, "chat.completion.chunk", choices);
        if tells_usage {
            chunk["usage"] = usage;
        }
        format!("data: {chunk}\n\n")
    };
    let delta = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
        chunk(json!([choice]), Value::Null)
    };
    let said = |name: &str, piece: &str| Event::chunk(delta(json!({ name: piece }), Value::Null));

    let words = &speech.words;
    let first = json!({"role": "assistant", "content": "", "refusal": null});
    let mut events = vec![Event::frame(delta(first, Value::Null))];
    events.extend(speech.pieces(&words.reasoning).map(|it| said("reasoning_content", it)));
    events.extend(speech.pieces(&words.say).map(|piece| said("content", piece)));
    for (index, call) in words.calls.iter().enumerate() {
        let mut begun = tool_call(speech, index, call, "");
        begun["index"] = index.into();
        events.push(Event::frame(delta(json!({"tool_calls": [begun]}), Value::Null)));
        events.extend(speech.pieces(&arguments(call)).map(|piece| {
            let call = json!({"index": index, "function": {"arguments": piece}});
            Event::chunk(delta(json!({"tool_calls": [call]}), Value::Null))
        }));
    }
    events.push(Event::last(delta(json!({}), finish_reason(speech).into())));
    if tells_usage {
        events.push(Event::last(chunk(json!([]), usage(&speech.usage))));
    }
    events.push(Event::last("data: [DONE]\n\n".to_owned()));
    events
}

fn envelope(speech: &Speech, object: &str, choices: Value) -> Value {
    let mut envelope = json!({
        "id": format!("chatcmpl-{}", speech.tag),
        "object": object,
        "created": CREATED,
        "model": speech.model,
        "system_fingerprint": null,
    });
    envelope["choices"] = choices;
    envelope
}

fn tool_call(speech: &Speech, index: usize, call: &Use, arguments: &str) -> Value {
    let id = format!("call_{}_{index}", speech.tag);
    json!({"id": id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
}

fn finish_reason(speech: &Speech) -> &'static str {
    if speech.words.calls.is_empty() { "stop" } else { "tool_calls" }
}

fn usage(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.total(),
        "prompt_tokens_details": {
            "cached_tokens": usage.cached, "cache_write_tokens": usage.cache_write,
        },
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    })
}

/// For both wires of this provider.
pub(super) fn error(status: u16, message: &str) -> Value {
    let (kind, code) = match status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        402 => ("insufficient_quota", Some("insufficient_quota")),
        404 => ("invalid_request_error", Some("model_not_found")),
        429 => ("requests", Some("rate_limit_exceeded")),
        500.. => ("server_error", None),
        _ => ("invalid_request_error", None),
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}
