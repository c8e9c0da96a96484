//! `locum decode`: what a recorded stream of a provider says, as the engine would hear it.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use locum_kernel::{Failure, FailureKind};
use locum_runtime::line::UsageLine;
use locum_runtime::wire::{self, Decoded, DecodedCall};
use serde::Serialize;

use crate::complaint::Complaint;
use crate::flags::Decode;
use crate::print;

/// The task failed: the stream is not whole.
const FAILED: u8 = 1;

#[derive(Serialize)]
struct Said {
    text: String,
    reasoning: String,
    calls: Vec<DecodedCall>,
    usage: UsageLine,
    stop: Option<String>,
    error: Option<Wrong>,
}

#[derive(Serialize)]
struct Wrong {
    kind: FailureKind,
    message: String,
}

pub(crate) fn decode(flags: &Decode) -> Result<u8, Complaint> {
    let bytes = read(&flags.file).map_err(|error| Complaint::recording(&flags.file, &error))?;
    let (Decoded { text, reasoning, calls, usage, stop }, reply) = wire::decode(flags.wire, &bytes);
    let failure = reply.err();
    let is_whole = failure.as_ref().is_none_or(|failure| is_refusal(failure, stop.as_deref()));
    // Calls are those that would run: an answer that is not whole has none.
    let calls = if failure.is_none() { calls } else { Vec::new() };
    let error = failure.map(|Failure { kind, message, .. }| Wrong { kind, message });
    let said = Said { text, reasoning, calls, usage: usage.into(), stop, error };
    // Only values of ours: they always encode.
    print::line(&serde_json::to_string(&said).unwrap_or_default());
    Ok(if is_whole { 0 } else { FAILED })
}

/// A model that will not answer has still said all there is to say.
fn is_refusal(failure: &Failure, stop: Option<&str>) -> bool {
    failure.kind == FailureKind::Filtered && stop.is_some()
}

fn read(file: &Path) -> io::Result<Vec<u8>> {
    if file != Path::new("-") {
        return fs::read(file);
    }
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}
