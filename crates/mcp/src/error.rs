//! What can go wrong between us and a server, in words a person can act on.

use std::time::Duration;

/// Every variant names the server; none quotes more than a few lines of what it said.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("there is no MCP server `{server}`; `locum mcp` lists those configured")]
    UnknownServer { server: String },
    #[error("there is no tool `{name}`; its server may have dropped it")]
    UnknownTool { name: String },
    #[error("MCP server `{server}` is started again in {} s: {why}", wait.as_secs().max(1))]
    Backoff { server: String, wait: Duration, why: String },
    #[error("MCP server `{server}` does not run: {why}; `locum mcp logs {server}` may say more")]
    Broken { server: String, why: String },
    #[error("MCP server `{server}` wants a login: run `locum mcp login {server}`")]
    Login { server: String, challenge: String },
    #[error("MCP server `{server}` did not finish {what} within {} s", limit.as_secs_f32())]
    Timeout { server: String, what: String, limit: Duration },
    #[error("MCP server `{server}` went away during {what}: {why}")]
    Gone { server: String, what: String, why: String },
    #[error("MCP server `{server}` refused {what}: {message} ({code})")]
    Refused { server: String, what: String, code: i32, message: String },
    #[error("MCP server `{server}` answered {what} with something else")]
    Confused { server: String, what: String },
    #[error("MCP server `{server}` asked for input {rounds} times and did not finish {what}")]
    Rounds { server: String, what: String, rounds: usize },
    #[error("tool `{name}` takes an object, not {given}")]
    Arguments { name: String, given: &'static str },
    #[error("no login at MCP server `{server}`: {why}")]
    Authorization { server: String, why: String },
}

/// Why an answer reached nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    #[error("question {0} no longer waits for an answer")]
    Gone(u64),
    #[error("question {0} is of another kind than the answer")]
    Mismatch(u64),
}
