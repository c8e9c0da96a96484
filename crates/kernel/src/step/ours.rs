//! Calls the runtime makes in an agent's name: checks of its work before it is accepted, and the
//! program that does the work of an agent without a model. They are calls like others: judged,
//! journaled before they run, and cut by a crash.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde_json::{Value, json};

use super::Step;
use crate::{
    Agent, AgentId, Body, Call, CallState, Check, Class, Deed, Event, Mode, Note, Ours, Outcome,
    Output, Program, Proof, Purpose, Reply, Source, Subjects, Tool, Use, Who, Why, headline,
};

/// The tool that runs another program for a whole turn. Only the runtime calls it.
pub(crate) const PROGRAM: &str = "passthrough";
const EXEC: &str = "exec";

impl Step<'_> {
    /// A reply that hands something in, with the definition's checks before that.
    pub(super) fn with_checks(&self, id: AgentId, mut reply: Reply) -> Reply {
        let agent = &self.session[id];
        let proof = self.session.definition(agent).and_then(|it| it.proof.as_ref());
        // What is wrong in itself is not checked, and a last turn has no second try.
        let Some(proof) = proof.filter(|_| reply.flaw.is_none() && agent.last_turn.is_none())
        else {
            return reply;
        };
        let completes = reply.calls.iter().position(is_complete);
        let place = match completes {
            Some(place) if !agent.is_main() => place,
            None if reply.calls.is_empty() && self.are_final_words(id) => 0,
            Some(_) | None => return reply,
        };
        reply.calls.splice(place..place, calls(proof));
        reply
    }

    /// What an own call need not run for.
    pub(super) fn spared(&self, agent: &Agent, call: &Call) -> Option<Output> {
        let failed = failed_call(agent).is_some();
        match call.ours? {
            Ours::Check if failed => Some(Output::error("not run: an earlier check failed")),
            Ours::OnFailure if !failed => Some(Output::ok("not needed: every check passed")),
            Ours::OnFailure if agent.trial.failed >= self.tries(agent) => {
                Some(Output::ok("not run: there is no other try"))
            }
            Ours::Check | Ours::OnFailure | Ours::Program => None,
        }
    }

    /// Judges what came of own calls, once. True if the agent has nothing more to think about.
    pub(super) fn judge_own(&mut self, id: AgentId) -> bool {
        let agent = &self.session[id];
        let Some((reply, results, seq)) = agent.last_exchange() else { return false };
        if agent.trial.judged == Some(seq) {
            return false;
        }
        let own = |ours| reply.calls.iter().position(|call| call.ours == Some(ours));
        if let Some(at) = own(Ours::Program) {
            let output = results.get(at).map(|(_, output)| output.clone()).unwrap_or_default();
            self.end_program(id, output);
            return true;
        }
        if own(Ours::Check).is_none() || reply.calls.iter().any(is_complete) {
            return false;
        }
        let mut checks = reply.calls.iter().zip(results);
        let failed =
            checks.find(|(call, (_, output))| call.ours == Some(Ours::Check) && !passed(output));
        match failed.map(|(call, (_, output))| Flaw::of(&call.arguments, output)) {
            None => {
                self.emit(Event::Proved { agent: id });
                self.ready.push_back(id);
                true
            }
            Some(flaw) => self.disprove(id, &flaw),
        }
    }

    /// How often an agent may try again.
    fn tries(&self, agent: &Agent) -> u32 {
        let proof = self.session.definition(agent).and_then(|it| it.proof.as_ref());
        proof.map_or(0, |proof| proof.tries_max)
    }

    /// Its work did not stand up. True if it may not try again: there is no other try, or nobody
    /// lets the check run.
    pub(super) fn disprove(&mut self, id: AgentId, flaw: &Flaw) -> bool {
        let agent = &self.session[id];
        let (tries, why) = (self.tries(agent), flaw.why.clone());
        let (failed, for_good) =
            (agent.trial.failed + 1, flaw.denied || agent.trial.failed >= tries);
        self.emit(Event::Disproved { agent: id, why: why.clone(), for_good });
        if for_good {
            self.end_flawed(id, &why);
            return true;
        }
        let text = format!(
            "Your work was not accepted (try {failed} of {}). {why} Mend that, then finish again.",
            tries + 1
        );
        self.tell(id, Source::Runtime, text);
        false
    }

    /// Which check of the turn under way failed, in words.
    pub(super) fn failed_check(&self, id: AgentId) -> Option<Flaw> {
        let call = failed_call(&self.session[id])?;
        let CallState::Returned(output) = &call.state else { return None };
        Some(Flaw::of(&call.arguments, output))
    }

    /// An agent that is a program: it is started with whatever it has been told.
    pub(super) fn run_program(&mut self, id: AgentId, program: &Program) {
        self.think(id, Purpose::Answer, None);
        let told = match self.session[id].transcript.last().map(|line| &line.body) {
            Some(Body::Told(notes)) => words(notes),
            Some(Body::Replied(_) | Body::Results(_) | Body::Summary(_)) | None => String::new(),
        };
        let line: Vec<String> = program.command.iter().map(|word| quoted(word)).collect();
        let arguments = self.program_arguments(id, program, &told);
        let call = Use {
            subjects: Some(Subjects::Parts(Vec::from([line.join(" ")]))),
            ours: Some(Ours::Program),
            ..Use::new(PROGRAM, arguments)
        };
        let reply = Reply { calls: Vec::from([call]), ..Reply::default() };
        self.emit(Event::Replied { agent: id, reply: Box::new(reply) });
        self.ready.push_back(id);
    }

    /// Whoever is asked sees all it gets: the network, variables, folders.
    fn program_arguments(&self, id: AgentId, program: &Program, told: &str) -> Value {
        let agent = &self.session[id];
        let mut arguments =
            json!({ "command": program.command, "input": program.input, "text": told });
        if self.session.rights(id).classes.contains(&Class::Network) {
            arguments["network"] = true.into();
        }
        let Some(kit) = self.session.definition(agent).map(|it| &it.kit) else { return arguments };
        if !kit.env.is_empty() {
            arguments["env"] = json!(kit.env);
        }
        if !kit.writes.is_empty() {
            arguments["writes"] = json!(kit.writes);
        }
        arguments
    }

    /// What the program printed is the agent's result.
    fn end_program(&mut self, id: AgentId, output: Output) {
        let well = passed(&output);
        let agent = &self.session[id];
        let (on_floor, is_main) = (agent.mode == Mode::Floor, agent.is_main());
        if on_floor && !output.text.trim().is_empty() {
            self.speak(id, &output.text);
        }
        let why = format!("the program {}", ending(&output));
        match (is_main, well) {
            (true, true) => {
                self.emit(Event::Proved { agent: id });
                self.ready.push_back(id);
            }
            (true, false) => {
                self.emit(Event::Disproved { agent: id, why, for_good: true });
            }
            (false, true) => {
                self.finish(id, Outcome::Done, output.text, Why::Completed, Who::Agent(id));
            }
            (false, false) => {
                let text = format!("{}\n[{why}]", output.text);
                self.finish(id, Outcome::Failed, text, Why::Flawed(why), Who::Agent(id));
            }
        }
    }
}

fn is_complete(call: &Use) -> bool {
    Tool::named(&call.name) == Some(Tool::Complete)
}

fn calls(proof: &Proof) -> Vec<Use> {
    let call = |check: &Check, ours: Ours, timeout_s: u64| Use {
        // Nobody has read it: what it runs is not known, so no rule for a part of it holds.
        subjects: Some(check.subjects.clone().unwrap_or_else(|| Subjects::Opaque {
            opaque: "a check that nobody has read".into(),
            seen: Vec::from([check.command.clone()]),
        })),
        ours: Some(ours),
        ..Use::new(EXEC, json!({ "command": check.command, "timeout_s": timeout_s }))
    };
    let checks = proof.checks.iter().map(|it| call(it, Ours::Check, proof.check_timeout_s));
    let after = proof.on_failure.iter();
    let after = after.map(|it| call(it, Ours::OnFailure, proof.on_failure_timeout_s));
    checks.chain(after).collect()
}

fn failed_call(agent: &Agent) -> Option<&Call> {
    agent.calls().find(|call| {
        let failed = matches!(&call.state, CallState::Returned(output) if !passed(output));
        call.ours == Some(Ours::Check) && failed
    })
}

fn passed(output: &Output) -> bool {
    let well = |deed: &Deed| match deed {
        Deed::Ran { exit, .. } => *exit == 0,
        Deed::Changed { .. } => true,
    };
    !output.is_error && output.deeds.iter().all(well)
}

fn ending(output: &Output) -> String {
    match output.exit() {
        Some(exit) => format!("ended with {exit}"),
        None => format!("came to nothing: {}", headline(&output.text, 200)),
    }
}

/// What is wrong with an agent's work.
pub(super) struct Flaw {
    pub(super) why: String,
    /// Nobody let the check run: to try again would not help.
    denied: bool,
}

impl Flaw {
    fn of(arguments: &Value, output: &Output) -> Flaw {
        let command = arguments.get("command").and_then(Value::as_str).unwrap_or_default();
        let why = format!("The check `{}` {}.", headline(command, 200), ending(output));
        Flaw { why, denied: output.denied }
    }
}

fn words(notes: &[Note]) -> String {
    let texts: Vec<&str> = notes.iter().map(|note| note.text.as_str()).collect();
    texts.join("\n\n")
}

/// A word as a shell line would have it, so that rules read like lines.
fn quoted(word: &str) -> String {
    let plain = |sign: char| sign.is_ascii_alphanumeric() || "_./:=@%+,-".contains(sign);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
