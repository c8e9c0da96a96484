//! What a server says of itself when nobody asks a model anything: the models it has. Meant for
//! servers on this machine, so it is quick to give up and never goes through a proxy.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use super::Key;
use super::tls::{self, Scheme};

/// More than any list of models takes.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// Where the list is, and how it is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// `/v1/models`, with `data` and `id`.
    Models,
    /// `/api/tags`, with `models` and `name`.
    Tags,
}

/// Why there is no list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Silence {
    /// Nobody listens there, or not in time.
    Nobody,
    /// Somebody does, but this is not what was meant.
    Other(String),
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Silence::Nobody => f.write_str("no answer"),
            Silence::Other(why) => f.write_str(why),
        }
    }
}

/// The names of the models a server has, in its order.
pub async fn models(
    base_url: &str,
    list: List,
    key: Option<&Key>,
    patience: Duration,
) -> Result<Vec<String>, Silence> {
    let asked = tokio::time::timeout(patience, ask(base_url, list, key)).await;
    asked.unwrap_or(Err(Silence::Nobody))
}

async fn ask(base_url: &str, list: List, key: Option<&Key>) -> Result<Vec<String>, Silence> {
    let base = base_url.trim().trim_end_matches('/').trim_end_matches("/v1");
    let path = match list {
        List::Models => "/v1/models",
        List::Tags => "/api/tags",
    };
    let encrypted = base.starts_with("https:");
    let scheme = if encrypted { Scheme::Encrypted } else { Scheme::Plain };
    let client = tls::builder(scheme, None).and_then(|it| Ok(it.no_proxy().build()?));
    let client = client.map_err(|error| Silence::Other(error.to_string()))?;
    let mut request = client.get(format!("{base}{path}"));
    if let Some(key) = key {
        request = request.bearer_auth(key.secret());
    }
    let mut response = request.send().await.map_err(|_| Silence::Nobody)?;
    if !response.status().is_success() {
        return Err(Silence::Other(format!("status {}", response.status().as_u16())));
    }
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() > BODY_BYTES_MAX {
            return Err(Silence::Other("its list of models does not end".into()));
        }
    }
    names(&body, list).ok_or_else(|| Silence::Other("what it says is no list of models".into()))
}

fn names(body: &[u8], list: List) -> Option<Vec<String>> {
    let (rows, field) = match list {
        List::Models => ("data", "id"),
        List::Tags => ("models", "name"),
    };
    let body: Value = serde_json::from_slice(body).ok()?;
    let rows = body.get(rows)?.as_array()?;
    Some(rows.iter().filter_map(|row| Some(row.get(field)?.as_str()?.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_both_kinds() {
        let cases = [
            (List::Models, r#"{"object":"list","data":[{"id":"a"},{"no":1},{"id":"b"}]}"#, "a b"),
            (List::Models, r#"{"data":[]}"#, ""),
            (List::Tags, r#"{"models":[{"name":"a:1b"}]}"#, "a:1b"),
            (List::Tags, r#"{"data":[{"id":"a"}]}"#, "none"),
            (List::Models, "<html>", "none"),
            (List::Models, r#"{"data":{"id":"a"}}"#, "none"),
        ];
        for (list, body, expected) in cases {
            let found = names(body.as_bytes(), list).map_or("none".into(), |it| it.join(" "));
            assert_eq!(found, expected, "{body}");
        }
    }
}
