//! One live connection: opened, asked things within bounded time, and ended with a reason.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientRequest, ProgressToken, RequestId,
    ServerPeerInfo, ServerResult, SubscriptionFilter,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient, RunningService, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{AuthClient, StreamableHttpClientTransport};
use tokio::io::BufReader;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::client::{Client, Progress, Reports};
use crate::ears::Ears;
use crate::error::Error;
use crate::gate::Gate;
use crate::handshake::{begin, chain, challenge};
use crate::http::Web;
use crate::limits;
use crate::logs::clip;
use crate::pipe::Pipe;
use crate::process::Process;
use crate::spec::Launch;
use crate::watch::{Lines, Program, over, watch_far};

/// Which way of beginning a server knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// Ask first, and go on in the older way on the same connection.
    Unknown,
    /// Ask, and take no for an answer.
    Discover,
    Initialize,
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Trying again changes nothing.
    Hopeless(String),
    Login(String),
    /// It answered as servers of the newer kind do, only not with what was asked.
    Odd(String),
    Passing(String),
}

pub(crate) enum Route {
    Program(Launch),
    Web(Web, Box<StreamableHttpClientTransportConfig>),
    Account(AuthClient<Web>, Box<StreamableHttpClientTransportConfig>),
}

pub(crate) struct Connection {
    running: RunningService<RoleClient, Client>,
    /// Set once, by the watcher, when it is over.
    ended: watch::Receiver<Option<String>>,
    quit: watch::Sender<Option<String>>,
    abandoned: mpsc::Sender<RequestId>,
    slots: Semaphore,
    silences: AtomicU32,
    tasks: Mutex<JoinSet<()>>,
}

impl Connection {
    pub(crate) async fn open(
        client: Client,
        route: Route,
        era: Era,
        limit: Duration,
    ) -> Result<Connection, Failure> {
        let (closed, closed_later) = watch::channel(false);
        let (quit, quit_later) = watch::channel(None);
        let (ended_later, ended) = watch::channel(None);
        let lines = Lines { closed: closed_later, quit: quit_later, ended: ended_later };
        let mut tasks = JoinSet::new();
        let over = ended.clone();
        // A second connection over the network costs nothing, unlike a second program, and the
        // SDK's patience with a first question that may fail is short.
        let far = if era == Era::Unknown { Era::Discover } else { era };
        let running = match route {
            Route::Program(launch) => {
                let process = Process::spawn(&launch).map_err(|error| {
                    use std::io::ErrorKind::{InvalidInput, NotFound, PermissionDenied};
                    if matches!(error.kind(), NotFound | PermissionDenied | InvalidInput) {
                        Failure::Hopeless(error.to_string())
                    } else {
                        Failure::Passing(error.to_string())
                    }
                })?;
                let Process { child, group, stdin, stdout, stderr } = process;
                let logs = Arc::clone(&client.logs);
                let read = BufReader::with_capacity(64 << 10, stdout);
                let pipe = Pipe::new(read, stdin, Arc::clone(&logs));
                let program = Program { child, group, stderr, logs };
                tasks.spawn(program.watch(lines));
                begin(client, Gate::new(pipe, closed), era, limit, over).await?
            }
            Route::Web(web, config) => {
                tasks.spawn(watch_far(lines));
                let transport = StreamableHttpClientTransport::with_client(web, *config);
                begin(client, Gate::new(transport, closed), far, limit, over).await?
            }
            Route::Account(account, config) => {
                tasks.spawn(watch_far(lines));
                let transport = StreamableHttpClientTransport::with_client(account, *config);
                begin(client, Gate::new(transport, closed), far, limit, over).await?
            }
        };
        let (abandoned, abandoned_later) = mpsc::channel(limits::CALLS * 8);
        tasks.spawn(tell_abandoned(running.peer().clone(), abandoned_later));
        let connection = Connection {
            running,
            ended,
            quit,
            abandoned,
            slots: Semaphore::new(limits::CALLS),
            silences: AtomicU32::new(0),
            tasks: Mutex::new(tasks),
        };
        connection.listen(None);
        Ok(connection)
    }

    pub(crate) fn client(&self) -> &Client {
        self.running.service()
    }

    /// A task that ends with the connection at the latest.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).spawn(task);
    }

    pub(crate) fn peer_info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.running.peer_info()
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.peer_info().is_some_and(|info| !info.protocol_version.has_initialize())
    }

    /// Modern servers announce changes only to those who listen.
    pub(crate) fn listen(&self, resource: Option<String>) {
        let Some(info) = self.peer_info().filter(|_| self.is_modern()) else { return };
        let capabilities = &info.capabilities;
        let mut filter = SubscriptionFilter::default();
        if let Some(uri) = resource {
            filter.resource_subscriptions = Some(vec![uri]);
        } else {
            let yes = |changes: Option<bool>| changes.filter(|changes| *changes);
            filter.tools_list_changed =
                yes(capabilities.tools.as_ref().and_then(|tools| tools.list_changed));
            filter.prompts_list_changed =
                yes(capabilities.prompts.as_ref().and_then(|prompts| prompts.list_changed));
            filter.resources_list_changed =
                yes(capabilities.resources.as_ref().and_then(|resources| resources.list_changed));
            if filter == SubscriptionFilter::default() {
                return;
            }
        }
        let client = self.client();
        let ears = Ears {
            server: client.server.clone(),
            asks: Arc::clone(&client.asks),
            stale: Arc::clone(&client.stale),
        };
        self.spawn(ears.listen(self.running.peer().clone(), filter));
    }

    pub(crate) fn why_ended(&self) -> Option<String> {
        self.ended.borrow().clone()
    }

    pub(crate) async fn ended(&self) -> String {
        over(self.ended.clone()).await
    }

    /// The same, for somebody who must not keep the connection alive.
    pub(crate) fn watch_end(&self) -> impl Future<Output = String> + Send + use<> {
        over(self.ended.clone())
    }

    /// Ends it at once. What holds the program is one of the tasks.
    pub(crate) fn kill(&self) {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
        self.running.cancellation_token().cancel();
    }

    /// Ends it; `ended` says when that is done.
    pub(crate) fn end(&self, why: &str) {
        self.quit.send_if_modified(|quit| {
            let first = quit.is_none();
            quit.get_or_insert_with(|| why.to_owned());
            first
        });
        self.running.cancellation_token().cancel();
    }

    /// One request and its answer, within `limit`. Dropping the future tells the server that
    /// nobody waits any more.
    pub(crate) async fn request(
        &self,
        what: &str,
        limit: Duration,
        request: ClientRequest,
        report: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<ServerResult, Error> {
        let server = || self.client().server.clone();
        tokio::select! {
            biased;
            result = self.exchange(request, report) => match result {
                Ok(result) => {
                    self.silences.store(0, Ordering::Relaxed);
                    Ok(result)
                }
                Err(error) => Err(self.explain(what, error)),
            },
            why = self.ended() => Err(Error::Gone { server: server(), what: what.to_owned(), why }),
            () = self.expiry(limit) => {
                self.silence();
                Err(Error::Timeout { server: server(), what: what.to_owned(), limit })
            }
        }
    }

    async fn exchange(
        &self,
        request: ClientRequest,
        report: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<ServerResult, ServiceError> {
        let _slot = self.slots.acquire().await;
        let options = PeerRequestOptions::no_options();
        let peer = self.running.peer();
        let handle = peer.send_request_with_option(request, options).await?;
        let token = handle.progress_token;
        let reports = &self.client().reports;
        let mut progress = reports.claim(&token);
        let _claim = Claim { reports, token };
        let mut abandoned = Abandoned { id: Some(handle.id), tell: &self.abandoned };
        let mut answer = handle.rx;
        loop {
            tokio::select! {
                biased;
                Some(step) = progress.recv() => report(step),
                result = &mut answer => {
                    abandoned.id = None;
                    return result.map_err(|_| ServiceError::TransportClosed)?;
                }
            }
        }
    }

    /// Time in which the server waits for a person is not the server's.
    async fn expiry(&self, limit: Duration) {
        let client = self.client();
        loop {
            sleep(limit).await;
            if !client.asks.is_waiting(&client.server) {
                return;
            }
            while client.asks.is_waiting(&client.server) {
                sleep(Duration::from_millis(100)).await;
            }
        }
    }

    /// One request without an answer may be a slow tool; several are a hung server.
    fn silence(&self) {
        if self.silences.fetch_add(1, Ordering::Relaxed) + 1 >= limits::SILENCES {
            self.end("it did not answer several requests in a row");
        }
    }

    fn explain(&self, what: &str, error: ServiceError) -> Error {
        let (server, what) = (self.client().server.clone(), what.to_owned());
        if let ServiceError::McpError(error) = error {
            self.silences.store(0, Ordering::Relaxed);
            let message = clip(&error.message, 1_000);
            return Error::Refused { server, what, code: error.code.0, message };
        }
        if let ServiceError::TransportSend(error) = error {
            if let Some(challenge) = challenge(error.error.as_ref()) {
                return Error::Login { server, challenge };
            }
            self.silence();
            return Error::Gone { server, what, why: chain(error.error.as_ref()) };
        }
        if let ServiceError::UnexpectedResponse = error {
            return Error::Confused { server, what };
        }
        let why = self.why_ended().unwrap_or_else(|| error.to_string());
        Error::Gone { server, what, why }
    }
}

/// The protocol's way of saying that nobody waits for an answer.
async fn tell_abandoned(peer: Peer<RoleClient>, mut abandoned: mpsc::Receiver<RequestId>) {
    while let Some(id) = abandoned.recv().await {
        let why = Some("nobody waits for this any more".to_owned());
        let param = CancelledNotificationParam::new(Some(id), why);
        let notification = CancelledNotification::new(param);
        // A server that does not read hears nothing either.
        let told = peer.send_notification(notification.into());
        let _told = timeout(Duration::from_secs(5), told).await;
    }
}

struct Claim<'a> {
    reports: &'a Reports,
    token: ProgressToken,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.reports.release(&self.token);
    }
}

struct Abandoned<'a> {
    id: Option<RequestId>,
    tell: &'a mpsc::Sender<RequestId>,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            let _hung_anyway = self.tell.try_send(id);
        }
    }
}
