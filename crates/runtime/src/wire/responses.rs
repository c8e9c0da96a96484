//! The `OpenAI` Responses wire: how a request is put, how an answer is read, what errors mean.
//!
//! Nothing is left with the provider: every request carries the whole conversation, and reasoning
//! travels with it, sealed.

mod event;
mod fault;
mod item;
mod reply;
pub(crate) mod request;
pub(crate) mod stream;

use super::{Key, Meaning, Settings, Wire};
use crate::live::Live;
use crate::provider::Asked;
use fault::{error_in, failure_named};
use request::Builder;
use stream::Stream;

#[derive(Debug)]
pub(crate) struct Responses {
    builder: Builder,
}

impl Responses {
    pub(crate) fn new(settings: &Settings) -> Responses {
        Responses { builder: Builder::new(settings) }
    }
}

impl Wire for Responses {
    type Stream = Stream;

    fn path(&self, _: &Asked) -> String {
        "/v1/responses".into()
    }

    fn headers(&self, key: &Key) -> Vec<(&'static str, String)> {
        // Servers on one's own machine want none.
        if key.secret().is_empty() {
            return Vec::new();
        }
        vec![("authorization", format!("Bearer {}", key.secret()))]
    }

    fn body(&self, asked: &Asked) -> Vec<u8> {
        self.builder.body(asked)
    }

    fn stream(&self, live: Live) -> Stream {
        Stream::new(live)
    }

    fn meaning(&self) -> Meaning {
        Meaning { error_in, named: failure_named }
    }
}
