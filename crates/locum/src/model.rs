//! Who answers: the model named on the command line, made into a provider. Keys and addresses come
//! from the environment and go nowhere but into the provider.

use std::env;
use std::path::Path;
use std::sync::Arc;

use locum_runtime::clock::Clock;
use locum_runtime::provider::Provider;
use locum_runtime::script::{Script, Scripted};
use locum_runtime::wire::{self, BadAddress, Key, Preset, Settings, WireName};

use crate::complaint::Complaint;
use crate::demo;

const ANTHROPIC: &str = "https://api.anthropic.com";
const GEMINI: &str = "https://generativelanguage.googleapis.com";

#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) provider: Arc<dyn Provider>,
    /// What the agents are, if a script plays them.
    pub(crate) script: Option<Script>,
}

pub(crate) fn choose(model: &str, clock: &Arc<dyn Clock>) -> Result<Chosen, Complaint> {
    if let Some(script) = script(model) {
        let script = script?;
        let provider = Arc::new(Scripted::new(script.clone(), Arc::clone(clock)));
        return Ok(Chosen { provider, script: Some(script) });
    }
    match model.split_once('/') {
        Some(("anthropic", name)) if !name.is_empty() => anthropic(Arc::clone(clock)),
        Some(("gemini", name)) if !name.is_empty() => gemini(Arc::clone(clock)),
        Some(("ollama", name)) if !name.is_empty() => ollama(Arc::clone(clock)),
        Some((provider, name)) if !name.is_empty() => {
            let preset = Preset::named(provider).ok_or_else(|| Complaint::model(model))?;
            compatible(preset, Arc::clone(clock))
        }
        Some(_) | None => Err(Complaint::model(model)),
    }
}

/// The script a model's name stands for, if it does.
fn script(model: &str) -> Option<Result<Script, Complaint>> {
    let file = model
        .strip_prefix("script:")
        .map(|file| Script::read(Path::new(file)).map_err(|error| Complaint::script(&error)));
    file.or_else(|| demo::script(model))
}

fn anthropic(clock: Arc<dyn Clock>) -> Result<Chosen, Complaint> {
    let key = set("ANTHROPIC_API_KEY").ok_or_else(|| Complaint::no_key("ANTHROPIC_API_KEY"))?;
    let base = set("ANTHROPIC_BASE_URL").unwrap_or_else(|| ANTHROPIC.to_owned());
    let settings = Settings::new(&base, Key::new(key));
    let provider = wire::provider(WireName::Anthropic, &settings, clock);
    let provider = provider.map_err(|error| bad_address("ANTHROPIC", &error))?;
    Ok(Chosen { provider, script: None })
}

/// One of those who speak the chat wire.
fn compatible(preset: &Preset, clock: Arc<dyn Clock>) -> Result<Chosen, Complaint> {
    let provider = preset.name.to_ascii_uppercase().replace('.', "_");
    let key = match preset.keys.iter().find_map(|name| set(name)) {
        Some(key) => key,
        // Who is on this machine may want one all the same.
        None if preset.keys.is_empty() => set(&format!("{provider}_API_KEY")).unwrap_or_default(),
        None => return Err(Complaint::no_key(preset.keys[0])),
    };
    let base = set(&format!("{provider}_BASE_URL"));
    let settings = Settings::new(base.as_deref().unwrap_or(preset.base_url), Key::new(key));
    let made = wire::compatible(preset, &settings, clock);
    let made = made.map_err(|error| bad_address(&provider, &error))?;
    Ok(Chosen { provider: made, script: None })
}

fn gemini(clock: Arc<dyn Clock>) -> Result<Chosen, Complaint> {
    let key = set("GEMINI_API_KEY").or_else(|| set("GOOGLE_API_KEY"));
    let key = key.ok_or_else(|| Complaint::no_key("GEMINI_API_KEY"))?;
    let base = set("GEMINI_BASE_URL").unwrap_or_else(|| GEMINI.to_owned());
    let provider = wire::provider(WireName::Gemini, &Settings::new(&base, Key::new(key)), clock);
    let provider = provider.map_err(|error| bad_address("GEMINI", &error))?;
    Ok(Chosen { provider, script: None })
}

fn ollama(clock: Arc<dyn Clock>) -> Result<Chosen, Complaint> {
    let base = wire::ollama_address(&set("OLLAMA_HOST").unwrap_or_default());
    let provider = wire::provider(WireName::Ollama, &Settings::new(&base, Key::new("")), clock);
    let next = || "set OLLAMA_HOST to an http:// address, then run again".to_owned();
    let provider = provider.map_err(|error| Complaint::provider(&error, next()))?;
    Ok(Chosen { provider, script: None })
}

fn set(name: &str) -> Option<String> {
    env::var(name).ok().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

fn bad_address(provider: &str, error: &BadAddress) -> Complaint {
    let next = match error {
        BadAddress::Key => format!("set {provider}_API_KEY to a key, then run again"),
        BadAddress::NotOne(_) | BadAddress::Encrypted => {
            format!("set {provider}_BASE_URL to an http:// address, then run again")
        }
    };
    Complaint::provider(error, next)
}
