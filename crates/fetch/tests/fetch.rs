//! Fetching through the front door, from servers that behave and servers that do not (`faults`),
//! from addresses that are nobody's business (`addresses`); and HTML as Markdown (`markdown`).
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[path = "fetch/addresses.rs"]
mod addresses;
#[path = "fetch/faults.rs"]
mod faults;
#[path = "fetch/fuzz.rs"]
mod fuzz;
#[path = "fetch/markdown.rs"]
mod markdown;
#[path = "fetch/server.rs"]
mod server;
