//! The HTTP face: it shows the kernel's `View` to browsers and programs and carries words back.
//!
//! [`script_server`] is a face of another kind: the scripted model, for programs that speak to
//! providers.

pub mod script_server;
