//! The wire against streams and servers that behave, and more that do not.

mod chat_fashion;
mod chat_http;
mod chat_request;
mod chat_stream;
mod gemini_request;
mod gemini_stream;
mod http;
mod ollama_request;
mod ollama_stream;
mod pictures;
mod request;
mod responses_odd;
mod responses_request;
mod responses_stream;
mod speed;
mod stream;
mod tuning_request;

use std::sync::Arc;

use locum_kernel::{AgentId, Body, Bootstrap, Line, Note, Purpose, Request, Seq, Source};

use crate::provider::Asked;
use crate::wire::{Key, Settings};

fn settings() -> Settings {
    Settings { max_tokens: 1_000, ..Settings::new("http://127.0.0.1:9", Key::new("")) }
}

fn asked(lines: Vec<Arc<Line>>) -> Asked {
    Asked {
        definition: "main".into(),
        label: "main".into(),
        replies: 0,
        failures: 0,
        tries: 0,
        request: Request {
            tuning: locum_kernel::Tuning::default(),
            output: None,
            agent: AgentId::MAIN,
            model: "anthropic/some-model".into(),
            purpose: Purpose::Answer,
            bootstrap: Bootstrap::Full,
            instructions: "Be brief.".into(),
            catalogue: Vec::new(),
            tools: Vec::new(),
            lines: lines.into_iter().collect(),
            now: None,
        },
    }
}

/// A question for any model, for tests elsewhere.
pub(crate) fn asked_for(model: &str) -> Asked {
    let mut asked = asked(vec![person(1, "Hello")]);
    asked.request.model = model.into();
    asked
}

fn line(seq: u64, body: Body) -> Arc<Line> {
    Arc::new(Line { seq: Seq(seq), body })
}

fn person(seq: u64, text: &str) -> Arc<Line> {
    let source = Source::Person { channel: "cli".into(), sender: "me".into() };
    line(seq, Body::Told(vec![Note::new(source, text.into())]))
}
