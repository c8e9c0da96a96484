//! What servers want from people while a call of theirs runs: put to the session as a question
//! beside that call, and the answer handed back to the server. The protocol does not say which of
//! several calls a question belongs to, so it is put beside the one that has run longest, and
//! moves on to the next when that one returns.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use locum_kernel::{CallId, Key, Relay, Spent, Verdict, Wonder};
use locum_mcp::{Answer, Kind, Request, Servers};
use tokio::sync::Notify;

use super::form;
use super::sample::Sampled;

/// How often a person may be asked the same because the answer did not fit.
const TRIES: u32 = 3;
/// What a call's result tells of questions that nobody heard.
const NOTES: usize = 8;

/// Calls that run and the questions beside them.
#[derive(Debug, Default)]
pub(super) struct Wonders {
    table: Mutex<Table>,
    moved: Notify,
}

#[derive(Debug, Default)]
struct Table {
    running: BTreeMap<Key, Running>,
    open: BTreeMap<u64, Question>,
    /// Questions to be put once more.
    again: VecDeque<u64>,
}

#[derive(Debug)]
struct Running {
    server: String,
    call: CallId,
    notes: Vec<String>,
    spent: Option<Spent>,
}

/// What the result of a call should tell besides what the server said.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Over {
    pub(super) notes: Vec<String>,
    pub(super) spent: Option<Spent>,
}

#[derive(Debug)]
struct Question {
    request: Request,
    key: Key,
    tries: u32,
    /// What was wrong with the last answer.
    flaw: Option<String>,
}

impl Wonders {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin(&self, key: Key, server: &str, call: CallId) {
        let running = Running { server: server.to_owned(), call, notes: Vec::new(), spent: None };
        self.table().running.insert(key, running);
    }

    /// A call is over, whatever became of it.
    pub(super) fn end(&self, servers: &Servers, key: Key) -> Over {
        let mut table = self.table();
        let Some(over) = table.running.remove(&key) else { return Over::default() };
        let next = table.next(&over.server);
        let left = table.open.iter().filter(|(_, it)| it.key == key).map(|(id, _)| *id);
        for id in left.collect::<Vec<_>>() {
            if next.is_some() {
                table.again.push_back(id);
                self.moved.notify_one();
            } else {
                table.open.remove(&id);
                // Whoever asked may have gone before us.
                let _gone = servers.answer(id, Answer::Dismissed);
            }
        }
        Over { notes: over.notes, spent: over.spent }
    }

    /// A server asks. What to put to whom; nothing if it had to be declined.
    pub(super) fn asked(&self, servers: &Servers, request: Request) -> Option<(Key, Wonder)> {
        let mut table = self.table();
        let id = request.id;
        let Some(key) = table.next(&request.server) else {
            let _gone = servers.answer(id, Answer::Declined);
            return None;
        };
        if let Some(why) = improper(&request.kind) {
            table.note(key, format!("[{} was not let ask: {why}]", request.server));
            let _gone = servers.answer(id, Answer::Declined);
            return None;
        }
        let question = Question { request, key, tries: 0, flaw: None };
        let wonder = wonder(&question);
        table.open.insert(id, question);
        Some((key, wonder))
    }

    /// The next question that must be put once more.
    pub(super) async fn again(&self, servers: &Servers) -> (Key, Wonder) {
        loop {
            let moved = self.moved.notified();
            if let Some(found) = self.pop(servers) {
                return found;
            }
            moved.await;
        }
    }

    fn pop(&self, servers: &Servers) -> Option<(Key, Wonder)> {
        let mut table = self.table();
        while let Some(id) = table.again.pop_front() {
            let Some(server) = table.open.get(&id).map(|it| it.request.server.clone()) else {
                continue;
            };
            let next = table.next(&server);
            if let (Some(key), Some(question)) = (next, table.open.get_mut(&id)) {
                question.key = key;
                return Some((key, wonder(question)));
            }
            table.open.remove(&id);
            let _gone = servers.answer(id, Answer::Dismissed);
        }
        None
    }

    /// The session did not put it to anybody. Gives what that was, if the server still waited.
    pub(super) fn unheard(&self, servers: &Servers, id: u64, why: &str) -> Option<Request> {
        let mut table = self.table();
        let question = table.open.remove(&id)?;
        let note = format!("[{} asked for something: {why}]", question.request.server);
        table.note(question.key, note);
        let _gone = servers.answer(id, Answer::Declined);
        Some(question.request)
    }

    /// The server does not wait for it any more.
    pub(super) fn withdrawn(&self, id: u64) {
        self.table().open.remove(&id);
    }

    /// Hands an answer to the server; what a model must be asked first is returned.
    pub(super) fn answered(&self, servers: &Servers, relay: &Relay) -> Option<Sample> {
        let mut table = self.table();
        let id = relay.wonder;
        let Table { running, open, .. } = &mut *table;
        let question = open.get_mut(&id)?;
        if running.get(&question.key).is_none_or(|running| running.call != relay.call) {
            return None;
        }
        let (key, server) = (question.key, question.request.server.clone());
        if let (Kind::Sampling { system, text, tokens_max, .. }, Verdict::Answer { text: said }) =
            (&question.request.kind, &relay.verdict)
            && is_yes(said)
        {
            let (system, text, tokens_max) = (system.clone(), text.clone(), *tokens_max);
            table.open.remove(&id);
            return Some(Sample { id, key, system, text, tokens_max });
        }
        let meant = match &relay.verdict {
            Verdict::Answer { text } => meaning(&question.request.kind, text),
            Verdict::Withdrawn { .. } => Ok(Answer::Dismissed),
            Verdict::Deny { .. }
            | Verdict::Allow(_)
            | Verdict::Continue { .. }
            | Verdict::TopUp { .. } => Ok(Answer::Declined),
        };
        let answer = match meant {
            Ok(answer) => answer,
            Err(why) => {
                question.tries += 1;
                if question.tries < TRIES {
                    question.flaw = Some(why);
                    table.again.push_back(id);
                    self.moved.notify_one();
                    return None;
                }
                table.note(key, format!("[{server} got no fitting answer: {why}]"));
                Answer::Declined
            }
        };
        table.open.remove(&id);
        let _gone = servers.answer(id, answer);
        None
    }

    /// What a model said for a server, or why it said nothing; what it cost is the call's.
    pub(super) fn sampled(
        &self,
        servers: &Servers,
        sample: &Sample,
        said: Result<Sampled, String>,
    ) {
        let answer = match said {
            Ok(Sampled { model, mut text, spent }) => {
                let most = (sample.tokens_max as usize).saturating_mul(BYTES_PER_TOKEN);
                let is_cut = text.len() > most;
                text.truncate(text.floor_char_boundary(most));
                self.table().spend(sample.key, spent);
                let stop_reason = if is_cut { "maxTokens" } else { "endTurn" };
                Answer::Sampled { model, text, stop_reason: Some(stop_reason.to_owned()) }
            }
            Err(why) => {
                self.table().note(sample.key, format!("[the model was not heard: {why}]"));
                Answer::Declined
            }
        };
        let _gone = servers.answer(sample.id, answer);
    }
}

/// An answer has about so many bytes for each token it may have.
const BYTES_PER_TOKEN: usize = 6;

/// What a model is to be asked for a server, because a person agreed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    id: u64,
    key: Key,
    pub(super) system: Option<String>,
    pub(super) text: String,
    tokens_max: u32,
}

fn is_yes(text: &str) -> bool {
    matches!(text.trim().to_lowercase().as_str(), "yes" | "y")
}

impl Table {
    /// The call that has run longest.
    fn next(&self, server: &str) -> Option<Key> {
        let mut running = self.running.iter();
        running.find(|(_, it)| it.server == server).map(|(key, _)| *key)
    }

    fn spend(&mut self, key: Key, more: Spent) {
        let Some(running) = self.running.get_mut(&key) else { return };
        let before = running.spent.unwrap_or(Spent { micro_usd: Some(0), ..Spent::default() });
        running.spent = Some(before.plus(&more));
    }

    fn note(&mut self, key: Key, note: String) {
        let notes = self.running.get_mut(&key).map(|running| &mut running.notes);
        if let Some(notes) = notes.filter(|notes| notes.len() < NOTES) {
            notes.push(note);
        }
    }
}

/// Why something is not even put to a person.
fn improper(kind: &Kind) -> Option<String> {
    match kind {
        Kind::Elicitation { schema, .. } => {
            let field = form::secret(schema)?;
            Some(format!("{field:?} looks like a secret, and answers are kept in the journal"))
        }
        Kind::Visit { url, .. } => {
            let known = url.starts_with("https://") || url.starts_with("http://");
            (!known).then(|| "its address is no web page".to_owned())
        }
        Kind::Sampling { .. } => None,
    }
}

fn yes_or_no() -> Vec<String> {
    vec!["yes".to_owned(), "no".to_owned()]
}

fn wonder(question: &Question) -> Wonder {
    let (asked, options) = match &question.request.kind {
        Kind::Elicitation { message, schema } => form::words(message, schema),
        // Consent, and nothing else: what is typed on the page is between it and the person.
        Kind::Visit { message, url } => {
            let asked = format!(
                "{message}\nIt wants you to visit {url}\nOpen it yourself if you trust it, then \
                 answer yes."
            );
            (asked, yes_or_no())
        }
        Kind::Sampling { system, text, tokens_max, .. } => {
            let system = system.as_deref().map(|it| format!("\nwith the instructions: {it}"));
            let asked = format!(
                "It wants to ask your model, for at most {tokens_max} tokens at your cost:\n\
                 {text}{}\nThe answer goes to the server. Let it?",
                system.unwrap_or_default()
            );
            (asked, yes_or_no())
        }
    };
    let asked = match &question.flaw {
        Some(flaw) => format!("{asked}\nThe last answer did not fit: {flaw}"),
        None => asked,
    };
    let Request { id, server, .. } = &question.request;
    Wonder { id: *id, from: format!("MCP server {server}"), question: asked, options }
}

/// What a person's words mean to the server, or why they mean nothing to it.
fn meaning(kind: &Kind, text: &str) -> Result<Answer, String> {
    let yes = is_yes(text);
    match kind {
        Kind::Elicitation { schema, .. } => {
            let filled = form::read(schema, text)?;
            let consent = filled.as_object().is_some_and(serde_json::Map::is_empty);
            Ok(if consent && !yes { Answer::Declined } else { Answer::Filled(filled) })
        }
        Kind::Visit { .. } if yes => Ok(Answer::Visited),
        // A yes to the model is answered by the model.
        Kind::Visit { .. } | Kind::Sampling { .. } => Ok(Answer::Declined),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use locum_kernel::{AgentId, Seq};
    use locum_mcp::{Launch, Sampling, Settings};
    use serde_json::json;

    use super::*;

    fn servers() -> Servers {
        let settings = Settings {
            client_name: "test".into(),
            client_version: "1".into(),
            roots: Vec::new(),
            wrap: Arc::new(|_| Ok(Launch::default())),
            sampling: Sampling::Never,
            credentials: None,
        };
        Servers::new(Vec::new(), settings)
    }

    fn call(number: u64) -> CallId {
        CallId { turn: Seq(number), index: 0 }
    }

    fn request(id: u64, server: &str) -> Request {
        let schema = json!({ "type": "object", "properties": { "age": { "type": "integer" } } });
        let kind = Kind::Elicitation { message: "How old?".into(), schema };
        Request { id, server: server.into(), kind }
    }

    fn relay(call: CallId, wonder: u64, verdict: Verdict) -> Relay {
        Relay { agent: AgentId::MAIN, call, wonder, verdict }
    }

    #[test]
    fn a_question_is_put_beside_the_oldest_call_and_moves_on_when_that_returns() {
        let (servers, wonders) = (servers(), Wonders::default());
        assert_eq!(wonders.asked(&servers, request(1, "s")), None, "nothing runs");
        wonders.begin(Seq(10), "other", call(1));
        wonders.begin(Seq(20), "s", call(2));
        wonders.begin(Seq(30), "s", call(3));
        let (key, asked) = wonders.asked(&servers, request(2, "s")).expect("put");
        assert_eq!((key, asked.id), (Seq(20), 2));
        wonders.end(&servers, Seq(20));
        let moved = wonders.pop(&servers).map(|(key, wonder)| (key, wonder.id));
        assert_eq!(moved, Some((Seq(30), 2)));
        assert_eq!(wonders.pop(&servers), None);
        // What was answered beside the call that is over is not the answer.
        let text = "42".to_owned();
        wonders.answered(&servers, &relay(call(2), 2, Verdict::Answer { text }));
        assert_eq!(wonders.table().open.len(), 1);
        wonders.end(&servers, Seq(30));
        assert_eq!(wonders.table().open.len(), 0, "nobody is left to hear it");
        assert_eq!(wonders.pop(&servers), None);
    }

    #[test]
    fn an_answer_fits_is_put_again_or_closes_the_question() {
        let answer = |text: &str| Verdict::Answer { text: text.into() };
        let withdrawn = Verdict::Withdrawn { why: String::new() };
        let cases = [
            (vec![answer("42")], 0, 0),
            (vec![answer("old")], 1, 0),
            (vec![answer("old"), answer("older")], 1, 0),
            (vec![answer("old"), answer("older"), answer("oldest")], 0, 1),
            (vec![answer("old"), answer("42")], 0, 0),
            (vec![Verdict::Deny { message: None }], 0, 0),
            (vec![withdrawn], 0, 0),
        ];
        for (verdicts, open, notes) in cases {
            let (servers, wonders) = (servers(), Wonders::default());
            wonders.begin(Seq(1), "s", call(1));
            wonders.asked(&servers, request(7, "s")).expect("put");
            for verdict in &verdicts {
                wonders.answered(&servers, &relay(call(1), 7, verdict.clone()));
                wonders.pop(&servers);
            }
            assert_eq!(wonders.table().open.len(), open, "{verdicts:?}");
            assert_eq!(wonders.end(&servers, Seq(1)).notes.len(), notes, "{verdicts:?}");
        }
    }
}
