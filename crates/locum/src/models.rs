//! `locum models`: who could answer. Keys are looked at and not tried (`locum doctor` tries them);
//! servers on this machine are asked what they have.

use std::path::Path;

use locum_runtime::price::{Known, Prices};
use serde_json::{Value, json};

use crate::complaint::Complaint;
use crate::config::{self, Config};
use crate::endpoint::{Endpoint, Found};
use crate::flags::Models;
use crate::model::{self, AUTO, FAST, STRONG};
use crate::print;
use crate::screen::cut;
use crate::text;

/// A provider that could be asked.
struct Reachable {
    provider: String,
    title: String,
    base: String,
    wire: String,
    /// Why not, after all.
    problem: Option<String>,
    /// Where its key is from, and how it ends.
    key: Option<(String, String)>,
    models: Vec<Offer>,
}

struct Offer {
    name: String,
    is_default: bool,
    known: Known,
}

pub(crate) fn list(flags: &Models, config: Option<&Path>) -> Result<u8, Complaint> {
    let config = config::read(config)?;
    config.warn();
    let tasks = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let tasks = tasks.map_err(|error| Complaint::machine(&error))?;
    let (reachable, named) = tasks.block_on(async {
        let reachable = reachable(&config).await;
        let mut named = Vec::new();
        let own = config.aliases.keys().map(String::as_str);
        let usual = [FAST, STRONG].into_iter().filter(|it| !config.aliases.contains_key(*it));
        for name in [AUTO].into_iter().chain(usual).chain(own) {
            named.push((name.to_owned(), model::resolve(name, &config).await));
        }
        (reachable, named)
    });
    if flags.json {
        print::line(&text::json(&to_json(&reachable, &named)));
    } else {
        print_all(&reachable, &named);
    }
    // Nothing to talk to is what `run` would say as well.
    match named.into_iter().next() {
        Some((_, Err(complaint))) if reachable.iter().all(|it| it.problem.is_some()) => {
            Err(complaint)
        }
        Some(_) | None => Ok(0),
    }
}

async fn reachable(config: &Config) -> Vec<Reachable> {
    let prices = model::prices(config);
    let all = Endpoint::all(config);
    let is_listed = |it: &&Endpoint<'_>| it.preset.list.is_some();
    let servers: Vec<Endpoint<'_>> = all.iter().filter(is_listed).copied().collect();
    let mut found = servers.iter().map(|it| it.name).zip(model::greet(&servers).await);
    let mut reachable = Vec::new();
    for endpoint in &all {
        let mut models: Vec<String> = Vec::new();
        if endpoint.preset.list.is_some() {
            let Some((_, Ok(names))) = found.find(|(name, _)| *name == endpoint.name) else {
                continue;
            };
            models = names;
        }
        let (key, problem) = match endpoint.key() {
            Ok(Found::Missing(_)) => continue,
            Ok(Found::Free) => (None, None),
            Ok(Found::Key { key, from }) => (Some((from, key.ending())), None),
            Err(complaint) => (None, Some(format!("{} {}", complaint.what, complaint.cause))),
        };
        if models.is_empty() && endpoint.preset.list.is_none() {
            let default = endpoint.model();
            let known = prices.of(endpoint.name).filter(|name| Some(*name) != default);
            models = default.into_iter().chain(known).map(str::to_owned).collect();
        }
        reachable.push(Reachable {
            provider: endpoint.name.to_owned(),
            title: endpoint.title().to_owned(),
            base: endpoint.base().unwrap_or_default(),
            wire: endpoint.wire().word().to_owned(),
            problem,
            key,
            models: offers(endpoint, models, &prices, config),
        });
    }
    reachable
}

fn offers(
    endpoint: &Endpoint<'_>,
    models: Vec<String>,
    prices: &Prices,
    config: &Config,
) -> Vec<Offer> {
    let offer = |name: String| {
        let full = format!("{}/{name}", endpoint.name);
        let known = model::known(&full, prices, config);
        Offer { is_default: endpoint.model() == Some(&name), known, name }
    };
    models.into_iter().map(offer).collect()
}

type Named = (String, Result<String, Complaint>);

fn to_json(reachable: &[Reachable], named: &[Named]) -> Value {
    let means = named.iter().map(|(name, model)| (name.clone(), json!(model.as_ref().ok())));
    let providers = reachable.iter().map(|it| {
        let models = it.models.iter().map(|offer| {
            let usd = |pick: fn(&locum_runtime::price::Price) -> u64| {
                offer.known.price.as_ref().map(|price| text::usd(pick(price), true))
            };
            json!({
                "model": format!("{}/{}", it.provider, offer.name),
                "default": offer.is_default,
                "input_usd": usd(|price| price.input),
                "output_usd": usd(|price| price.output),
                "window": offer.known.window_tokens,
            })
        });
        json!({
            "provider": it.provider,
            "title": it.title,
            "base_url": without_password(&it.base),
            "wire": it.wire,
            "problem": it.problem,
            "key": it.key.as_ref().map(|(from, ending)| json!({ "from": from, "ends": ending })),
            "models": models.collect::<Vec<_>>(),
        })
    });
    let providers: Vec<Value> = providers.collect();
    json!({ "names": means.collect::<serde_json::Map<_, _>>(), "providers": providers })
}

fn print_all(reachable: &[Reachable], named: &[Named]) {
    let mut rows = Vec::new();
    for it in reachable {
        let from = match &it.key {
            Some((from, ending)) => format!("{from} {ending}"),
            None => without_password(&it.base),
        };
        if it.models.is_empty() || it.problem.is_some() {
            let problem = it.problem.clone().unwrap_or_else(|| "no model".into());
            rows.push(vec![
                format!("{}/{}", it.provider, cut()),
                String::new(),
                text::row(&problem, 60),
                from,
            ]);
            continue;
        }
        for offer in &it.models {
            let price = offer.known.price.map_or("?".into(), |price| {
                format!("{} {}", text::money(price.input, true), text::money(price.output, true))
            });
            let name = text::row(&format!("{}/{}", it.provider, offer.name), 80);
            let mark = if offer.is_default { "default" } else { "" };
            rows.push(vec![name, mark.into(), price, from.clone()]);
        }
    }
    if !rows.is_empty() {
        print::line(&text::table(&["MODEL", "", "IN AND OUT PER MILLION", "FROM"], &rows));
    }
    for (name, model) in named {
        if let Ok(model) = model {
            print::line(&format!("{name} is {}", text::clean(model)));
        }
    }
}

/// An address as it may be shown.
pub(crate) fn without_password(base: &str) -> String {
    let Some((scheme, rest)) = base.split_once("://") else { return text::clean(base) };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    text::clean(&format!("{scheme}://{host}{path}"))
}
