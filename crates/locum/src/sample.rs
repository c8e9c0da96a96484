//! The session's model, asked one thing for a server that a person let ask.

use std::sync::{Arc, Weak};

use locum_kernel::{
    AgentId, Body, Bootstrap, Line, Note, Purpose, Request, Seq, Source, Spent, Tuning,
};
use locum_runtime::live::Live;
use locum_runtime::provider::{Asked, Provider, Task};
use locum_tools::{Sampled, Sampler};

/// What a script plays it as.
const NAME: &str = "sampling";

#[derive(Debug)]
pub(crate) struct Sample {
    /// The provider knows of the servers' tools: only one of the two may hold the other.
    pub(crate) provider: Weak<dyn Provider>,
    pub(crate) model: String,
}

impl Sampler for Sample {
    fn sample(&self, system: Option<String>, text: String) -> Task<Result<Sampled, String>> {
        let model = self.model.clone();
        let told = Body::Told(vec![Note::new(Source::Brief, text)]);
        let request = Request {
            agent: AgentId::MAIN,
            model: model.clone(),
            purpose: Purpose::Answer,
            bootstrap: Bootstrap::Minimal,
            instructions: system.unwrap_or_default(),
            catalogue: Vec::new(),
            tools: Vec::new(),
            lines: [Arc::new(Line { seq: Seq(0), body: told })].into_iter().collect(),
            output: None,
            tuning: Tuning::default(),
            now: None,
        };
        let asked = Asked {
            definition: NAME.into(),
            label: NAME.into(),
            replies: 0,
            failures: 0,
            tries: 0,
            request,
        };
        let provider = self.provider.upgrade();
        Box::pin(async move {
            let provider = provider.ok_or("the session is over")?;
            let answer = provider.answer(asked, Live::nobody());
            let reply = answer.await.map_err(|failure| failure.to_string())?;
            let spent = Spent { usage: reply.usage, micro_usd: reply.micro_usd };
            Ok(Sampled { model, text: reply.text, spent })
        })
    }
}
