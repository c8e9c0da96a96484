//! Tools of other programs: a client of the Model Context Protocol, on its official SDK, that no
//! server can hold up. In reading order: `spec` (what is configured) and `config` (how it is
//! read), `event` (what servers tell and ask), `tool` and `offer` (what they have), `servers` (the
//! door), `server` (one over its life), `connection` (one while it lives), then what it is made
//! of: `parts`, `handshake`, `watch`, `ears`, `client`, `gate`, `pipe`, `mend`, `process`, `http`,
//! `auth`.
//! `limits` has every bound.

mod auth;
mod client;
pub mod config;
mod connection;
mod ears;
mod error;
mod event;
mod gate;
mod handshake;
mod http;
mod limits;
mod logs;
mod mend;
mod name;
mod offer;
mod parts;
mod pipe;
mod process;
mod server;
mod servers;
mod spec;
mod stale;
mod tool;
mod watch;

pub use auth::{Login, LoginOptions};
pub use client::Progress;
pub use error::{AnswerError, Error};
pub use event::{Answer, Attendance, Event, Kind, Request, State};
pub use logs::{LogLine, Source};
pub use offer::{Argument, Prompt, PromptText, Resource, Said, Speaker};
pub use servers::{Missing, Servers, Tools};
pub use spec::{Launch, Sampling, ServerSpec, Settings, Transport, Wrap};
pub use tool::{Called, Known, Link, Media, ToolInfo};
