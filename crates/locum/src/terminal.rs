//! The person at the terminal of a run: a line they type answers the ask it names or the only one
//! that is open, or goes to whoever has the floor. Slash commands and `@name` work as everywhere.

use locum_kernel::{
    AskKind, AskTo, Card, Command, Input, Message, Scope, To, Urgency, Verdict, View,
};
use locum_runtime::answer;
use locum_runtime::driver::{Closed, Handle};

use crate::kept::unkept;
use crate::people::{self, Crowd, agent, me, message};
use crate::print::note;

/// Passes on what is typed until the person leaves (end of input); then nobody is there.
pub(crate) async fn listen(handle: Handle, crowd: Crowd) -> Result<(), Closed> {
    match people::lines() {
        Ok(mut lines) => {
            while let Some(line) = lines.recv().await {
                let view = handle.view().await?;
                let told = match meaning(&view, line.trim()) {
                    Ok(None) => None,
                    Ok(Some(input)) => {
                        let unkept = unkept::of_answer(&view, &input);
                        let refused = handle.post(input).await?.err();
                        refused.map(|why| why.to_string()).or(unkept)
                    }
                    Err(why) => Some(why),
                };
                if let Some(why) = told {
                    note(&format!("  ({why})"));
                }
            }
        }
        Err(error) => note(&format!("the keyboard cannot be read: {error}")),
    }
    people::leave(&handle, crowd).await
}

/// What a typed line means now; nothing, if it is empty and nothing can be answered by that.
fn meaning(view: &View, line: &str) -> Result<Option<Input>, String> {
    if let Some(rest) = line.strip_prefix('/') {
        return slash(view, rest).map(Some);
    }
    // Whom it names is decided by whoever drives the session; it answers no ask.
    if line.starts_with('@') {
        return Ok(Some(Input::Said(message(line.to_owned(), Urgency::Queue))));
    }
    let open: Vec<&Card> = view.asks.iter().filter(|card| card.to == AskTo::Person).collect();
    if let Some((card, line)) = meant(&open, line)? {
        return Ok(verdict(card, line)?.map(|verdict| answered(card, verdict)));
    }
    let said = || Input::Said(message(line.to_owned(), Urgency::Queue));
    Ok((!line.is_empty()).then(said))
}

/// The ask a typed line answers, and the answer. With several open, only one that is named: what
/// is on the screen last need not be what waited longest.
fn meant<'v, 'l>(open: &[&'v Card], line: &'l str) -> Result<Option<(&'v Card, &'l str)>, String> {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    if let Some(card) = open.iter().find(|card| card.id.to_string() == word) {
        return Ok(Some((card, rest.trim())));
    }
    match open {
        [] => Ok(None),
        [only] => Ok(Some((only, line))),
        [oldest, ..] if line.is_empty() => Ok(Some((oldest, line))),
        [oldest, ..] => {
            let names: Vec<String> = open.iter().map(|card| card.id.to_string()).collect();
            let names = names.join(", ");
            Err(format!("{names} are open: say which, as in {} y", oldest.id))
        }
    }
}

fn answered(card: &Card, verdict: Verdict) -> Input {
    let digest = match &card.kind {
        AskKind::Approval(approval) => Some(approval.digest.clone()),
        AskKind::Question { .. } | AskKind::Continue { .. } | AskKind::Budget { .. } => None,
    };
    Input::Answered { ask: card.id, verdict, by: me(), digest }
}

fn verdict(card: &Card, line: &str) -> Result<Option<Verdict>, String> {
    if let AskKind::Question { options, .. } = &card.kind {
        let picked = line.parse::<usize>().ok().and_then(|at| options.get(at.checked_sub(1)?));
        let text = picked.map_or_else(|| line.to_owned(), Clone::clone);
        return Ok((!text.is_empty()).then(|| answer::words(&card.kind, text)));
    }
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let allow = |scope| Ok(Some(answer::allow(&card.kind, scope, None)));
    match word {
        // Nothing is ever granted by a key that was meant for something else.
        "" => Ok(None),
        "y" | "yes" | "once" => allow(Scope::Once),
        "a" | "agent" => allow(Scope::Agent),
        "f" | "fanout" => allow(Scope::Fanout),
        "p" | "project" => allow(Scope::Project),
        "n" | "no" => {
            let why = rest.trim();
            Ok(Some(answer::deny((!why.is_empty()).then(|| why.to_owned()))))
        }
        _ if matches!(card.kind, AskKind::Continue { .. }) => {
            Ok(Some(answer::words(&card.kind, line.to_owned())))
        }
        _ => Err(format!("{} waits for y or n [why]; @name text speaks to somebody", card.id)),
    }
}

fn slash(view: &View, line: &str) -> Result<Input, String> {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let command = match word {
        "back" => Command::Back,
        "done" => Command::Done { text: rest.to_owned() },
        "bg" => Command::Background,
        "fg" => Command::Foreground { agent: agent(view, rest)? },
        "cancel" => Command::Cancel { agent: agent(view, rest)?, why: "/cancel".into() },
        "continue" => Command::Continue { agent: agent(view, rest)?, text: None },
        "main" => {
            let said = message(rest.to_owned(), Urgency::Queue);
            return Ok(Input::Said(Message { to: To::Main, ..said }));
        }
        other => {
            let known = "/back /done [text] /bg /fg NAME /main TEXT /cancel NAME /continue NAME";
            return Err(format!("/{other} is not known; there are {known}"));
        }
    };
    Ok(Input::Commanded { by: me(), command })
}

#[cfg(test)]
mod tests {
    use locum_kernel::{AgentId, AskId, Time};

    use super::*;

    fn card(id: u64) -> Card {
        Card {
            id: AskId(id),
            agent: AgentId(1),
            path: "main/worker".into(),
            to: AskTo::Person,
            kind: AskKind::Continue { why: "tired".into() },
            summary: "tired: continue?".into(),
            at: Time(0),
            siblings: Vec::new(),
        }
    }

    #[test]
    fn a_bare_answer_is_for_the_only_ask_and_never_guessed() {
        let cards = [card(5), card(56)];
        let shown = |open: usize, line: &str| {
            let open: Vec<&Card> = cards.iter().take(open).collect();
            match meant(&open, line) {
                Ok(Some((card, answer))) => format!("{} <- {answer}", card.id),
                Ok(None) => "nobody".into(),
                Err(why) => why,
            }
        };
        let cases = [
            (0, "y", "nobody"),
            (1, "y", "q5 <- y"),
            (1, "q5 n too late", "q5 <- n too late"),
            (2, "q56 y", "q56 <- y"),
            (2, "q5 y", "q5 <- y"),
            (2, "y", "q5, q56 are open: say which, as in q5 y"),
            (2, "q6 y", "q5, q56 are open: say which, as in q5 y"),
            (2, "", "q5 <- "),
        ];
        for (open, line, expected) in cases {
            assert_eq!(shown(open, line), expected, "{open} open, {line:?}");
        }
    }
}
