//! The providers people have: where they are, how they are spoken with, and under which names
//! their keys usually stand in the environment. A table; the names of default models age, and
//! everybody can say better in config.toml.

use locum_runtime::wire::WireName;
use locum_runtime::wire::greet::List;

/// One provider, as it is before anybody configures anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Preset {
    pub(crate) name: &'static str,
    /// How it is called with people.
    pub(crate) title: &'static str,
    pub(crate) wire: WireName,
    /// Empty: only the user knows.
    pub(crate) base: &'static str,
    /// Where a key may be, the usual one first. Empty: it needs none.
    pub(crate) keys: &'static [&'static str],
    /// Where another address may be.
    pub(crate) bases: &'static [&'static str],
    /// The model that is used when only the provider is known. Empty: only the user knows.
    pub(crate) model: &'static str,
    pub(crate) fast: &'static str,
    pub(crate) strong: &'static str,
    /// For servers on this machine: where they list their models.
    pub(crate) list: Option<List>,
    /// It is looked for where it usually listens.
    pub(crate) probed: bool,
    /// Another way to speak with somebody who has a row: for those who ask for it by name.
    pub(crate) variant_of: &'static str,
}

/// What most are: an endpoint that speaks as most do, and needs a key.
const PLAIN: Preset = Preset {
    name: "",
    title: "",
    wire: WireName::OpenAiChat,
    base: "",
    keys: &[],
    bases: &[],
    model: "",
    fast: "",
    strong: "",
    list: None,
    probed: false,
    variant_of: "",
};

/// In the order in which `auto` prefers them. Default models as of November 2026.
#[rustfmt::skip] // One provider, a few lines: this is a table.
pub(crate) const ALL: &[Preset] = &[
    Preset { name: "anthropic", title: "Anthropic", wire: WireName::Anthropic,
        base: "https://api.anthropic.com",
        keys: &["ANTHROPIC_API_KEY"], bases: &["ANTHROPIC_BASE_URL"],
        model: "claude-sonnet-5-5", fast: "claude-haiku-5-5", strong: "claude-opus-5-5", ..PLAIN },
    Preset { name: "openai", title: "OpenAI", wire: WireName::OpenAiResponses,
        base: "https://api.openai.com",
        keys: &["OPENAI_API_KEY"], bases: &["OPENAI_BASE_URL", "OPENAI_API_BASE"],
        model: "gpt-6-sol", fast: "gpt-6-luna", strong: "gpt-6-astra", ..PLAIN },
    Preset { name: "openai-responses", title: "OpenAI, the Responses API",
        wire: WireName::OpenAiResponses, base: "https://api.openai.com",
        keys: &["OPENAI_API_KEY"], bases: &["OPENAI_BASE_URL", "OPENAI_API_BASE"],
        model: "gpt-6-sol", variant_of: "openai", ..PLAIN },
    Preset { name: "openai-chat", title: "OpenAI, the Chat API", base: "https://api.openai.com",
        keys: &["OPENAI_API_KEY"], bases: &["OPENAI_BASE_URL", "OPENAI_API_BASE"],
        model: "gpt-6-sol", variant_of: "openai", ..PLAIN },
    Preset { name: "gemini", title: "Gemini", wire: WireName::Gemini,
        base: "https://generativelanguage.googleapis.com",
        keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"],
        bases: &["GEMINI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"],
        model: "gemini-pro-latest", fast: "gemini-flash-latest", ..PLAIN },
    Preset { name: "openrouter", title: "OpenRouter", base: "https://openrouter.ai/api/v1",
        keys: &["OPENROUTER_API_KEY"], bases: &["OPENROUTER_BASE_URL"],
        model: "anthropic/claude-sonnet-5.5", fast: "anthropic/claude-haiku-5.5", ..PLAIN },
    Preset { name: "deepseek", title: "DeepSeek", base: "https://api.deepseek.com/v1",
        keys: &["DEEPSEEK_API_KEY"], bases: &["DEEPSEEK_BASE_URL"],
        model: "deepseek-v4-flash", strong: "deepseek-v4-pro", ..PLAIN },
    Preset { name: "xai", title: "xAI", base: "https://api.x.ai/v1",
        keys: &["XAI_API_KEY"], bases: &["XAI_BASE_URL"],
        model: "grok-4.7", fast: "grok-4.3", ..PLAIN },
    Preset { name: "mistral", title: "Mistral", base: "https://api.mistral.ai/v1",
        keys: &["MISTRAL_API_KEY"], bases: &["MISTRAL_BASE_URL"],
        model: "mistral-medium-latest", fast: "mistral-small-latest",
        strong: "mistral-large-latest", ..PLAIN },
    Preset { name: "groq", title: "Groq", base: "https://api.groq.com/openai/v1",
        keys: &["GROQ_API_KEY"], bases: &["GROQ_BASE_URL"],
        model: "openai/gpt-oss-120b", fast: "openai/gpt-oss-20b", ..PLAIN },
    Preset { name: "cerebras", title: "Cerebras", base: "https://api.cerebras.ai/v1",
        keys: &["CEREBRAS_API_KEY"], bases: &["CEREBRAS_BASE_URL"],
        model: "gpt-oss-120b", ..PLAIN },
    Preset { name: "together", title: "Together", base: "https://api.together.xyz/v1",
        keys: &["TOGETHER_API_KEY", "TOGETHERAI_API_KEY"], bases: &["TOGETHER_BASE_URL"],
        model: "openai/gpt-oss-120b", fast: "openai/gpt-oss-20b", ..PLAIN },
    Preset { name: "fireworks", title: "Fireworks", base: "https://api.fireworks.ai/inference/v1",
        keys: &["FIREWORKS_API_KEY"], bases: &["FIREWORKS_BASE_URL"],
        model: "accounts/fireworks/models/glm-5p3",
        fast: "accounts/fireworks/models/glm-5p3-flash", ..PLAIN },
    Preset { name: "cohere", title: "Cohere", base: "https://api.cohere.ai/compatibility/v1",
        keys: &["COHERE_API_KEY", "CO_API_KEY"], bases: &["COHERE_BASE_URL"],
        model: "command-a-03-2025", ..PLAIN },
    // Its models are called what their owner called them, at an address of their owner's.
    Preset { name: "azure", title: "Azure OpenAI",
        keys: &["AZURE_OPENAI_API_KEY"], bases: &["AZURE_OPENAI_BASE_URL"], ..PLAIN },
    Preset { name: "ollama", title: "Ollama", wire: WireName::Ollama,
        base: "http://127.0.0.1:11434", bases: &["OLLAMA_HOST"],
        list: Some(List::Tags), probed: true, ..PLAIN },
    Preset { name: "lmstudio", title: "LM Studio", base: "http://127.0.0.1:1234/v1",
        bases: &["LMSTUDIO_BASE_URL"], list: Some(List::Models), probed: true, ..PLAIN },
    Preset { name: "llamacpp", title: "llama.cpp", base: "http://127.0.0.1:8080/v1",
        bases: &["LLAMACPP_BASE_URL"], list: Some(List::Models), probed: true, ..PLAIN },
    Preset { name: "vllm", title: "vLLM", base: "http://127.0.0.1:8000/v1",
        bases: &["VLLM_BASE_URL"], list: Some(List::Models), ..PLAIN },
];

/// Other names for the same.
const ALSO: &[(&str, &str)] = &[
    ("google", "gemini"),
    ("azure-openai", "azure"),
    ("lm-studio", "lmstudio"),
    ("llama.cpp", "llamacpp"),
    ("llama-cpp", "llamacpp"),
    ("grok", "xai"),
    ("claude", "anthropic"),
];

impl Preset {
    /// An endpoint of the user's own.
    pub(crate) fn own() -> Preset {
        PLAIN
    }

    pub(crate) fn named(name: &str) -> Option<&'static Preset> {
        let name = plain_name(name);
        ALL.iter().find(|preset| preset.name == name)
    }
}

/// Where keys to models may be.
pub(crate) fn keys() -> impl Iterator<Item = &'static str> {
    ALL.iter().flat_map(|preset| preset.keys.iter().copied())
}

/// The name under which the table has a provider; any other name stays as it is.
pub(crate) fn plain_name(name: &str) -> &str {
    ALSO.iter().find(|(also, _)| *also == name).map_or(name, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_table_is_sound() {
        let mut names = BTreeSet::new();
        for preset in ALL {
            assert!(names.insert(preset.name), "{} is there twice", preset.name);
            assert!(!preset.title.is_empty() && !preset.bases.is_empty(), "{}", preset.name);
            assert_eq!(preset.keys.is_empty(), preset.list.is_some(), "{}", preset.name);
            let known =
                preset.model.is_empty() == (preset.base.is_empty() || preset.list.is_some());
            assert!(known, "{}: who does not list its models needs a default", preset.name);
        }
        assert!(ALL.len() >= 15);
        for (also, name) in ALSO {
            assert!(names.contains(name) && !names.contains(also), "{also}");
            assert_eq!(Preset::named(also).map(|preset| preset.name), Some(*name));
        }
    }
}
