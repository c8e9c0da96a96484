//! Who speaks this wire, and what each of them wants otherwise.

/// A provider that is known by name, and where it is known to be.
struct Speaker {
    name: &'static str,
    host: &'static str,
    dialect: Dialect,
}

/// How a provider differs from the plainest form of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect(&'static [Quirk]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quirk {
    /// The longest answer is `max_completion_tokens`.
    MaxCompletionTokens,
    /// Refuses `stream_options`; tells usage without being asked.
    NoStreamOptions,
    /// Several calls at once have to be, or may be, asked for.
    ParallelCalls,
    /// Ids of calls are nine letters or digits.
    NineSignIds,
    /// Refuses a user's message right after the result of a call.
    NoUserAfterTool,
    /// Wants `reasoning_content` back.
    ReasoningBack,
    /// Wants `reasoning_details` back.
    DetailsBack,
    /// Counts reasoning beside the output, not within.
    ReasoningBesideOutput,
    /// Can be held to a schema, beside tools too.
    JsonSchema,
    /// Refuses `reasoning_effort`, for most of its models or all.
    NoEffort,
}

use Quirk::{
    DetailsBack, JsonSchema, MaxCompletionTokens, NineSignIds, NoEffort, NoStreamOptions,
    NoUserAfterTool, ParallelCalls, ReasoningBack, ReasoningBesideOutput,
};

impl Dialect {
    /// What everybody understands.
    pub(crate) const PLAIN: Dialect = Dialect(&[]);

    pub(crate) fn has(self, quirk: Quirk) -> bool {
        self.0.contains(&quirk)
    }
}

const fn speaker(name: &'static str, host: &'static str, quirks: &'static [Quirk]) -> Speaker {
    Speaker { name, host, dialect: Dialect(quirks) }
}

const SPEAKERS: [Speaker; 13] = [
    speaker("openai", "api.openai.com", &[JsonSchema, MaxCompletionTokens, ParallelCalls]),
    speaker("openrouter", "openrouter.ai", &[JsonSchema, ParallelCalls, DetailsBack]),
    speaker("deepseek", "api.deepseek.com", &[ReasoningBack]),
    speaker("groq", "api.groq.com", &[MaxCompletionTokens, ParallelCalls, NoEffort]),
    speaker(
        "mistral",
        "api.mistral.ai",
        &[JsonSchema, NoStreamOptions, ParallelCalls, NineSignIds, NoUserAfterTool, NoEffort],
    ),
    speaker("xai", "api.x.ai", &[JsonSchema, ParallelCalls, ReasoningBesideOutput, NoEffort]),
    speaker("together", "api.together.xyz", &[JsonSchema]),
    speaker("fireworks", "api.fireworks.ai", &[JsonSchema]),
    speaker("cerebras", "api.cerebras.ai", &[JsonSchema, MaxCompletionTokens, ParallelCalls]),
    speaker("vllm", "127.0.0.1:8000", &[JsonSchema, ParallelCalls]),
    speaker("llamacpp", "127.0.0.1:8080", &[JsonSchema, ParallelCalls]),
    speaker("lmstudio", "127.0.0.1:1234", &[JsonSchema]),
    speaker("ollama", "127.0.0.1:11434", &[NoEffort]),
];

/// How a provider speaks: by its name wherever it is, else by where it is.
pub(crate) fn dialect_of(name: &str, base_url: &str) -> Dialect {
    let host = host(base_url);
    let named = SPEAKERS.iter().find(|speaker| speaker.name == name);
    let known = named.or_else(|| SPEAKERS.iter().find(|speaker| speaker.host == host));
    known.map_or(Dialect::PLAIN, |speaker| speaker.dialect)
}

/// The host and its port. This machine has two names.
fn host(url: &str) -> String {
    let rest = url.trim().split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host).to_ascii_lowercase();
    host.replace("localhost", "127.0.0.1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_or_an_address_says_who_is_there() {
        let cases = [
            ("", "https://api.mistral.ai", "mistral"),
            ("", "https://API.Mistral.ai/v1/", "mistral"),
            ("mine", "http://user:pw@localhost:8080", "llamacpp"),
            ("mine", "https://openrouter.ai/api/v1", "openrouter"),
            ("mistral", "http://127.0.0.1:9", "mistral"),
            ("mistral", "https://api.openai.com", "mistral"),
        ];
        for (name, url, expected) in cases {
            let expected = SPEAKERS.iter().find(|it| it.name == expected).unwrap();
            assert_eq!(dialect_of(name, url), expected.dialect, "{name} {url}");
        }
        for url in ["http://127.0.0.1:9", "https://mistral.ai.example.org/v1", ""] {
            assert_eq!(dialect_of("mine", url), Dialect::PLAIN, "{url}");
        }
    }

    #[test]
    fn speakers_are_told_apart() {
        for (at, one) in SPEAKERS.iter().enumerate() {
            let rest = &SPEAKERS[at + 1..];
            assert!(rest.iter().all(|it| it.name != one.name), "{}", one.name);
            assert!(rest.iter().all(|it| it.host != one.host), "{}", one.name);
            assert_eq!(host(one.host), one.host);
        }
    }
}
