//! `config.toml`: which model, which providers, what they cost and how far agents may go. Only the
//! user's own file is read; a project's file is not read at all yet, and could never say where
//! keys go. Every mistake is told with its line, and all of them at once.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use locum_kernel::Rule;
use locum_runtime::price::{self, Known};
use locum_runtime::rules::{self, Examples};
use locum_runtime::wire::WireName;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::address::nearest;
use crate::complaint::Complaint;
use crate::{print, providers, rule};

#[derive(Debug, Default)]
pub(crate) struct Config {
    pub(crate) model: Option<String>,
    pub(crate) fallback: Vec<String>,
    pub(crate) aliases: BTreeMap<String, String>,
    pub(crate) providers: BTreeMap<String, Own>,
    pub(crate) prices: BTreeMap<String, Known>,
    pub(crate) limits: Limits,
    /// Whether what is worth remembering of an exchange is kept by itself.
    pub(crate) extract: bool,
    pub(crate) rules: Vec<Rule>,
    /// More folders of recipes.
    pub(crate) recipes: Vec<PathBuf>,
    /// Skills that are off until somebody names them here.
    pub(crate) enable: Vec<String>,
    /// The line of each, and how many examples it has.
    pub(crate) rule_lines: Vec<(usize, usize)>,
    /// Certificates to trust besides those the machine trusts.
    pub(crate) ca_file: Option<PathBuf>,
    /// Where it was read from, if it was.
    pub(crate) path: Option<PathBuf>,
    /// What was not understood and passed over.
    pub(crate) warnings: Vec<String>,
}

/// What the user says of a provider.
#[derive(Debug, Default)]
pub(crate) struct Own {
    pub(crate) wire: Option<WireName>,
    pub(crate) base_url: Option<String>,
    pub(crate) key_env: Option<String>,
    pub(crate) key_file: Option<PathBuf>,
    /// Prints the key: `pass show …`, or whatever keeps secrets here.
    pub(crate) key_command: Vec<String>,
    /// It is in the keyring of this machine.
    pub(crate) keyring: bool,
    /// How many tokens a local server is to make room for.
    pub(crate) context: Option<u32>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) model: Option<String>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) slots: Option<u32>,
    pub(crate) max_turns: Option<u32>,
    pub(crate) max_cost: Option<u64>,
}

/// The user's configuration. Warnings are printed by whoever wants them.
pub(crate) fn read(flag: Option<&Path>) -> Result<Config, Complaint> {
    let named = flag.map(Path::to_owned).or_else(|| set("LOCUM_CONFIG").map(PathBuf::from));
    let must_exist = named.is_some();
    let Some(path) = named.or_else(default_path) else { return Ok(Config::default()) };
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !must_exist => {
            return Ok(Config::default());
        }
        Err(error) => return Err(Complaint::config_unread(&path, &error)),
    };
    parse(&path, &text)
}

impl Config {
    /// Where keys of the user's own endpoints are.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.providers.values().filter_map(|own| own.key_env.as_deref())
    }

    /// `file:line` of a rule that is written here.
    pub(crate) fn place_of(&self, rule: &Rule) -> Option<String> {
        let at = self.rules.iter().position(|other| other == rule)?;
        let (line, _) = self.rule_lines.get(at)?;
        Some(format!("{}:{line}", self.path.as_ref()?.display()))
    }

    /// Says what was passed over.
    pub(crate) fn warn(&self) {
        for warning in &self.warnings {
            print::note(&format!("warning: {warning}"));
        }
    }
}

pub(crate) fn set(name: &str) -> Option<String> {
    env::var(name).ok().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// `$XDG_CONFIG_HOME/locum/config.toml`, on every system but Windows.
pub(crate) fn default_path() -> Option<PathBuf> {
    let folder = if cfg!(windows) {
        set("APPDATA").map(PathBuf::from)
    } else {
        let xdg = set("XDG_CONFIG_HOME").map(PathBuf::from);
        xdg.or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".config")))
    };
    folder.map(|folder| folder.join("locum/config.toml"))
}

/// One thing in the file that is not as it should be.
#[derive(Debug)]
pub(crate) struct Mistake {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) what: String,
}

/// What is wrong with a text: what keeps it from being used, then what is passed over.
pub(crate) fn mistakes(path: &Path, text: &str) -> (Vec<Mistake>, Vec<Mistake>) {
    let (_, reader) = read_text(path, text);
    (reader.mistakes, reader.warnings)
}

fn parse(path: &Path, text: &str) -> Result<Config, Complaint> {
    let (mut config, reader) = read_text(path, text);
    let told = |it: &Mistake| format!("{}:{}: {}", path.display(), it.line, it.what);
    if let Some(first) = reader.mistakes.first() {
        let cause: String = reader.mistakes.iter().map(|it| told(it) + "\n").collect();
        return Err(Complaint::config(path, first.line, cause));
    }
    config.warnings = reader.warnings.iter().map(told).collect();
    Ok(config)
}

fn read_text<'a>(path: &'a Path, text: &'a str) -> (Config, Reader<'a>) {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader { path, text, mistakes: Vec::new(), warnings: Vec::new() };
    for error in errors {
        reader.mistake(error.span().unwrap_or_default(), error.message());
    }
    let mut config = Config { path: Some(path.to_owned()), ..Config::default() };
    if reader.mistakes.is_empty() {
        reader.top(table.get_ref(), &mut config);
    }
    reader.mistakes.sort_by_key(|mistake| mistake.line);
    (config, reader)
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    mistakes: Vec<Mistake>,
    warnings: Vec<Mistake>,
}

type Value<'a> = Spanned<DeValue<'a>>;

/// Every setting there is.
pub(crate) const TOP: [&str; 11] = [
    "model",
    "fallback",
    "aliases",
    "providers",
    "prices",
    "limits",
    "rules",
    "recipes",
    "enable",
    "ca_file",
    "memory",
];
const MEMORY: [&str; 1] = ["extract"];
const RULE: [&str; 3] = ["rule", "match", "not_match"];
const OWN: [&str; 9] = [
    "wire",
    "base_url",
    "key_env",
    "key_file",
    "key_command",
    "keyring",
    "headers",
    "model",
    "context",
];
const LIMITS: [&str; 3] = ["slots", "max_turns", "max_cost_usd"];

impl Reader<'_> {
    fn at(&self, span: &Range<usize>, what: String) -> Mistake {
        let start = span.start.min(self.text.len());
        let before = self.text.get(..start).unwrap_or_default();
        let row = before.rsplit('\n').next().unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        Mistake { line, column: row.chars().count() + 1, what }
    }

    fn mistake(&mut self, span: Range<usize>, what: &str) {
        let mistake = self.at(&span, what.to_owned());
        self.mistakes.push(mistake);
    }

    fn unknown(&mut self, span: &Range<usize>, key: &str, known: &[&str]) {
        let near = nearest(key, known.iter().copied());
        let near = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
        let warning = self.at(span, format!("there is no setting {key:?}{near}"));
        self.warnings.push(warning);
    }

    fn top(&mut self, table: &DeTable<'_>, config: &mut Config) {
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "model" => config.model = self.text("model", value),
                "fallback" => config.fallback = self.texts("fallback", value),
                "ca_file" => config.ca_file = self.file("ca_file", value),
                "aliases" => {
                    for (name, value) in self.table("aliases", value).into_iter().flatten() {
                        let model = self.text(&format!("aliases.{}", name.get_ref()), value);
                        config.aliases.extend(model.map(|it| (name.get_ref().to_string(), it)));
                    }
                }
                "providers" => {
                    for (name, value) in self.table("providers", value).into_iter().flatten() {
                        let plain = providers::plain_name(name.get_ref()).to_owned();
                        let own = self.own(&plain, name.span(), value);
                        config.providers.insert(plain, own);
                    }
                }
                "prices" => {
                    for (model, value) in self.table("prices", value).into_iter().flatten() {
                        self.price(model, value, config);
                    }
                }
                "limits" => config.limits = self.limits(value),
                "memory" => {
                    for (key, value) in self.table("memory", value).into_iter().flatten() {
                        match key.get_ref().as_ref() {
                            "extract" => config.extract = self.yes_or_no("memory.extract", value),
                            other => self.unknown(&key.span(), other, &MEMORY),
                        }
                    }
                }
                "rules" => {
                    (config.rules, config.rule_lines) = self.rules(value).into_iter().unzip();
                }
                "recipes" => config.recipes = self.files("recipes", value),
                "enable" => config.enable = self.texts("enable", value),
                other => self.unknown(&key.span(), other, &TOP),
            }
        }
    }

    fn own(&mut self, provider: &str, span: Range<usize>, value: &Value<'_>) -> Own {
        let mut own = Own::default();
        let at = format!("providers.{provider}");
        let Some(table) = self.table(&at, value) else { return own };
        for (key, value) in table {
            let name = format!("{at}.{}", key.get_ref());
            match key.get_ref().as_ref() {
                "wire" => own.wire = self.wire(&name, value),
                "base_url" => own.base_url = self.text(&name, value),
                "key_env" => own.key_env = self.text(&name, value),
                "key_file" => own.key_file = self.file(&name, value),
                "key_command" => own.key_command = self.texts(&name, value),
                "keyring" => own.keyring = self.yes_or_no(&name, value),
                "model" => own.model = self.text(&name, value),
                "context" => own.context = self.count(&name, value),
                "headers" => {
                    for (header, value) in self.table(&name, value).into_iter().flatten() {
                        let text = self.text(&format!("{name}.{}", header.get_ref()), value);
                        own.headers.extend(text.map(|it| (header.get_ref().to_string(), it)));
                    }
                }
                "key" | "api_key" => {
                    let what = format!(
                        "{name}: keys do not stand here; use key_env, key_file, key_command \
                         or keyring"
                    );
                    self.mistake(key.span(), &what);
                }
                other => self.unknown(&key.span(), other, &OWN),
            }
        }
        if providers::Preset::named(provider).is_none() && own.base_url.is_none() {
            let what = format!("{at} is nobody known, so it needs a base_url");
            self.mistake(span, &what);
        }
        own
    }

    fn price(
        &mut self,
        model: &Spanned<std::borrow::Cow<'_, str>>,
        value: &Value<'_>,
        config: &mut Config,
    ) {
        let at = format!("prices.{:?}", model.get_ref());
        let Some(row) = self.table(&at, value) else { return };
        for (key, _) in row {
            if !price::FIELDS.contains(&key.get_ref().as_ref()) {
                self.unknown(&key.span(), key.get_ref(), &price::FIELDS);
            }
        }
        let (provider, name) = model.get_ref().split_once('/').unwrap_or((model.get_ref(), ""));
        if name.is_empty() {
            let what = format!("{at} must be named \"provider/model\"");
            return self.mistake(model.span(), &what);
        }
        match price::known(row) {
            Ok(known) => {
                let model = format!("{}/{name}", providers::plain_name(provider));
                config.prices.insert(model, known);
            }
            Err((field, why)) => {
                let span = row.get(field.as_str()).map_or_else(|| value.span(), Spanned::span);
                self.mistake(span, &format!("{at}.{field} {why}"));
            }
        }
    }

    /// Rules as texts, or as tables with examples of what they mean.
    fn rules(&mut self, value: &Value<'_>) -> Vec<(Rule, (usize, usize))> {
        let Some(list) = value.get_ref().as_array() else {
            self.wrong("rules", "a list of rules", value);
            return Vec::new();
        };
        list.iter().filter_map(|value| self.rule(value)).collect()
    }

    fn rule(&mut self, value: &Value<'_>) -> Option<(Rule, (usize, usize))> {
        let (mut matching, mut not_matching) = (Vec::new(), Vec::new());
        let (text, span) = match value.get_ref().as_table() {
            None => (self.text("rules", value)?, value.span()),
            Some(table) => {
                for (key, value) in table {
                    match key.get_ref().as_ref() {
                        "rule" => {}
                        "match" => matching = self.texts("rules.match", value),
                        "not_match" => not_matching = self.texts("rules.not_match", value),
                        other => self.unknown(&key.span(), other, &RULE),
                    }
                }
                let Some(said) = table.get("rule") else {
                    self.mistake(value.span(), "rules needs a `rule`: deny exec \"rm *\"");
                    return None;
                };
                (self.text("rules.rule", said)?, said.span())
            }
        };
        let examples = Examples { matching: &matching, not_matching: &not_matching };
        match rules::checked(&text, examples, &[]) {
            Ok(rule) if let Some(why) = rule::of_no_tool(&rule) => {
                self.mistake(span, &why);
                None
            }
            Ok(rule) => Some((
                rule,
                (self.at(&span, String::new()).line, matching.len() + not_matching.len()),
            )),
            Err(wrong) => {
                self.mistake(span, &format!("{text:?}, column {}: {wrong}", wrong.column));
                None
            }
        }
    }

    fn limits(&mut self, value: &Value<'_>) -> Limits {
        let mut limits = Limits::default();
        let Some(table) = self.table("limits", value) else { return limits };
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "slots" => limits.slots = self.count("limits.slots", value),
                "max_turns" => limits.max_turns = self.count("limits.max_turns", value),
                "max_cost_usd" => {
                    limits.max_cost = price::micro_usd(value.get_ref());
                    if limits.max_cost.is_none() {
                        self.wrong("limits.max_cost_usd", "an amount of dollars", value);
                    }
                }
                other => self.unknown(&key.span(), other, &LIMITS),
            }
        }
        limits
    }

    fn wrong(&mut self, name: &str, wanted: &str, found: &Value<'_>) {
        let what = format!("{name} must be {wanted}, found {}", found.get_ref().type_str());
        self.mistake(found.span(), &what);
    }

    fn table<'v>(&mut self, name: &str, value: &'v Value<'v>) -> Option<&'v DeTable<'v>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.wrong(name, "a table", value);
        }
        table
    }

    /// Some text, and not just space.
    fn text(&mut self, name: &str, value: &Value<'_>) -> Option<String> {
        match value.get_ref().as_str() {
            Some(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
            Some(_) => {
                self.mistake(value.span(), &format!("{name} is empty"));
                None
            }
            None => {
                self.wrong(name, "a text in quotes", value);
                None
            }
        }
    }

    fn yes_or_no(&mut self, name: &str, value: &Value<'_>) -> bool {
        let said = value.get_ref().as_bool();
        if said.is_none() {
            self.wrong(name, "true or false", value);
        }
        said.unwrap_or_default()
    }

    fn texts(&mut self, name: &str, value: &Value<'_>) -> Vec<String> {
        let Some(array) = value.get_ref().as_array() else {
            self.wrong(name, "a list of texts", value);
            return Vec::new();
        };
        array.iter().filter_map(|value| self.text(name, value)).collect()
    }

    /// A path; one that is not absolute is meant from the folder of the configuration.
    fn file(&mut self, name: &str, value: &Value<'_>) -> Option<PathBuf> {
        let text = self.text(name, value)?;
        if let Some(rest) = text.strip_prefix("~/") {
            return set("HOME").map(|home| PathBuf::from(home).join(rest));
        }
        Some(self.path.parent().unwrap_or(Path::new(".")).join(text))
    }

    fn files(&mut self, name: &str, value: &Value<'_>) -> Vec<PathBuf> {
        let Some(array) = value.get_ref().as_array() else {
            self.wrong(name, "a list of folders", value);
            return Vec::new();
        };
        array.iter().filter_map(|value| self.file(name, value)).collect()
    }

    fn count(&mut self, name: &str, value: &Value<'_>) -> Option<u32> {
        let count = price::whole(value.get_ref()).and_then(|it| u32::try_from(it).ok());
        let count = count.filter(|count| *count > 0);
        if count.is_none() {
            self.wrong(name, "a whole number, 1 or more", value);
        }
        count
    }

    fn wire(&mut self, name: &str, value: &Value<'_>) -> Option<WireName> {
        let wire = WireName::named(&self.text(name, value)?);
        if wire.is_none() {
            let words = WireName::ALL.map(WireName::word).join(", ");
            self.mistake(value.span(), &format!("{name} must be one of {words}"));
        }
        wire
    }
}

#[cfg(test)]
mod tests;
