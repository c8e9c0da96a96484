//! The client that the protocol's conformance suite runs: connects to the given address, logs in
//! if it must, uses everything it finds there and answers whatever it is asked.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use locum_mcp::{
    Answer, Attendance, Error, Event, Kind, Launch, LoginOptions, Sampling, ServerSpec, Servers,
    Settings, State, Transport,
};
use serde_json::{Map, Value, json};

const SERVER: &str = "s";
const PATIENCE: Duration = Duration::from_secs(25);
/// A server that is never content must not make us log in for ever.
const LOGINS_MAX: u32 = 3;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Some(url) = std::env::args().next_back().filter(|url| url.starts_with("http")) else {
        eprintln!("usage: probe URL");
        return ExitCode::from(2);
    };
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context = serde_json::from_str(&context).unwrap_or(Value::Null);
    let spec = ServerSpec::new(SERVER, Transport::Http { url, headers: BTreeMap::new() });
    let settings = Settings {
        client_name: "locum-probe".to_owned(),
        client_version: env!("CARGO_PKG_VERSION").to_owned(),
        roots: vec![PathBuf::from("/tmp")],
        wrap: Arc::new(|spec| Ok(Launch::plain(spec, &BTreeMap::new()))),
        sampling: Sampling::Offered,
        credentials: None,
    };
    let servers = Servers::new(vec![spec], settings);
    servers.attend(Attendance::Somebody);
    let mut probe = Probe { servers: servers.clone(), context, logins: 0 };
    let result = tokio::select! {
        result = probe.run(&scenario) => result,
        () = answer(&servers) => Ok(()),
    };
    servers.shut_down().await;
    for line in servers.logs(SERVER).unwrap_or_default() {
        eprintln!("{line}");
    }
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("probe: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Never returns.
async fn answer(servers: &Servers) {
    loop {
        let Event::Asked(request) = servers.next_event().await else { continue };
        let answer = match request.kind {
            Kind::Sampling { text, .. } => Answer::Sampled {
                model: "probe".to_owned(),
                text: format!("heard: {text}"),
                stop_reason: Some("endTurn".to_owned()),
            },
            Kind::Elicitation { schema, .. } => Answer::Filled(Value::Object(fill(&schema))),
            Kind::Visit { .. } => Answer::Visited,
        };
        if let Err(error) = servers.answer(request.id, answer) {
            eprintln!("{error}");
        }
    }
}

/// What a schema requires and has no default for.
fn fill(schema: &Value) -> Map<String, Value> {
    let mut filled = Map::new();
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for name in required.iter().filter_map(Value::as_str) {
        let property = &schema["properties"][name];
        if property.get("default").is_some() {
            continue;
        }
        let value = match property["type"].as_str() {
            Some("number" | "integer") => json!(1),
            Some("boolean") => json!(true),
            Some("array") => json!([]),
            Some("object") => json!({}),
            _ => property["enum"].get(0).cloned().unwrap_or_else(|| json!("test")),
        };
        filled.insert(name.to_owned(), value);
    }
    filled
}

struct Probe {
    servers: Servers,
    context: Value,
    logins: u32,
}

impl Probe {
    async fn run(&mut self, scenario: &str) -> Result<(), String> {
        let tools = loop {
            let found = self.servers.tools(PATIENCE).await;
            let Some(missing) = found.missing.into_iter().next() else { break found.tools };
            match self.servers.states().remove(0).1 {
                State::Login => self.login().await?,
                State::Idle
                | State::Starting
                | State::Ready
                | State::Backoff { .. }
                | State::Broken { .. } => return Err(missing.why),
            }
        };
        let asked = self.context.get("toolCalls").or(self.context.get("tool_calls"));
        let mut calls: Vec<(String, Value)> = Vec::new();
        for call in asked.and_then(Value::as_array).into_iter().flatten() {
            let name = call["name"].as_str().unwrap_or_default();
            let tool = tools.iter().find(|tool| tool.name == name);
            calls.extend(tool.map(|tool| (tool.full_name.clone(), call["arguments"].clone())));
        }
        if asked.is_none() {
            calls.extend(tools.iter().map(|tool| {
                let mut arguments = fill(&tool.input_schema);
                // One scenario wants to see a schema back as we received it.
                if tool.name == "json_schema_echo" {
                    let focal = tools.iter().find(|other| other.name != tool.name);
                    let schema = focal.map(|focal| focal.input_schema.clone());
                    arguments.insert("schema".to_owned(), schema.unwrap_or_default());
                }
                (tool.full_name.clone(), Value::Object(arguments))
            }));
        }
        for (name, arguments) in calls {
            self.call(&name, arguments).await?;
        }
        if scenario.starts_with("http-") || scenario == "request-metadata" {
            self.read_all().await;
        }
        Ok(())
    }

    async fn call(&mut self, name: &str, arguments: Value) -> Result<(), String> {
        loop {
            match self.servers.call(name, arguments.clone(), |_| {}).await {
                Ok(called) => {
                    eprintln!("{name}: {}", called.text);
                    return Ok(());
                }
                Err(Error::Login { .. }) => self.login().await?,
                // What one tool refuses is its own affair.
                Err(error) => {
                    eprintln!("{error}");
                    return Ok(());
                }
            }
        }
    }

    async fn read_all(&self) {
        for resource in self.servers.resources(SERVER).await.unwrap_or_default() {
            let read = self.servers.read_resource(SERVER, &resource.uri).await;
            eprintln!("{}: {read:?}", resource.uri);
        }
        for prompt in self.servers.prompts(SERVER).await.unwrap_or_default() {
            let given: Map<String, Value> =
                prompt.arguments.iter().map(|one| (one.name.clone(), json!("test"))).collect();
            let said = self.servers.prompt(SERVER, &prompt.name, Value::Object(given)).await;
            eprintln!("{}: {said:?}", prompt.name);
        }
    }

    /// As a browser would, without a person in front of it.
    async fn login(&mut self) -> Result<(), String> {
        self.logins += 1;
        if self.logins > LOGINS_MAX {
            return Err("logged in again and again, and it was never enough".to_owned());
        }
        let text = |name: &str| self.context[name].as_str().map(str::to_owned);
        let options = LoginOptions {
            redirect_uri: "http://localhost:3000/callback".to_owned(),
            client_id: text("client_id"),
            client_secret: text("client_secret"),
            client_metadata_url: Some(
                "https://conformance-test.local/client-metadata.json".to_owned(),
            ),
            scopes: Vec::new(),
        };
        let login = self.servers.login(SERVER, options).await.map_err(|error| error.to_string())?;
        let browser = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
        let browser = browser.build().map_err(|error| error.to_string())?;
        let page = browser.get(login.url()).send().await.map_err(|error| error.to_string())?;
        let target = page.headers().get("location").and_then(|value| value.to_str().ok());
        let target = target.ok_or("the page redirects nowhere")?.to_owned();
        login.finish(&target).await.map_err(|error| error.to_string())?;
        self.servers.restart(SERVER).map_err(|error| error.to_string())
    }
}
