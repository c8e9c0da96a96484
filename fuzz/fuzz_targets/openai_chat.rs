//! Any bytes, read as a stream of the openai-chat wire.
#![no_main]

#[path = "../../crates/runtime/tests/decoders/laws.rs"]
#[allow(dead_code)]
mod laws;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    laws::check_wire(locum_runtime::wire::WireName::OpenAiChat, bytes);
});
