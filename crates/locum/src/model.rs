//! Who answers: the model that was named, or the best there is, made into a provider. In order:
//! the flag, `LOCUM_MODEL`, the configuration, keys in the environment, servers on this machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use locum_kernel::{Failure, FailureKind, ModelSpec, Reply};
use locum_runtime::clock::Clock;
use locum_runtime::fallback::Fallback;
use locum_runtime::live::Live;
use locum_runtime::price::{Known, Price, Priced, Prices};
use locum_runtime::provider::{Asked, Provider, Task};
use locum_runtime::schema::{BuiltIn, Describe};
use locum_runtime::script::{Script, Scripted};
use locum_runtime::wire::greet::{self, Silence};
use locum_runtime::wire::{self, Album, BadAddress};
use tokio::task::JoinSet;

use crate::address::nearest;
use crate::complaint::Complaint;
use crate::config::{Config, set};
use crate::endpoint::{Endpoint, Found, Wrong};
use crate::notes::Notes;
use crate::{absent, print, providers, tour};

/// The best there is.
pub(crate) const AUTO: &str = "auto";
/// Aliases everybody has; what they mean depends on whose key there is.
pub(crate) const FAST: &str = "fast";
pub(crate) const STRONG: &str = "strong";
/// How long a server on this machine may take to say that it is there.
pub(crate) const PATIENCE: Duration = Duration::from_millis(250);
/// The longest answer that is asked for, in tokens, of a model that could say more: so much money
/// is set aside for each request.
const ANSWER_TOKENS_MAX: u64 = 16_000;
/// What agent files written for one provider call its models.
const FAMILIES: [(&str, &str); 3] = [("haiku", FAST), ("sonnet", AUTO), ("opus", STRONG)];
/// An alias may stand for another, but not forever.
const ALIASES_DEEP: usize = 8;

/// What requests are made with besides what is said.
#[derive(Clone, Debug)]
pub(crate) struct Means {
    pub(crate) describe: Arc<dyn Describe>,
    /// Where pictures are, if there can be any.
    pub(crate) album: Option<Arc<dyn Album>>,
    /// What agents are told besides their own instructions.
    pub(crate) notes: Arc<Notes>,
}

impl Default for Means {
    fn default() -> Means {
        Means { describe: Arc::new(BuiltIn), album: None, notes: Arc::default() }
    }
}

#[derive(Debug)]
pub(crate) struct Chosen {
    /// What it is called, spelled out.
    pub(crate) model: String,
    pub(crate) provider: Arc<dyn Provider>,
    /// What the agents are, if a script plays them.
    pub(crate) script: Option<Script>,
    /// All models by name, unless a script plays them.
    pub(crate) models: Option<Arc<Models>>,
    /// What is known of this model and of those that may be asked besides.
    pub(crate) specs: BTreeMap<String, ModelSpec>,
}

/// What does where no model can be found: whoever is at the root may not need one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Instead {
    Nothing,
    /// The one its definition names.
    Model(String),
    /// It is a program. Who needs a model all the same hears that there is none.
    Program,
}

pub(crate) async fn choose(
    named: Option<&str>,
    instead: Instead,
    config: &Arc<Config>,
    means: Means,
    clock: &Arc<dyn Clock>,
) -> Result<Chosen, Complaint> {
    let wanted = named.map(str::to_owned).or_else(|| set("LOCUM_MODEL"));
    let wanted = wanted.or_else(|| config.model.clone()).unwrap_or_else(|| AUTO.into());
    if let Some(script) = script(&wanted) {
        let script = script?;
        let provider = Arc::new(Scripted::new(script.clone(), Arc::clone(clock)));
        let specs = BTreeMap::new();
        return Ok(Chosen { model: wanted, provider, script: Some(script), models: None, specs });
    }
    let with =
        |main: String| Models::new(Arc::clone(config), main, means.clone(), Arc::clone(clock));
    // Here a person can still be told what is missing.
    let usual = resolve(&wanted, config).await.map(&with);
    let usual = usual.and_then(|models| models.provider(&models.main).map(|_| models));
    let models = match (usual, instead) {
        (Ok(models), _) => models,
        (Err(complaint), Instead::Nothing) => return Err(complaint),
        (Err(_), Instead::Program) => with(AUTO.into()),
        (Err(complaint), Instead::Model(name)) => {
            let models = with(resolve(&name, config).await.map_err(|_| complaint)?);
            models.provider(&models.main)?;
            models
        }
    };
    let model = models.main.clone();
    let others = models.others();
    let specs = models.specs(&others);
    let models = Arc::new(models);
    let all: Arc<dyn Provider> = Arc::clone(&models) as Arc<dyn Provider>;
    let provider: Arc<dyn Provider> = if others.is_empty() {
        all
    } else {
        Arc::new(Fallback::new(all, others, Arc::clone(clock)))
    };
    Ok(Chosen { model, provider, script: None, models: Some(models), specs })
}

/// The script a model's name stands for, if it does.
fn script(model: &str) -> Option<Result<Script, Complaint>> {
    let file = model
        .strip_prefix("script:")
        .map(|file| Script::read(Path::new(file)).map_err(|error| Complaint::script(&error)));
    file.or_else(|| tour::script(model))
}

/// What a name stands for, as `provider/model`; looks around if it must.
pub(crate) async fn resolve(wanted: &str, config: &Config) -> Result<String, Complaint> {
    let name = unaliased(wanted, config);
    match name {
        AUTO => auto(config).await,
        FAST | STRONG => {
            let main = auto(config).await?;
            Ok(relative(name, &main, config))
        }
        name => match Endpoint::find(name, config) {
            // Only the provider: its usual model, or the first it has.
            Some(endpoint) => of_provider(&endpoint).await,
            None => spelled_out(name, config),
        },
    }
}

fn unaliased<'a>(wanted: &'a str, config: &'a Config) -> &'a str {
    let next = |name: &&'a str| config.aliases.get(*name).map(String::as_str);
    std::iter::successors(Some(wanted), next).take(ALIASES_DEEP).last().unwrap_or(wanted)
}

/// `provider/model`, if there is such a provider.
fn spelled_out(name: &str, config: &Config) -> Result<String, Complaint> {
    let (provider, model) = name.split_once('/').unwrap_or((name, ""));
    match Endpoint::find(provider, config) {
        Some(endpoint) if !model.is_empty() => Ok(format!("{}/{model}", endpoint.name)),
        Some(endpoint) => {
            let cause = format!("{} has models, but none without a name.", endpoint.title());
            Err(Complaint::model(name, cause))
        }
        None => {
            let known = Endpoint::all(config);
            let names = known.iter().map(|it| it.name).chain(config.aliases.keys().map(|it| &**it));
            let near = nearest(provider, names).map(|near| format!(" Did you mean {near}?"));
            let cause = "A model is PROVIDER/NAME, an alias, auto, demo or script:FILE.";
            Err(Complaint::model(name, format!("{cause}{}", near.unwrap_or_default())))
        }
    }
}

/// `fast` and `strong` are models of whoever `main` is from.
fn relative(alias: &str, main: &str, config: &Config) -> String {
    let provider = main.split_once('/').map_or(main, |(provider, _)| provider);
    let preset = Endpoint::find(provider, config).map(|endpoint| endpoint.preset);
    let name = preset.map(|preset| if alias == FAST { preset.fast } else { preset.strong });
    match name.filter(|name| !name.is_empty()) {
        Some(name) => format!("{provider}/{name}"),
        None => main.to_owned(),
    }
}

async fn of_provider(endpoint: &Endpoint<'_>) -> Result<String, Complaint> {
    if let Some(model) = endpoint.model() {
        return Ok(format!("{}/{model}", endpoint.name));
    }
    let found = greet(&[*endpoint]).await.remove(0);
    let cause = match found {
        Ok(models) => match models.first() {
            Some(model) => return Ok(format!("{}/{model}", endpoint.name)),
            None => format!("{} runs, but has no model.", endpoint.title()),
        },
        Err(why) => format!("{} was asked for its models: {why}.", endpoint.title()),
    };
    Err(Complaint::model(endpoint.name, cause))
}

/// The best there is: the first provider with a key and a usual model, else the first server on
/// this machine that has a model.
async fn auto(config: &Config) -> Result<String, Complaint> {
    if let Some(model) = config.model.as_deref().map(|it| unaliased(it, config))
        && ![AUTO, FAST, STRONG].contains(&model)
    {
        return match Endpoint::find(model, config) {
            Some(endpoint) => of_provider(&endpoint).await,
            None => spelled_out(model, config),
        };
    }
    let mut looked = Vec::new();
    let mut variables = 0;
    let all = Endpoint::all(config);
    for endpoint in &all {
        match endpoint.key() {
            Ok(Found::Missing(_)) => variables += endpoint.preset.keys.len(),
            Ok(Found::Free) if endpoint.preset.list.is_some() => {}
            Ok(Found::Key { .. } | Found::Free) => match endpoint.model() {
                Some(model) => return Ok(format!("{}/{model}", endpoint.name)),
                None => looked.push(format!("{}: which model?", endpoint.name)),
            },
            Err(complaint) => looked.push(format!("{}: {}", complaint.what, complaint.cause)),
        }
    }
    let local: Vec<Endpoint<'_>> = all.into_iter().filter(|it| it.preset.probed).collect();
    for (endpoint, found) in local.iter().zip(greet(&local).await) {
        let base = endpoint.base().unwrap_or_default();
        match found {
            Ok(models) if !models.is_empty() => {
                return Ok(format!("{}/{}", endpoint.name, models[0]));
            }
            Ok(_) => looked.push(format!("{} {base}: no model", endpoint.title())),
            Err(why) => looked.push(format!("{} {base}: {why}", endpoint.title())),
        }
    }
    let first = providers::ALL[0].keys[0];
    looked.insert(0, format!("looked at: {first} and {} more, not set", variables.max(1) - 1));
    Err(Complaint::no_model(&looked.join("\n")))
}

/// What each of these servers has, all asked at once.
pub(crate) async fn greet(endpoints: &[Endpoint<'_>]) -> Vec<Result<Vec<String>, Silence>> {
    let mut under_way = JoinSet::new();
    for (at, endpoint) in endpoints.iter().enumerate() {
        let (Some(base), Some(list)) = (endpoint.base(), endpoint.preset.list) else { continue };
        let key = match endpoint.key() {
            Ok(Found::Key { key, .. }) => Some(key),
            Ok(Found::Free | Found::Missing(_)) | Err(_) => None,
        };
        under_way
            .spawn(async move { (at, greet::models(&base, list, key.as_ref(), PATIENCE).await) });
    }
    let mut found = vec![Err(Silence::Nobody); endpoints.len()];
    while let Some(answer) = under_way.join_next().await {
        if let Ok((at, models)) = answer {
            found[at] = models;
        }
    }
    found
}

/// All models, by name: a provider for each is made when it is first asked.
#[derive(Debug)]
pub(crate) struct Models {
    config: Arc<Config>,
    prices: Prices,
    /// Who the run is with: `fast` and `strong` are meant from there.
    main: String,
    made: Mutex<BTreeMap<String, Arc<dyn Provider>>>,
    means: Means,
    clock: Arc<dyn Clock>,
}

/// The list, with what the user knows better.
pub(crate) fn prices(config: &Config) -> Prices {
    let mut prices = Prices::listed();
    for (model, known) in &config.prices {
        prices.insert(model, *known);
    }
    prices
}

/// What is known of a model, where it is meant to be asked.
pub(crate) fn known(model: &str, prices: &Prices, config: &Config) -> Known {
    let provider = model.split_once('/').and_then(|(it, _)| Endpoint::find(it, config));
    let listed = prices.find(model).or_else(|| {
        // The same models at the same price, spoken with in another way.
        let name = model.split_once('/')?.1;
        prices.find(&format!("{}/{name}", provider?.preset.variant_of))
    });
    let mut known = listed.copied().unwrap_or_default();
    let context = provider.as_ref().and_then(Endpoint::context);
    known.window_tokens = context.map(u64::from).or(known.window_tokens);
    if known.price.is_none() && provider.is_some_and(|endpoint| endpoint.is_local()) {
        return Known { price: Some(Price::default()), ..known };
    }
    known
}

/// The longest answer to ask a model for, if it says what it can.
fn longest(known: &Known) -> Option<u32> {
    let longest = known.longest_tokens?.min(ANSWER_TOKENS_MAX);
    u32::try_from(longest).ok()
}

impl Models {
    fn new(config: Arc<Config>, main: String, means: Means, clock: Arc<dyn Clock>) -> Models {
        let prices = prices(&config);
        Models { config, prices, main, made: Mutex::default(), means, clock }
    }

    /// What a definition means by a name; nothing is looked for any more.
    fn meant(&self, name: &str) -> Result<String, Complaint> {
        match unaliased(name, &self.config) {
            AUTO => Ok(self.main.clone()),
            alias @ (FAST | STRONG) => Ok(relative(alias, &self.main, &self.config)),
            name => spelled_out(name, &self.config),
        }
    }

    /// What a definition means by a model, if that can be asked here. Families of models that
    /// files of other programs name are the fast one, the usual one and the strong one here.
    pub(crate) fn usable(&self, name: &str) -> Option<String> {
        let family = FAMILIES.iter().find(|(family, _)| *family == name);
        let name = family.map_or(name, |(_, alias)| alias);
        let model = self.meant(name).ok()?;
        self.provider(&model).is_ok().then_some(model)
    }

    /// Whoever answers under a name that is spelled out.
    fn provider(&self, model: &str) -> Result<Arc<dyn Provider>, Complaint> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(provider) = made.get(model) {
            return Ok(Arc::clone(provider));
        }
        let name = model.split_once('/').map_or(model, |(provider, _)| provider);
        let endpoint = Endpoint::find(name, &self.config);
        let endpoint = endpoint.ok_or_else(|| Complaint::model(model, String::new()))?;
        let known = known(model, &self.prices, &self.config);
        let provider = connect(&endpoint, &self.config, longest(&known), &self.means, &self.clock)?;
        let provider: Arc<dyn Provider> = Arc::new(Priced { provider, price: known.price });
        made.insert(model.to_owned(), Arc::clone(&provider));
        Ok(provider)
    }

    /// Who is asked when the model that was meant cannot answer. Who cannot be asked is left out.
    fn others(&self) -> Vec<String> {
        let mut others = Vec::new();
        for name in &self.config.fallback {
            let usable = self.meant(name).and_then(|model| self.provider(&model).map(|_| model));
            match usable {
                // The main model may well stand in for the one that a definition names.
                Ok(model) if !others.contains(&model) => others.push(model),
                Ok(_) => {}
                Err(Complaint { what, cause, .. }) => {
                    print::note(&format!("warning: no fallback to {name}: {what} {cause}"));
                }
            }
        }
        others
    }

    fn specs(&self, others: &[String]) -> BTreeMap<String, ModelSpec> {
        let aliases = self.config.aliases.keys().map(String::as_str).chain([FAST, STRONG]);
        let names = aliases.chain([self.main.as_str()]).chain(others.iter().map(String::as_str));
        let spec = |name: &str| {
            let known = known(&self.meant(name).ok()?, &self.prices, &self.config);
            let longest = longest(&known).map_or(8_000, u64::from);
            let worth_telling = known != Known::default();
            worth_telling.then(|| (name.to_owned(), known.spec(longest)))
        };
        names.filter_map(spec).collect()
    }
}

impl Provider for Models {
    fn answer(&self, mut asked: Asked, live: Live) -> Task<Result<Reply, Failure>> {
        let meant = self.meant(&asked.request.model);
        match meant.and_then(|model| self.provider(&model).map(|provider| (model, provider))) {
            Ok((model, provider)) => {
                asked.request.model = model;
                self.means.notes.tell(&mut asked.request);
                let who = (asked.definition.clone(), asked.request.model.clone());
                let answer = provider.answer(asked, live);
                Box::pin(async move { answer.await.map_err(|failure| absent::told(failure, &who)) })
            }
            Err(Complaint { what, cause, .. }) => {
                let (kind, message) = (FailureKind::UnknownModel, format!("{what} {cause}"));
                let failure = Failure { kind, status: None, retry_after_ms: None, message };
                Box::pin(std::future::ready(Err(failure)))
            }
        }
    }
}

/// A connection to be; nothing is opened yet.
pub(crate) fn connect(
    endpoint: &Endpoint<'_>,
    config: &Config,
    longest: Option<u32>,
    means: &Means,
    clock: &Arc<dyn Clock>,
) -> Result<Arc<dyn Provider>, Complaint> {
    let mut settings = endpoint.settings(config, longest)?;
    settings.describe = Arc::clone(&means.describe);
    if let Some(album) = &means.album {
        settings.album = Arc::clone(album);
    }
    wire::provider(endpoint.wire(), &settings, Arc::clone(clock)).map_err(|error| {
        let next = match error {
            BadAddress::Key => endpoint.remedy(Wrong::Key),
            BadAddress::NotOne(_) | BadAddress::Header(_) => endpoint.remedy(Wrong::Base),
        };
        Complaint::provider(&error, next)
    })
}
