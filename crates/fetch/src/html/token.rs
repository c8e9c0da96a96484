//! The tokens of a page, as far as anybody here asks for them.

use std::convert::Infallible;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

/// More of an attribute than this is not kept: it is no address and no style that means well.
const VALUE_BYTES_MAX: usize = 4 * 1024;

/// What elements say of themselves. Said twice, the first counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) href: Option<String>,
    pub(super) alt: Option<String>,
    pub(super) style: Option<String>,
    pub(super) class: Option<String>,
    pub(super) role: Option<String>,
    pub(super) start: Option<String>,
    pub(super) hidden: Option<String>,
    pub(super) aria_hidden: Option<String>,
}

impl Attributes {
    fn place(&mut self, name: &[u8]) -> Option<&mut Option<String>> {
        match name {
            b"href" => Some(&mut self.href),
            b"alt" => Some(&mut self.alt),
            b"style" => Some(&mut self.style),
            b"class" => Some(&mut self.class),
            b"role" => Some(&mut self.role),
            b"start" => Some(&mut self.start),
            b"hidden" => Some(&mut self.hidden),
            b"aria-hidden" => Some(&mut self.aria_hidden),
            _ => None,
        }
    }
}

#[derive(Debug)]
pub(super) enum Token<'a> {
    Start { name: &'a [u8], attributes: Attributes, self_closing: bool },
    End { name: &'a [u8] },
    Text(&'a str),
}

/// Where the value that comes next belongs.
#[derive(Debug, Default)]
struct Opening {
    name: Vec<u8>,
    attributes: Attributes,
    at: Vec<u8>,
}

impl Opening {
    fn name_attribute(&mut self, name: &[u8]) {
        self.at.clear();
        if let Some(place) = self.attributes.place(name).filter(|place| place.is_none()) {
            *place = Some(String::new());
            self.at.extend_from_slice(name);
        }
    }

    fn fill(&mut self, value: &[u8]) {
        let value = &value[..value.len().min(VALUE_BYTES_MAX)];
        if let Some(place) = self.attributes.place(&self.at) {
            *place = Some(String::from_utf8_lossy(value).into_owned());
        }
        self.at.clear();
    }
}

pub(super) fn each(html: &str, mut take: impl FnMut(Token<'_>)) {
    let mut opening = Opening::default();
    let mut emitter =
        CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| -> Option<Infallible> {
            match event {
                CallbackEvent::OpenStartTag { name } => {
                    opening = Opening { name: name.to_vec(), ..Opening::default() };
                }
                CallbackEvent::AttributeName { name } => opening.name_attribute(name),
                CallbackEvent::AttributeValue { value } => opening.fill(value),
                CallbackEvent::CloseStartTag { self_closing } => {
                    let attributes = std::mem::take(&mut opening.attributes);
                    take(Token::Start { name: &opening.name, attributes, self_closing });
                }
                CallbackEvent::EndTag { name } => take(Token::End { name }),
                CallbackEvent::String { value } => {
                    take(Token::Text(&String::from_utf8_lossy(value)));
                }
                CallbackEvent::Comment { .. }
                | CallbackEvent::Doctype { .. }
                | CallbackEvent::Error(_) => {}
            }
            None
        });
    emitter.naively_switch_states(true);
    // Reading from memory does not fail.
    let Ok(()) = Tokenizer::new_with_emitter(html, emitter).finish();
}
