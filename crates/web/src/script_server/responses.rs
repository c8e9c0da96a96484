//! The `OpenAI` Responses wire.

use locum_kernel::Usage;
use serde_json::{Value, json};

use super::events::{CREATED, Event, Speech, arguments, named};
use super::talk::{Talk, content, text};

pub(super) fn read(body: &Value) -> Result<Talk, String> {
    if body.get("previous_response_id").is_some_and(|id| !id.is_null()) {
        return Err("`previous_response_id`: nothing is stored here; send the whole input.".into());
    }
    let items = match body.get("input") {
        Some(Value::String(text)) => &vec![json!({"role": "user", "content": text})],
        Some(Value::Array(items)) => items,
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            return Err("`input` is missing, or is neither text nor a list.".into());
        }
    };
    let mut talk = Talk::new(body, items)?;
    talk.system(content(body.get("instructions")));
    items.iter().try_for_each(|item| hear(&mut talk, item))?;
    Ok(talk)
}

fn hear(talk: &mut Talk, item: &Value) -> Result<(), String> {
    match (text(item, "type"), text(item, "role")) {
        ("" | "message", "user") => talk.user(content(item.get("content"))),
        ("" | "message", "assistant") => talk.replied(),
        ("" | "message", "system" | "developer") => talk.system(content(item.get("content"))),
        ("" | "message", role) => return Err(format!("`input`: there is no role {role:?}.")),
        (kind, _) if kind.ends_with("_output") => talk.heard(content(item.get("output"))),
        // Reasoning, calls, and whatever else a model can give.
        (_, _) => talk.replied(),
    }
    Ok(())
}

pub(super) fn whole(speech: &Speech) -> Value {
    let output = items(speech).into_iter().map(|item| item.whole).collect();
    response(speech, "completed", output, usage(&speech.usage))
}

pub(super) fn stream(speech: &Speech) -> Vec<Event> {
    let mut stream = Stream::default();
    let begun = json!({"response": response(speech, "in_progress", json!([]), Value::Null)});
    stream.frame("response.created", begun.clone());
    stream.frame("response.in_progress", begun);
    let mut output = Vec::new();
    for (index, item) in items(speech).into_iter().enumerate() {
        let added = json!({"output_index": index, "item": item.empty});
        stream.frame("response.output_item.added", added);
        let at = json!({"item_id": item.whole["id"], "output_index": index});
        match item.kind {
            Kind::Reasoning => reasoning(&mut stream, speech, &at),
            Kind::Message => message(&mut stream, speech, &at),
            Kind::Call(arguments) => call(&mut stream, speech, &at, &arguments),
        }
        let done = json!({"output_index": index, "item": item.whole});
        stream.frame("response.output_item.done", done);
        output.push(item.whole);
    }
    let done = response(speech, "completed", output.into(), usage(&speech.usage));
    let done = stream.event("response.completed", json!({"response": done}));
    stream.events.push(Event::last(done));
    stream.events
}

/// The events so far. Each carries its number.
#[derive(Default)]
struct Stream {
    events: Vec<Event>,
}

impl Stream {
    fn event(&self, name: &str, mut data: Value) -> String {
        data["type"] = name.into();
        data["sequence_number"] = self.events.len().into();
        named(name, &data)
    }

    fn frame(&mut self, name: &str, data: Value) {
        self.events.push(Event::frame(self.event(name, data)));
    }

    fn chunks(&mut self, name: &str, speech: &Speech, text: &str, at: &Value) {
        for piece in speech.pieces(text) {
            let data = with(at, json!({"delta": piece}));
            self.events.push(Event::chunk(self.event(name, data)));
        }
    }
}

/// The fields of both.
fn with(at: &Value, mut more: Value) -> Value {
    for (name, value) in at.as_object().into_iter().flatten() {
        more[name] = value.clone();
    }
    more
}

fn reasoning(stream: &mut Stream, speech: &Speech, at: &Value) {
    let text = &speech.words.reasoning;
    let at = with(at, json!({"summary_index": 0}));
    let part = |text: &str| with(&at, json!({"part": {"type": "summary_text", "text": text}}));
    stream.frame("response.reasoning_summary_part.added", part(""));
    stream.chunks("response.reasoning_summary_text.delta", speech, text, &at);
    stream.frame("response.reasoning_summary_text.done", with(&at, json!({"text": text})));
    stream.frame("response.reasoning_summary_part.done", part(text));
}

fn message(stream: &mut Stream, speech: &Speech, at: &Value) {
    let text = &speech.words.say;
    let at = with(at, json!({"content_index": 0}));
    let said = with(&at, json!({"logprobs": []}));
    stream.frame("response.content_part.added", with(&at, json!({"part": output_text("")})));
    stream.chunks("response.output_text.delta", speech, text, &said);
    stream.frame("response.output_text.done", with(&said, json!({"text": text})));
    stream.frame("response.content_part.done", with(&at, json!({"part": output_text(text)})));
}

fn call(stream: &mut Stream, speech: &Speech, at: &Value, arguments: &str) {
    stream.chunks("response.function_call_arguments.delta", speech, arguments, at);
    let done = with(at, json!({"arguments": arguments}));
    stream.frame("response.function_call_arguments.done", done);
}

/// One item of the output: as it begins, and what it comes to.
struct Item {
    kind: Kind,
    empty: Value,
    whole: Value,
}

enum Kind {
    Reasoning,
    Message,
    Call(String),
}

fn items(speech: &Speech) -> Vec<Item> {
    let (words, tag) = (&speech.words, &speech.tag);
    let mut items = Vec::new();
    if !words.reasoning.is_empty() {
        let item = json!({"type": "reasoning", "id": format!("rs_{tag}")});
        let summary = json!([{"type": "summary_text", "text": words.reasoning}]);
        items.push(Item {
            kind: Kind::Reasoning,
            empty: with(&item, json!({"summary": []})),
            whole: with(&item, json!({"summary": summary, "encrypted_content": tag})),
        });
    }
    // Who has nothing to say and nothing to do says just that.
    if !words.say.is_empty() || words.calls.is_empty() {
        let item = json!({"type": "message", "id": format!("msg_{tag}"), "role": "assistant"});
        let content = json!([output_text(&words.say)]);
        items.push(Item {
            kind: Kind::Message,
            empty: with(&item, json!({"status": "in_progress", "content": []})),
            whole: with(&item, json!({"status": "completed", "content": content})),
        });
    }
    for (index, call) in words.calls.iter().enumerate() {
        let arguments = arguments(call);
        let item = json!({
            "type": "function_call", "id": format!("fc_{tag}_{index}"),
            "call_id": format!("call_{tag}_{index}"), "name": call.name,
        });
        items.push(Item {
            empty: with(&item, json!({"status": "in_progress", "arguments": ""})),
            whole: with(&item, json!({"status": "completed", "arguments": arguments})),
            kind: Kind::Call(arguments),
        });
    }
    items
}

fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn response(speech: &Speech, status: &str, output: Value, usage: Value) -> Value {
    let mut response = json!({
        "id": format!("resp_{}", speech.tag),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "model": speech.model,
        "error": null,
        "incomplete_details": null,
        "instructions": null,
        "metadata": {},
        "parallel_tool_calls": true,
        "previous_response_id": null,
        "temperature": null,
        "tool_choice": "auto",
        "tools": [],
        "top_p": null,
    });
    response["output"] = output;
    response["usage"] = usage;
    response
}

fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": {
            "cached_tokens": usage.cached, "cache_write_tokens": usage.cache_write,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total(),
    })
}
