//! Any bytes, split into server-sent events.
#![no_main]

#[path = "../../crates/runtime/tests/decoders/laws.rs"]
#[allow(dead_code)]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| laws::check_events(bytes));
