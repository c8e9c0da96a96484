//! Who speaks this wire, where, under which key, and what each of them wants otherwise.

/// A provider that is known by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    pub name: &'static str,
    pub base_url: &'static str,
    /// Where its key may be found in the environment, the usual name first. None: it needs none.
    pub keys: &'static [&'static str],
    pub(crate) dialect: Dialect,
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
}

use Quirk::{
    DetailsBack, MaxCompletionTokens, NineSignIds, NoStreamOptions, NoUserAfterTool, ParallelCalls,
    ReasoningBack, ReasoningBesideOutput,
};

impl Dialect {
    /// What everybody understands.
    pub(crate) const PLAIN: Dialect = Dialect(&[]);

    pub(crate) fn has(self, quirk: Quirk) -> bool {
        self.0.contains(&quirk)
    }
}

const fn preset(
    name: &'static str,
    base_url: &'static str,
    keys: &'static [&'static str],
    quirks: &'static [Quirk],
) -> Preset {
    Preset { name, base_url, keys, dialect: Dialect(quirks) }
}

pub const PRESETS: [Preset; 13] = [
    preset(
        "openai",
        "https://api.openai.com/v1",
        &["OPENAI_API_KEY"],
        &[MaxCompletionTokens, ParallelCalls],
    ),
    preset(
        "openrouter",
        "https://openrouter.ai/api/v1",
        &["OPENROUTER_API_KEY"],
        &[ParallelCalls, DetailsBack],
    ),
    preset("deepseek", "https://api.deepseek.com/v1", &["DEEPSEEK_API_KEY"], &[ReasoningBack]),
    preset(
        "groq",
        "https://api.groq.com/openai/v1",
        &["GROQ_API_KEY"],
        &[MaxCompletionTokens, ParallelCalls],
    ),
    preset(
        "mistral",
        "https://api.mistral.ai/v1",
        &["MISTRAL_API_KEY"],
        &[NoStreamOptions, ParallelCalls, NineSignIds, NoUserAfterTool],
    ),
    preset("xai", "https://api.x.ai/v1", &["XAI_API_KEY"], &[ParallelCalls, ReasoningBesideOutput]),
    preset(
        "together",
        "https://api.together.xyz/v1",
        &["TOGETHER_API_KEY", "TOGETHER_AI_API_KEY"],
        &[],
    ),
    preset("fireworks", "https://api.fireworks.ai/inference/v1", &["FIREWORKS_API_KEY"], &[]),
    preset(
        "cerebras",
        "https://api.cerebras.ai/v1",
        &["CEREBRAS_API_KEY"],
        &[MaxCompletionTokens, ParallelCalls],
    ),
    preset("vllm", "http://127.0.0.1:8000/v1", &[], &[ParallelCalls]),
    preset("llama.cpp", "http://127.0.0.1:8080/v1", &[], &[ParallelCalls]),
    preset("lmstudio", "http://127.0.0.1:1234/v1", &[], &[]),
    preset("ollama", "http://127.0.0.1:11434/v1", &[], &[]),
];

impl Preset {
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Preset> {
        PRESETS.iter().find(|preset| preset.name == name)
    }
}

/// How the one at an address speaks, if it is known.
pub(crate) fn dialect_at(base_url: &str) -> Dialect {
    let host = host(base_url);
    let known = PRESETS.iter().find(|preset| self::host(preset.base_url) == host);
    known.map_or(Dialect::PLAIN, |preset| preset.dialect)
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
    fn addresses_say_who_is_there() {
        let cases = [
            ("https://api.mistral.ai", "mistral"),
            ("https://API.Mistral.ai/v1/", "mistral"),
            ("http://user:pw@localhost:8080", "llama.cpp"),
            ("https://openrouter.ai/api/v1", "openrouter"),
        ];
        for (url, name) in cases {
            assert_eq!(dialect_at(url), Preset::named(name).unwrap().dialect, "{url}");
        }
        for url in ["http://127.0.0.1:9", "https://mistral.ai.example.org/v1", ""] {
            assert_eq!(dialect_at(url), Dialect::PLAIN, "{url}");
        }
    }

    #[test]
    fn presets_are_told_apart() {
        for (at, one) in PRESETS.iter().enumerate() {
            let rest = &PRESETS[at + 1..];
            assert!(one.base_url.ends_with("/v1"), "{}", one.name);
            assert!(rest.iter().all(|it| it.name != one.name), "{}", one.name);
            assert!(rest.iter().all(|it| host(it.base_url) != host(one.base_url)), "{}", one.name);
        }
    }
}
