//! One provider as it is here: what the table says of it, what the user's configuration says
//! instead, and what the environment has. Keys are read here and go nowhere but into the settings
//! of a connection. Keyrings are asked through the program each system has for that, because every
//! library for one drags in a message bus.

use std::fs;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::Path;
use std::process::{self, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use locum_runtime::wire::{Key, Settings, WireName, ollama_address};

use crate::complaint::Complaint;
use crate::config::{Config, Own, set};
use crate::providers::{self, Preset};

const OPENAI: &str = "openai";

/// Enough for an agent with tools, and what a machine with a small model can hold.
const OLLAMA_CONTEXT: u32 = 32_768;
/// How long a keyring may take: somebody may have to unlock it.
const KEYRING_PATIENCE: Duration = Duration::from_mins(1);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoint<'c> {
    pub(crate) name: &'c str,
    pub(crate) preset: Preset,
    own: Option<&'c Own>,
}

/// What there is of a key.
#[derive(Debug)]
pub(crate) enum Found {
    Key {
        key: Key,
        /// The variable or file it is from.
        from: String,
    },
    /// None is needed.
    Free,
    /// It should be in this variable, and is not.
    Missing(String),
}

impl<'c> Endpoint<'c> {
    pub(crate) fn find(name: &str, config: &'c Config) -> Option<Endpoint<'c>> {
        let name = providers::plain_name(name);
        let own = config.providers.get_key_value(name);
        match (Preset::named(name), own) {
            (Some(preset), own) => {
                Some(Endpoint { name: preset.name, preset: *preset, own: own.map(|(_, own)| own) })
            }
            (None, Some((name, own))) => {
                Some(Endpoint { name, preset: Preset::own(), own: Some(own) })
            }
            (None, None) => None,
        }
    }

    /// Everybody there could be: the user's own first, then the table.
    pub(crate) fn all(config: &'c Config) -> Vec<Endpoint<'c>> {
        let own = config.providers.keys().filter(|name| Preset::named(name).is_none());
        let table = providers::ALL.iter().filter(|it| it.variant_of.is_empty());
        let names = own.map(String::as_str).chain(table.map(|it| it.name));
        names.filter_map(|name| Endpoint::find(name, config)).collect()
    }

    pub(crate) fn title(&self) -> &str {
        if self.preset.title.is_empty() { self.name } else { self.preset.title }
    }

    /// How to speak with it. Whoever stands in for `OpenAI` at another address speaks what
    /// everybody speaks; the newer wire is spoken at home, or by its name.
    pub(crate) fn wire(&self) -> WireName {
        let own = self.own.and_then(|own| own.wire);
        let elsewhere = self.name == OPENAI && self.base().as_deref() != Some(self.preset.base);
        own.unwrap_or(if elsewhere { WireName::OpenAiChat } else { self.preset.wire })
    }

    /// Where it is. None: only the user knows, and has not said.
    pub(crate) fn base(&self) -> Option<String> {
        let own = self.own.and_then(|own| own.base_url.clone());
        let named = || self.preset.bases.iter().find_map(|name| Some((*name, set(name)?)));
        let named = || named().map(|(name, base)| spelled_out(name, base));
        own.or_else(named).or_else(|| Some(self.preset.base.to_owned()).filter(|it| !it.is_empty()))
    }

    /// On this machine: nothing leaves it, and nobody sends a bill.
    pub(crate) fn is_local(&self) -> bool {
        let base = self.base().unwrap_or_default();
        let host = base.split_once("://").map_or("", |(_, rest)| rest);
        let host = host.split(['/', '?']).next().unwrap_or_default();
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        self.preset.list.is_some()
            && (host == "localhost" || host.parse().is_ok_and(|it: IpAddr| it.is_loopback()))
    }

    /// The model to use when only the provider is known.
    pub(crate) fn model(&self) -> Option<&str> {
        let own = self.own.and_then(|own| own.model.as_deref());
        own.or(Some(self.preset.model)).filter(|it| !it.is_empty())
    }

    pub(crate) fn key(&self) -> Result<Found, Complaint> {
        if let Some(path) = self.own.and_then(|own| own.key_file.as_deref()) {
            let from = path.display().to_string();
            return key_in(path).map(|key| Found::Key { key, from });
        }
        if let Some(command) = self.key_command() {
            let from = command.first().cloned().unwrap_or_default();
            return key_from(&command).map(|key| Found::Key { key, from });
        }
        let own = self.own.and_then(|own| own.key_env.as_deref());
        let names: Vec<&str> = match own {
            Some(name) => vec![name],
            None => self.preset.keys.to_vec(),
        };
        let found = names.iter().find_map(|name| Some((*name, set(name)?)));
        Ok(match (found, names.first()) {
            (Some((from, key)), _) => Found::Key { key: Key::new(key), from: from.to_owned() },
            (None, Some(name)) => Found::Missing((*name).to_owned()),
            (None, None) => Found::Free,
        })
    }

    /// What prints the key, if the user says that something does.
    fn key_command(&self) -> Option<Vec<String>> {
        let own = self.own?;
        if !own.key_command.is_empty() {
            return Some(own.key_command.clone());
        }
        let words: [&str; 6] = if cfg!(target_os = "macos") {
            ["security", "find-generic-password", "-s", "locum", "-wa", self.name]
        } else {
            ["secret-tool", "lookup", "service", "locum", "provider", self.name]
        };
        own.keyring.then(|| words.map(str::to_owned).into())
    }

    /// How many tokens a server is asked to make room for. One that is not asked makes room for
    /// few, and forgets the beginning without a word.
    pub(crate) fn context(&self) -> Option<u32> {
        let own = self.own.and_then(|own| own.context);
        own.or((self.wire() == WireName::Ollama).then_some(OLLAMA_CONTEXT))
    }

    /// How to connect. `longest` is the longest answer to ask for, if that is known.
    pub(crate) fn settings(
        &self,
        config: &Config,
        longest: Option<u32>,
    ) -> Result<Settings, Complaint> {
        let key = match self.key()? {
            Found::Key { key, .. } => key,
            Found::Free => Key::new(""),
            Found::Missing(name) => return Err(Complaint::no_key(&name)),
        };
        let base = self.base().ok_or_else(|| {
            let variable = self.preset.bases.first().copied().unwrap_or_default();
            Complaint::no_address(self.title(), variable)
        })?;
        let mut settings = Settings::new(&base, key);
        self.name.clone_into(&mut settings.provider);
        settings.ca_file.clone_from(&config.ca_file);
        settings.max_tokens = longest.unwrap_or(settings.max_tokens);
        settings.context = self.context();
        let headers = self.own.into_iter().flat_map(|own| &own.headers);
        settings.headers = headers.map(|(name, it)| (name.clone(), Key::new(it))).collect();
        Ok(settings)
    }

    /// What to set when the address or the key is of no use.
    pub(crate) fn remedy(&self, what: Wrong) -> String {
        let name = match what {
            Wrong::Key => self.preset.keys.first(),
            Wrong::Base => self.preset.bases.first(),
        };
        match (name, what) {
            (Some(name), Wrong::Key) => format!("set {name} to a key, then run again"),
            (Some(name), Wrong::Base) => {
                format!("set {name} to an https:// address, then run again")
            }
            (None, _) => {
                format!("correct [providers.{}] in config.toml, then run again", self.name)
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    Key,
    Base,
}

/// Ollama's own variable says where the server listens, which is not quite where one asks.
fn spelled_out(name: &str, base: String) -> String {
    if name == "OLLAMA_HOST" { ollama_address(&base) } else { base }
}

fn key_in(path: &Path) -> Result<Key, Complaint> {
    let shown = path.display();
    let again = |cause: String| Complaint::key_file(path, cause, format!("ls -l {shown}"));
    let text = fs::read_to_string(path).map_err(|error| again(error.to_string()))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(path).map_err(|error| again(error.to_string()))?;
        let mode = mode.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let cause = format!("Others on this machine may read it (mode {mode:o}).");
            return Err(Complaint::key_file(path, cause, format!("chmod 600 {shown}")));
        }
    }
    match text.trim() {
        "" => Err(again("It is empty.".into())),
        key => Ok(Key::new(key)),
    }
}

/// A key as a program prints it.
fn key_from(command: &[String]) -> Result<Key, Complaint> {
    let shown = command.join(" ");
    let failed = |cause: String| Complaint::key_command(&shown, cause);
    let (program, arguments) =
        command.split_first().ok_or_else(|| failed("It is empty.".into()))?;
    let mut asked = process::Command::new(program);
    asked.args(arguments).stdin(Stdio::inherit()).stdout(Stdio::piped());
    let mut asked = asked.spawn().map_err(|error| failed(format!("{program}: {error}")))?;
    let mut text = asked.stdout.take().ok_or_else(|| failed("It says nothing.".into()))?;
    // What it says is read beside waiting, so that a program that stays cannot hold us.
    let (send, said) = mpsc::channel();
    thread::spawn(move || {
        let mut key = String::new();
        let read = text.by_ref().take(KEY_BYTES_MAX).read_to_string(&mut key);
        let _ = send.send(read.map(|_| key));
    });
    let said = said.recv_timeout(KEYRING_PATIENCE);
    if said.is_err() {
        let _ = asked.kill();
    }
    let ended = asked.wait().map_err(|error| failed(error.to_string()))?;
    match said {
        Ok(Ok(key)) if ended.success() && !key.trim().is_empty() => Ok(Key::new(key.trim())),
        Ok(Ok(_)) => Err(failed(format!("It ended with {ended} and printed no key."))),
        Ok(Err(error)) => Err(failed(error.to_string())),
        Err(_) => Err(failed(format!("It took longer than {} s.", KEYRING_PATIENCE.as_secs()))),
    }
}

/// No key is longer.
const KEY_BYTES_MAX: u64 = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_local_is_told_by_its_address() {
        let mut config = Config::default();
        let cases = [
            ("http://127.0.0.1:8000/v1", true),
            ("http://localhost", true),
            ("http://[::1]:8000", true),
            ("http://me@127.0.0.2:1/x", true),
            ("http://10.0.0.1:8000", false),
            ("https://127.0.0.1.example", false),
        ];
        for (base, expected) in cases {
            let own = Own { base_url: Some(base.into()), ..Own::default() };
            config.providers.insert("vllm".into(), own);
            let vllm = Endpoint::find("vllm", &config).unwrap();
            assert_eq!(vllm.is_local(), expected, "{base}");
        }
    }
}
