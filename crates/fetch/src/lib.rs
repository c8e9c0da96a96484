//! A page of the web as text for a model: bounded in size, time and redirects, never from a
//! private address, without what a person would not see.
//!
//! In reading order: which addresses are refused (`address`), who fetches (`client`), the way to
//! a page (`fetch`), its bytes (`body`, `charset`), HTML as Markdown (`html`), and what is made of
//! all that (`page`).

mod address;
mod body;
mod charset;
mod client;
mod fetch;
pub mod html;
mod page;
mod refused;
mod visible;

pub use address::why_private;
pub use client::{Builder, Client, Looking, Lookup};
pub use fetch::{Follow, Limits, Request, fetch};
pub use page::{Cut, Page};
pub use refused::Refused;
