//! Recipes, skills and agents that people already have: found, read, checked and built.
//!
//! A [`Library`] is what was found. [`load`] reads one file as a [`Definition`], with every
//! [`Problem`] at its place. [`build`] puts values in; [`to_kernel`] narrows the result to what
//! the kernel judges by. Nothing here runs anything, asks anybody or watches a file.
//!
//! In reading order: the types, the texts, the formats, values, places.

pub mod limits;
mod problem;

mod definition;
mod parameter;
mod server;
mod server_name;
mod variables;

mod fields;
mod file;
mod front;
mod front_keys;
mod hidden;
mod json;
mod near;
mod tree;
mod yaml;
mod yaml_words;

mod bound;
mod foreign;
mod markdown;
mod own;
mod permission;
mod recipe;
mod schema;
mod tools;

mod pieces;
mod shape;
mod template;
mod whence;

mod build;
mod consent;
mod load;
mod mapping;
mod offer;

mod builtin;
mod library;
mod mcp;
mod notes;
mod places;

pub use build::{
    Asker, Built, Given, Outcome, Unbuilt, build, build_for, lost_sub_recipes, rehearsed,
};
pub use consent::Consent;
pub use definition::{
    Definition, Isolation, Kind, Memory, Origin, Own, PassInput, Passthrough, Permission, Retry,
    Scope, Settings, SkillOnly, StartedBy, SubRecipe, ToolUse, Tools,
};
pub use file::{Refused, beneath, read as read_text};
pub use library::{Found, Library, NotFound, Skipped, fingerprint};
pub use load::{Loaded, load, load_from, parse};
pub use mapping::to_kernel;
pub use mcp::{proposed_servers, servers_in};
pub use notes::{Note, Notes, notes, own_notes};
pub use offer::line as offered;
pub use parameter::{InputType, Parameter, Requirement};
pub use places::{Places, count};
pub use problem::{Place, Problem, Severity};
pub use server::{Reach, Server, TIMEOUT_S};
pub use template::CIRCLE;
pub use variables::{Wants, fill, names};
