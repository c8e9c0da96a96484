//! Our side of one connection: what happens when the server tells or asks us something.

#![expect(deprecated, reason = "servers in the wild still use what the newest protocol drops")]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability, ErrorCode,
    ErrorData, FormElicitationCapability, Implementation, ListRootsResult,
    LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken,
    ResourceUpdatedNotificationParam, Role, Root, RootsCapabilities, SamplingCapability,
    SamplingMessage, SamplingMessageContentBlock, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::event::{Answer, Asks, Event, Kind};
use crate::limits;
use crate::logs::{Logs, Source};
use crate::spec::{Sampling, Settings};
use crate::stale::Stale;

/// How far a call is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    pub progress: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// What the protocol calls a rejected sampling request.
const REJECTED: ErrorCode = ErrorCode(-1);

const NO_SAMPLING: &str = "this client lets no server ask its model: do without";

/// Shared by a connection and the SDK's tasks for it.
pub(crate) struct Client {
    pub(crate) server: String,
    pub(crate) settings: Arc<Settings>,
    pub(crate) asks: Arc<Asks>,
    pub(crate) logs: Arc<Logs>,
    pub(crate) watched: Arc<Mutex<BTreeSet<String>>>,
    /// The tools are not what they were.
    pub(crate) stale: Arc<Stale>,
    pub(crate) reports: Arc<Reports>,
}

/// Who waits for which progress. A report may come before its reader has had time to register,
/// so the last few that nobody claimed are kept.
#[derive(Default)]
pub(crate) struct Reports(Mutex<Claims>);

#[derive(Default)]
struct Claims {
    readers: BTreeMap<String, mpsc::Sender<Progress>>,
    unclaimed: VecDeque<(String, Progress)>,
}

impl Reports {
    pub(crate) fn claim(&self, token: &ProgressToken) -> mpsc::Receiver<Progress> {
        let (sender, receiver) = mpsc::channel(limits::PROGRESS);
        let token = token.0.to_string();
        let mut claims = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, early) in claims.unclaimed.iter().filter(|(other, _)| *other == token) {
            let _full = sender.try_send(early.clone());
        }
        claims.unclaimed.retain(|(other, _)| *other != token);
        claims.readers.insert(token, sender);
        receiver
    }

    pub(crate) fn release(&self, token: &ProgressToken) {
        let mut claims = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        claims.readers.remove(&token.0.to_string());
    }

    /// A reader that is slow loses reports, never time.
    fn report(&self, token: &ProgressToken, progress: Progress) {
        let token = token.0.to_string();
        let mut claims = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reader) = claims.readers.get(&token) {
            let _full = reader.try_send(progress);
        } else {
            claims.unclaimed.truncate(limits::PROGRESS - 1);
            claims.unclaimed.push_front((token, progress));
        }
    }
}

impl Client {
    pub(crate) async fn sample(
        &self,
        params: CreateMessageRequestParams,
    ) -> Result<CreateMessageResult, ErrorData> {
        if self.settings.sampling == Sampling::Never {
            return Err(ErrorData::new(REJECTED, NO_SAMPLING, None));
        }
        let text = |message: &SamplingMessage| {
            let texts = message.content.iter().filter_map(|block| block.as_text());
            texts.map(|text| text.text.clone()).collect::<Vec<_>>().join("\n")
        };
        let kind = Kind::Sampling {
            system: params.system_prompt.clone(),
            text: params.messages.iter().map(text).collect::<Vec<_>>().join("\n"),
            tokens_max: params.max_tokens,
            params: serde_json::to_value(&params).unwrap_or_default(),
        };
        match self.asks.ask(&self.server, kind, &self.logs).await {
            Answer::Sampled { model, text, stop_reason } => {
                let block = SamplingMessageContentBlock::text(text);
                let message = SamplingMessage::new(Role::Assistant, block);
                let mut result = CreateMessageResult::new(message, model);
                result.stop_reason = stop_reason;
                Ok(result)
            }
            Answer::Declined | Answer::Dismissed | Answer::Filled(_) | Answer::Visited => {
                Err(ErrorData::new(REJECTED, "the user rejected the sampling request", None))
            }
        }
    }

    pub(crate) async fn elicit(&self, params: ElicitRequestParams) -> ElicitResult {
        let (kind, schema) = match params {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let schema = serde_json::to_value(requested_schema).unwrap_or_default();
                (Kind::Elicitation { message, schema: schema.clone() }, schema)
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                (Kind::Visit { message, url }, Value::Null)
            }
            // The SDK may learn more ways to ask than we know to answer.
            _ => return ElicitResult::new(ElicitationAction::Decline),
        };
        match self.asks.ask(&self.server, kind, &self.logs).await {
            Answer::Filled(Value::Object(fields)) => {
                let fields = Value::Object(with_defaults(fields, &schema));
                ElicitResult::new(ElicitationAction::Accept).with_content(fields)
            }
            Answer::Visited => ElicitResult::new(ElicitationAction::Accept),
            Answer::Dismissed => ElicitResult::new(ElicitationAction::Cancel),
            Answer::Declined | Answer::Filled(_) | Answer::Sampled { .. } => {
                ElicitResult::new(ElicitationAction::Decline)
            }
        }
    }

    pub(crate) fn roots(&self) -> ListRootsResult {
        ListRootsResult::new(self.settings.roots.iter().map(|path| root(path)).collect())
    }

    fn tell(&self, event: Event) {
        self.asks.queue.push(event);
    }
}

fn with_defaults(mut fields: Map<String, Value>, schema: &Value) -> Map<String, Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        if let Some(default) = property.get("default") {
            fields.entry(name.clone()).or_insert_with(|| default.clone());
        }
    }
    fields
}

fn root(path: &Path) -> Root {
    use std::fmt::Write as _;
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~:".contains(byte) {
            uri.push(char::from(*byte));
        } else {
            let _infallible = write!(uri, "%{byte:02X}");
        }
    }
    let root = Root::new(uri);
    match path.file_name() {
        Some(name) => root.with_name(name.to_string_lossy()),
        None => root,
    }
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let elicitation = ElicitationCapability::new()
            .with_form(FormElicitationCapability::new())
            .with_url(UrlElicitationCapability::default());
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = Some(RootsCapabilities::default());
        let offered = self.settings.sampling == Sampling::Offered;
        capabilities.sampling = offered.then(SamplingCapability::default);
        capabilities.elicitation = Some(elicitation);
        let Settings { client_name, client_version, .. } = &*self.settings;
        let us = Implementation::new(client_name.clone(), client_version.clone());
        ClientConfig::new(capabilities, us)
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        tokio::select! {
            result = self.sample(params) => result,
            () = context.ct.cancelled() => Err(ErrorData::new(REJECTED, "cancelled", None)),
        }
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        tokio::select! {
            result = self.elicit(params) => Ok(result),
            () = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(self.roots())
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let ProgressNotificationParam { progress_token, progress, total, message, .. } = params;
        let message = message.map(|text| crate::logs::clip(&text, limits::LOG_LINE_BYTES));
        self.reports.report(&progress_token, Progress { progress, total, message });
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let data = params.data.as_str().map_or_else(|| params.data.to_string(), str::to_owned);
        let level = format!("{:?}", params.level).to_lowercase();
        let logger = params.logger.map_or(String::new(), |logger| format!(" {logger}"));
        self.logs.push(Source::Message, &format!("{level}{logger}: {data}"));
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if watched.contains(&params.uri) {
            self.tell(Event::ResourceUpdated { server: self.server.clone(), uri: params.uri });
        }
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tell(Event::ResourcesChanged { server: self.server.clone() });
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.stale.announce();
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tell(Event::PromptsChanged { server: self.server.clone() });
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rmcp::model::{NumberOrString, ProgressToken};
    use serde_json::{Value, json};

    use super::{Progress, Reports, root, with_defaults};
    use crate::limits;

    #[test]
    fn roots_are_addresses() {
        let cases = [
            ("/srv/a", "file:///srv/a", Some("a")),
            ("/a b/é#", "file:///a%20b/%C3%A9%23", Some("é#")),
            ("/", "file:///", None),
        ];
        for (path, uri, name) in cases {
            let root = root(Path::new(path));
            assert_eq!((root.uri.as_str(), root.name.as_deref()), (uri, name));
        }
    }

    #[test]
    fn fields_left_out_take_their_defaults() {
        let schema = json!({"properties": {"a": {"default": 1}, "b": {"default": 2}, "c": {}}});
        let Value::Object(given) = json!({"b": 7}) else { return };
        assert_eq!(Value::Object(with_defaults(given, &schema)), json!({"a": 1, "b": 7}));
    }

    #[test]
    fn early_and_late_reports() {
        let reports = Reports::default();
        let token = |number| ProgressToken(NumberOrString::Number(number));
        let progress = |progress| Progress { progress, total: None, message: None };
        reports.report(&token(1), progress(0.5));
        for _ in 0..limits::PROGRESS * 9 {
            reports.report(&token(2), progress(0.1));
        }
        reports.report(&token(3), progress(0.7));
        let mut three = reports.claim(&token(3));
        assert_eq!(three.try_recv().ok(), Some(progress(0.7)));
        for _ in 0..limits::PROGRESS * 9 {
            reports.report(&token(3), progress(0.8));
        }
        let mut count = 0;
        while three.try_recv().is_ok() {
            count += 1;
        }
        assert_eq!(count, limits::PROGRESS);
        reports.release(&token(3));
        assert!(three.try_recv().is_err());
    }
}
