//! The calls of one answer, put together from their deltas, which everybody cuts otherwise.

use locum_kernel::limits::ARGUMENT_BYTES_MAX;
use locum_kernel::{Failure, Use};
use serde_json::{Value, json};

use super::event::CallDelta;
use crate::wire::{DecodedCall, malformed};

/// Calls of one answer. No model needs a tenth of it.
const CALLS_MAX: usize = 1_024;

#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Call>);

#[derive(Debug)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes a delta, and says how many bytes more are kept.
    pub(super) fn grow(&mut self, delta: &CallDelta<'_>) -> Result<usize, Failure> {
        let (id, function) = (delta.id.text.as_ref(), delta.function.as_ref());
        let name = function.map_or("", |function| function.name.text.as_ref());
        let arguments = function.map_or("", |function| function.arguments.0.as_ref());
        let place = self.place(delta.index, id, name)?;
        let at = place.unwrap_or(self.0.len());
        if place.is_none() {
            if at >= CALLS_MAX {
                return Err(malformed("too many calls in one answer"));
            }
            let (id, name, arguments) = (id.to_owned(), name.to_owned(), String::new());
            self.0.push(Call { index: delta.index, id, name, arguments });
        }
        let call = &mut self.0[at];
        if call.name.is_empty() {
            name.clone_into(&mut call.name);
        } else if !name.is_empty() && name != call.name {
            return Err(malformed("a call of two tools at once"));
        }
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        call.arguments.push_str(arguments);
        // An id or a name said again is not kept again, but an answer that goes on so has no end.
        Ok(id.len() + name.len() + arguments.len())
    }

    /// Which call a delta goes on with. None: a new one. By its index; but some give every call the
    /// same, so that another id with a name is another call. (An id alone is not: some make up a
    /// new one for every delta.) Those without an index send ids, or whole calls.
    fn place(&self, index: Option<u64>, id: &str, name: &str) -> Result<Option<usize>, Failure> {
        let newest = self.0.len().checked_sub(1);
        if index.is_some() {
            let is_other = |call: &Call| {
                !name.is_empty() && !id.is_empty() && !call.id.is_empty() && call.id != id
            };
            let at = self.0.iter().rposition(|call| call.index == index);
            return Ok(at.filter(|at| !is_other(&self.0[*at])));
        }
        if !id.is_empty() {
            let known = self.0.iter().rposition(|call| call.id == id);
            return Ok(known.or_else(|| newest.filter(|_| name.is_empty())));
        }
        if !name.is_empty() {
            return Ok(None);
        }
        newest.map(Some).ok_or_else(|| malformed("arguments of a call that never began"))
    }

    /// The calls of an answer that is whole. If it was cut for its length, so may the last one be.
    pub(super) fn whole(self, was_cut: bool) -> Result<Vec<Use>, Failure> {
        let whole = |call: Call| {
            if call.name.is_empty() {
                return Err(malformed("a call of a tool without a name"));
            }
            let arguments = parsed(call.arguments, was_cut);
            Ok(Use::new(call.name, arguments))
        };
        self.0.into_iter().map(whole).collect()
    }

    pub(super) fn decoded(&self, was_cut: bool) -> Vec<DecodedCall> {
        let decoded = |call: &Call| DecodedCall {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: parsed(call.arguments.clone(), was_cut),
        };
        self.0.iter().map(decoded).collect()
    }
}

/// Arguments are an object, or the text the model wrote instead: the kernel runs no such call and
/// tells the model. Nothing written means no arguments, unless the answer was cut short just there.
fn parsed(arguments: String, was_cut: bool) -> Value {
    if arguments.trim().is_empty() && !was_cut {
        return json!({});
    }
    // Far beyond what the kernel runs they are not worth their memory.
    let object = (arguments.len() <= 4 * ARGUMENT_BYTES_MAX)
        .then(|| serde_json::from_str(&arguments).ok().filter(Value::is_object));
    object.flatten().unwrap_or(Value::String(arguments))
}
