//! What agents and people want remembered beyond a session: short notes, each with a scope that
//! says who may read it and with where it is from. In one database of their own, beside the
//! journal; several locums may use it at once.
//!
//! In reading order: what a note is (`note`), what goes wrong (`error`), what is never kept
//! (`secret`), the file and its tables (`tables`, `rows`), keeping (`store`), finding (`words`,
//! `search`), and notes as a page that people edit (`page`, `merge`).

mod error;
mod merge;
mod note;
mod page;
mod rows;
mod search;
mod secret;
mod store;
mod tables;
mod words;

pub use error::Error;
pub use merge::{Change, merge};
pub use note::{Id, Limits, Note, Provenance, Reader, Saved, Scope, Source};
pub use page::{Base, render};
pub use search::Found;
pub use secret::Secret;
pub use store::Memory;
