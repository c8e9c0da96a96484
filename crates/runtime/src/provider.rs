//! What a model is asked and what comes back, whoever provides it.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use locum_kernel::{Failure, FailureKind, Reply, Request};

use crate::live::Live;

/// Something under way, to be run by whoever holds it.
pub type Task<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Answers one request, whole, or says why not. The caller decides what a failure means. Dropping
/// the task ends the call.
pub trait Provider: Debug + Send + Sync {
    /// What is said on the way goes to `live`; the whole reply still comes at the end.
    fn answer(&self, asked: Asked, live: Live) -> Task<Result<Reply, Failure>>;
}

/// A request, with who asks and how far they have come. The counts are folded from the journal:
/// after a restart they are what they were.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The name of the definition the agent was made from.
    pub definition: String,
    pub label: String,
    /// Replies this agent has had in its life.
    pub replies: u32,
    /// Model calls of this agent that came to nothing, in its life.
    pub failures: u32,
    /// Tries of this turn that came to nothing.
    pub tries: u32,
    pub request: Request,
}

/// What an HTTP status of a model's provider means.
#[must_use]
pub fn failure_kind(status: u16) -> FailureKind {
    match status {
        401 | 403 => FailureKind::Auth,
        402 => FailureKind::Quota,
        404 => FailureKind::UnknownModel,
        408 | 504 => FailureKind::Timeout,
        413 => FailureKind::ContextTooLong,
        429 => FailureKind::RateLimited,
        529 => FailureKind::Overloaded,
        500..=599 => FailureKind::Server,
        _ => FailureKind::Other,
    }
}
