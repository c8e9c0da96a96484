//! All servers of one engine, shared by all of its agents: the only door of this crate.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, ServerResult};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::auth::{Login, LoginOptions};
use crate::client::Progress;
use crate::error::{AnswerError, Error};
use crate::event::{Answer, Asks, Attendance, Event, Request, State};
use crate::logs::LogLine;
use crate::name;
use crate::server::Server;
use crate::spec::{ServerSpec, Settings};
use crate::tool::{Called, Known, ToolInfo};

/// Cloning shares. When the last clone is dropped, every program it started is killed with all
/// that those started; `shut_down` lets them end in order.
#[derive(Clone)]
pub struct Servers {
    house: Arc<House>,
    asks: Arc<Asks>,
}

/// Dropped with the last clone.
struct House(BTreeMap<String, Arc<Server>>);

impl Drop for House {
    fn drop(&mut self) {
        self.0.values().for_each(|server| server.let_go());
    }
}

impl std::fmt::Debug for Servers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.house.0.keys()).finish()
    }
}

/// What there is to call, and which servers could not say in time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tools {
    pub tools: Vec<ToolInfo>,
    pub missing: Vec<Missing>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    pub server: String,
    pub why: String,
}

impl Servers {
    /// Starts nothing yet. Of two servers with one name the last counts.
    pub fn new(specs: Vec<ServerSpec>, settings: Settings) -> Servers {
        let asks = Arc::new(Asks::default());
        let settings = Arc::new(settings);
        let server = |spec: ServerSpec| {
            let name = spec.name.clone();
            (name, Arc::new(Server::new(spec, Arc::clone(&settings), Arc::clone(&asks))))
        };
        Servers { house: Arc::new(House(specs.into_iter().map(server).collect())), asks }
    }

    pub fn states(&self) -> Vec<(String, State)> {
        self.house.0.values().map(|server| (server.spec.name.clone(), server.state())).collect()
    }

    /// Starts servers that have not run yet, all at once, and waits for them no longer than
    /// `patience`, and not at all for one that fails: it is tried once more, later. Those that
    /// need longer go on starting, and `ToolsChanged` says when they are there. Servers that
    /// are down keep the tools they last had.
    pub async fn tools(&self, patience: Duration) -> Tools {
        let mut starts = JoinSet::new();
        for server in self.house.0.values().filter(|server| server.listing().is_none()) {
            let server = Arc::clone(server);
            starts.spawn(async move {
                let started = timeout(patience, server.first_try()).await;
                let why = match started {
                    Ok(Ok(_)) => return None,
                    Ok(Err(Error::Backoff { why, .. } | Error::Broken { why, .. })) => why,
                    Ok(Err(error)) => error.to_string(),
                    Err(_) => "it is still starting".to_owned(),
                };
                Some(Missing { server: server.spec.name.clone(), why })
            });
        }
        let mut missing: Vec<Missing> = starts.join_all().await.into_iter().flatten().collect();
        missing.sort_by(|a, b| a.server.cmp(&b.server));
        Tools { tools: self.listed(), missing }
    }

    /// What is known of all tools now. Starts nothing and waits for nobody.
    pub fn listed(&self) -> Vec<ToolInfo> {
        let mut tools = Vec::new();
        let mut names = BTreeSet::new();
        for listing in self.house.0.values().filter_map(|server| server.listing()) {
            // Two tools under one name would let one stand in for the other.
            let fresh = |tool: &&ToolInfo| names.insert(tool.full_name.clone());
            tools.extend(listing.tools.iter().filter(fresh).cloned());
        }
        tools
    }

    /// What a server is known to have; none before it has said so once.
    pub fn known(&self, server: &str) -> Option<Known> {
        let server = self.house.0.get(server)?;
        server.listing().map(|listing| listing.known())
    }

    /// Tools that a server has listed and that are not among its tools, each with why.
    pub fn left_out(&self, server: &str) -> Vec<String> {
        let listing = self.house.0.get(server).and_then(|server| server.listing());
        listing.map(|listing| listing.left_out.clone()).unwrap_or_default()
    }

    /// What a server had in an earlier life. It counts until the server says otherwise, which is
    /// then told as a change; meanwhile nothing needs to be started to know it.
    pub fn remember(&self, server: &str, known: Known) {
        if let Some(server) = self.house.0.get(server) {
            server.remember(known);
        }
    }

    /// The tool as its server describes it now. Starts the server if it does not run, within the
    /// time of one call: what is remembered of it is not enough to call it.
    pub async fn ready(&self, full_name: &str) -> Result<ToolInfo, Error> {
        let (server, tool) = self.resolve(full_name).await?;
        self.connect(&server, &format!("tool `{tool}`")).await?;
        let listing = server.listing();
        let mut tools = listing.iter().flat_map(|listing| &listing.tools);
        let found = tools.find(|tool| tool.full_name == full_name).cloned();
        found.ok_or_else(|| Error::UnknownTool { name: full_name.to_owned() })
    }

    /// Calls a tool by its full name. Takes at most the server's time, not counting time in which
    /// the server waits for an answer of ours. Dropping the future cancels the call.
    pub async fn call(
        &self,
        full_name: &str,
        arguments: Value,
        mut on_progress: impl FnMut(Progress) + Send,
    ) -> Result<Called, Error> {
        let given = match arguments {
            Value::Object(map) => Ok(Some(map)),
            Value::Null => Ok(None),
            Value::Array(_) => Err("a list"),
            Value::String(_) => Err("text"),
            Value::Number(_) | Value::Bool(_) => Err("a number"),
        };
        let arguments =
            given.map_err(|given| Error::Arguments { name: full_name.to_owned(), given })?;
        let (server, tool) = self.resolve(full_name).await?;
        let mut params = CallToolRequestParams::new(tool.clone());
        params.arguments = arguments;
        let what = format!("tool `{tool}`");
        let connection = self.connect(&server, &what).await?;
        let request = |params: &CallToolRequestParams| {
            ClientRequest::CallToolRequest(CallToolRequest::new(params.clone()))
        };
        let limit = server.spec.timeout;
        let result = connection.converse(&what, limit, params, request, &mut on_progress).await;
        let result = result.inspect_err(|error| note(&server, error))?;
        let ServerResult::CallToolResult(result) = result else {
            return Err(Error::Confused { server: server.spec.name.clone(), what });
        };
        let is_error = result.is_error.unwrap_or(false);
        let mut called = Called { is_error, ..Called::default() };
        called.structure(result.structured_content);
        result.content.into_iter().for_each(|block| called.add(block));
        Ok(called)
    }

    /// Waits until the changes of its tools that a server has announced so far are known, no
    /// longer than `patience`. Whether there were any.
    pub async fn caught_up(&self, server: &str, patience: Duration) -> bool {
        let connection = self.house.0.get(server).and_then(|server| server.connected());
        match connection {
            Some(connection) => connection.client().stale.caught_up(patience).await,
            None => false,
        }
    }

    /// A name may be older than this process: then its server is started to ask.
    async fn resolve(&self, full_name: &str) -> Result<(Arc<Server>, String), Error> {
        let known = |server: &Arc<Server>| {
            let listing = server.listing()?;
            let tool = listing.tools.iter().find(|tool| tool.full_name == full_name)?;
            Some((Arc::clone(server), tool.name.clone()))
        };
        if let Some(found) = self.house.0.values().find_map(known) {
            return Ok(found);
        }
        let mut failed = None;
        for server in self.house.0.values() {
            let candidate =
                server.listing().is_none() && name::may_be_of(&server.spec.name, full_name);
            if candidate {
                let limit = server.spec.timeout;
                match timeout(limit, server.connection()).await {
                    Ok(Ok(_)) => {}
                    Ok(Err(error)) => failed = Some(error),
                    Err(_) => {
                        let what = "its start".to_owned();
                        let server = server.spec.name.clone();
                        failed = Some(Error::Timeout { server, what, limit });
                    }
                }
                if let Some(found) = known(server) {
                    return Ok(found);
                }
            }
        }
        Err(failed.unwrap_or_else(|| Error::UnknownTool { name: full_name.to_owned() }))
    }

    pub(crate) async fn connect(
        &self,
        server: &Arc<Server>,
        what: &str,
    ) -> Result<Arc<crate::connection::Connection>, Error> {
        let limit = server.spec.timeout;
        let late = |_| Error::Timeout {
            server: server.spec.name.clone(),
            what: format!("its start for {what}"),
            limit,
        };
        timeout(limit, server.connection()).await.map_err(late)?
    }

    pub(crate) fn find(&self, server: &str) -> Result<&Arc<Server>, Error> {
        let unknown = || Error::UnknownServer { server: server.to_owned() };
        self.house.0.get(server).ok_or_else(unknown)
    }

    /// The next thing a server told or asked. May be called from one place only: two readers
    /// would share the events between them.
    pub async fn next_event(&self) -> Event {
        self.asks.queue.next().await
    }

    pub fn answer(&self, id: u64, answer: Answer) -> Result<(), AnswerError> {
        self.asks.answer(id, answer)
    }

    /// Questions that wait, for somebody who comes later.
    pub fn asks(&self) -> Vec<Request> {
        self.asks.list()
    }

    /// Until somebody says `Somebody`, every question is declined at once. `Nobody` also declines
    /// those that wait.
    pub fn attend(&self, attendance: Attendance) {
        self.asks.attend(attendance);
    }

    pub fn logs(&self, server: &str) -> Result<Vec<LogLine>, Error> {
        Ok(self.find(server)?.logs.lines())
    }

    /// Ends the server if it runs and forgets its failures. The next call starts it.
    pub fn restart(&self, server: &str) -> Result<(), Error> {
        self.find(server)?.restart();
        Ok(())
    }

    /// Begins a login at a server that asked for one.
    pub async fn login(&self, server: &str, options: LoginOptions) -> Result<Login, Error> {
        self.find(server)?.log_in(options).await
    }

    /// Forgets the login of a server. Its tokens stay valid there until they expire.
    pub fn logout(&self, server: &str) -> Result<(), Error> {
        let server = self.find(server)?;
        server.forget_login()?;
        server.restart();
        Ok(())
    }

    /// Lets all programs end in order, within a few seconds. Safe to call again.
    pub async fn shut_down(&self) {
        self.asks.attend(Attendance::Nobody);
        let mut ends = JoinSet::new();
        for server in self.house.0.values() {
            let server = Arc::clone(server);
            ends.spawn(async move { server.shut_down().await });
        }
        ends.join_all().await;
    }
}

pub(crate) fn note(server: &Server, error: &Error) {
    if let Error::Login { challenge, .. } = error {
        server.note_challenge(challenge);
    }
}
