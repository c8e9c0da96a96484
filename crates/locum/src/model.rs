//! Who answers: the model named on the command line, made into a provider. Keys and addresses come
//! from the environment and go nowhere but into the provider.

use std::env;
use std::path::Path;
use std::sync::Arc;

use locum_runtime::clock::Clock;
use locum_runtime::provider::Provider;
use locum_runtime::script::{Script, Scripted};
use locum_runtime::wire::{self, BadAddress, Key, Settings, WireName};

use crate::complaint::Complaint;
use crate::demo;

const ANTHROPIC: &str = "https://api.anthropic.com";

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
