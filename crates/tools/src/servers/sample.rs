//! Who answers when a server wants to ask a model and a person has agreed.

use std::fmt::Debug;

use locum_kernel::Spent;
use locum_runtime::provider::Task;

/// Asks a model one thing.
pub trait Sampler: Debug + Send + Sync {
    fn sample(&self, system: Option<String>, text: String) -> Task<Result<Sampled, String>>;
}

/// What it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampled {
    pub model: String,
    pub text: String,
    pub spent: Spent,
}
