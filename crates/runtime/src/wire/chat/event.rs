//! The chunks of a streamed completion, as they are spelled, by its inventor and by those who
//! speak it after their own fashion.

use std::borrow::Cow;
use std::fmt;

use locum_kernel::Usage;
use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// One chunk, or the whole completion when nothing was streamed.
#[derive(Deserialize)]
pub(super) struct Chunk<'e> {
    #[serde(borrow, default)]
    pub(super) choices: Option<Vec<Choice<'e>>>,
    #[serde(default)]
    pub(super) usage: Option<Counts>,
    #[serde(default)]
    pub(super) x_groq: Option<Extra>,
    #[serde(default)]
    pub(super) error: Option<Value>,
}

/// Only whether it says anything that may not be passed over.
#[derive(Deserialize)]
pub(super) struct Shape {
    #[serde(default)]
    pub(super) choices: Option<IgnoredAny>,
    #[serde(default)]
    pub(super) error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
pub(super) struct Extra {
    #[serde(default)]
    pub(super) usage: Option<Counts>,
}

#[derive(Deserialize)]
pub(super) struct Choice<'e> {
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'e>>,
    /// Instead of a delta when nothing was streamed; some send both.
    #[serde(borrow, default)]
    pub(super) message: Option<Delta<'e>>,
    #[serde(borrow, default)]
    pub(super) finish_reason: Words<'e>,
    #[serde(default)]
    pub(super) usage: Option<Counts>,
    #[serde(default)]
    pub(super) error: Option<Value>,
}

#[derive(Default, Deserialize)]
pub(super) struct Delta<'e> {
    #[serde(borrow, default)]
    pub(super) content: Words<'e>,
    #[serde(borrow, default)]
    pub(super) reasoning_content: Words<'e>,
    /// The same under another name; some send both.
    #[serde(borrow, default)]
    pub(super) reasoning: Words<'e>,
    #[serde(default)]
    pub(super) reasoning_details: Option<Value>,
    #[serde(borrow, default)]
    pub(super) refusal: Words<'e>,
    #[serde(borrow, default)]
    pub(super) tool_calls: Option<Vec<CallDelta<'e>>>,
}

#[derive(Deserialize)]
pub(super) struct CallDelta<'e> {
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(borrow, default)]
    pub(super) id: Words<'e>,
    #[serde(borrow, default)]
    pub(super) function: Option<Function<'e>>,
}

#[derive(Default, Deserialize)]
pub(super) struct Function<'e> {
    #[serde(borrow, default)]
    pub(super) name: Words<'e>,
    #[serde(borrow, default)]
    pub(super) arguments: Arguments<'e>,
}

/// Text: a string, nothing, or parts, some of which may be thoughts.
#[derive(Debug, Default)]
pub(super) struct Words<'e> {
    pub(super) text: Cow<'e, str>,
    pub(super) thinking: String,
}

/// A part of a text, wherever it is.
#[derive(Deserialize)]
struct Part<'e> {
    #[serde(borrow, default)]
    text: Words<'e>,
    #[serde(borrow, default)]
    thinking: Words<'e>,
}

/// Arguments are text that is JSON. Some send the JSON instead.
#[derive(Debug, Default)]
pub(super) struct Arguments<'e>(pub(super) Cow<'e, str>);

impl<'de: 'e, 'e> Deserialize<'de> for Words<'e> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Words<'e>, D::Error> {
        from.deserialize_any(WordsVisitor)
    }
}

struct WordsVisitor;

impl<'de> Visitor<'de> for WordsVisitor {
    type Value = Words<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, its parts, or nothing")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Words<'de>, E> {
        Ok(Words { text: Cow::Borrowed(text), thinking: String::new() })
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Words<'de>, E> {
        Ok(Words { text: Cow::Owned(text.to_owned()), thinking: String::new() })
    }

    fn visit_unit<E: Error>(self) -> Result<Words<'de>, E> {
        Ok(Words::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Words<'de>, A::Error> {
        let mut words = Words::default();
        while let Some(part) = parts.next_element::<Part<'de>>()? {
            words.text.to_mut().push_str(&part.text.text);
            words.thinking.push_str(&part.thinking.text);
        }
        Ok(words)
    }

    /// Something this wire never asked for.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Words<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Words::default())
    }
}

impl<'de: 'e, 'e> Deserialize<'de> for Arguments<'e> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Arguments<'e>, D::Error> {
        from.deserialize_any(ArgumentsVisitor)
    }
}

struct ArgumentsVisitor;

impl<'de> Visitor<'de> for ArgumentsVisitor {
    type Value = Arguments<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("arguments as text, or as an object")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Arguments<'de>, E> {
        Ok(Arguments(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Arguments<'de>, E> {
        Ok(Arguments(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E: Error>(self) -> Result<Arguments<'de>, E> {
        Ok(Arguments::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Arguments<'de>, A::Error> {
        let mut object = serde_json::Map::new();
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            object.insert(name, value);
        }
        Ok(Arguments(Cow::Owned(Value::Object(object).to_string())))
    }
}

/// The provider's counts. Later ones stand for the whole answer so far.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Counts {
    #[serde(default, rename = "prompt_tokens")]
    input: Option<u64>,
    #[serde(default, rename = "completion_tokens")]
    output: Option<u64>,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
    /// What some say instead of the details.
    #[serde(default, alias = "prompt_cache_hit_tokens")]
    cached_tokens: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct PromptDetails {
    #[serde(default, rename = "cached_tokens")]
    cached: Option<u64>,
    #[serde(default, rename = "cache_write_tokens")]
    cache_write: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct CompletionDetails {
    #[serde(default, rename = "reasoning_tokens")]
    reasoning: Option<u64>,
}

impl Counts {
    pub(super) fn learn(&mut self, later: Option<Counts>) {
        let Some(later) = later else { return };
        self.input = later.input.or(self.input);
        self.output = later.output.or(self.output);
        self.prompt_tokens_details = later.prompt_tokens_details.or(self.prompt_tokens_details);
        self.completion_tokens_details =
            later.completion_tokens_details.or(self.completion_tokens_details);
        self.cached_tokens = later.cached_tokens.or(self.cached_tokens);
    }

    /// What came from the cache is part of the prompt here already.
    pub(super) fn usage(self) -> Usage {
        let prompt = self.prompt_tokens_details.unwrap_or_default();
        let completion = self.completion_tokens_details.unwrap_or_default();
        Usage {
            input: self.input.unwrap_or(0),
            output: self.output.unwrap_or(0),
            cached: prompt.cached.or(self.cached_tokens).unwrap_or(0),
            cache_write: prompt.cache_write.unwrap_or(0),
            reasoning: completion.reasoning.unwrap_or(0),
        }
    }
}
