//! Calls that need not wait for each other: recipes below a recipe, called in one reply. Each but
//! those that their recipe wants one at a time begins at once; results are told in order.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Step;
use super::request::{Request, request};
use crate::{Agent, AgentId, Call, CallId, CallState, Made, Make, Mode, Ruling, Sub, Tool, judge};

impl Step<'_> {
    /// Lets those run beside a child that was called before them in the same reply, up to the
    /// first call that is none of these or would have to ask.
    pub(super) fn start_subs_beside(&mut self, id: AgentId) {
        let agent = &self.session[id];
        let subs = agent.calls().skip_while(|call| call.has_returned());
        let subs = subs.map_while(|call| Some((call, self.called_below(agent, call)?)));
        let subs = subs.take_while(|(call, _)| match call.state {
            CallState::Pending => judge(self.session, agent, call, self.at) == Ruling::Allow,
            CallState::Child(_) | CallState::Returned(_) => true,
            CallState::Asked(_)
            | CallState::Approved
            | CallState::Running { .. }
            | CallState::Awaiting(_) => false,
        });
        let waiting = subs.filter(|(call, _)| call.state == CallState::Pending);
        let live = agent.live.iter().map(|child| self.session[*child].name.as_str());
        let mut busy: BTreeSet<&str> = live.collect();
        let free = waiting.filter(|(_, sub)| busy.insert(&sub.offer.name) || !sub.in_turn);
        let free: Vec<CallId> = free.map(|(call, _)| call.id).collect();
        for call in free {
            self.dispatch(id, call);
        }
    }

    /// The sub-recipe that a call runs to its end, if it is a call of one.
    fn called_below(&self, agent: &Agent, call: &Call) -> Option<&Sub> {
        let Some(Tool::Make(make @ (Make::CallRecipe | Make::Delegate))) = Tool::named(&call.name)
        else {
            return None;
        };
        let Request { name, mode, .. } = request(make, call.arguments.as_object()?).ok()?;
        let wish = match &call.made {
            Some(Made::Of(digest)) => self.session.world.definitions.get(digest)?.mode,
            Some(Made::Not(_)) | None => None,
        };
        let is_call = mode == Mode::Call && (make == Make::CallRecipe || wish.is_none());
        let sub = |sub: &&Sub| sub.offer.name.eq_ignore_ascii_case(&name);
        self.session.definition(agent)?.subs.iter().find(sub).filter(|_| is_call)
    }

    /// Those of a name that are at work for an agent whose definition wants them one at a time.
    pub(super) fn in_the_way(&self, parent: &Agent, name: &str) -> Vec<AgentId> {
        let subs = self.session.definition(parent).into_iter().flat_map(|it| &it.subs);
        let mut in_turn = subs.filter(|sub| sub.in_turn && sub.offer.name == name);
        let same = |other: &&AgentId| self.session[**other].name == name;
        let same = in_turn.next().map(|_| parent.live.iter().filter(same).copied());
        same.into_iter().flatten().collect()
    }

    /// Whoever waits for a child cannot help those the child would come after, so it is told to
    /// wait for them first.
    pub(super) fn must_be_free(&self, parent: &Agent, name: &str) -> Result<(), String> {
        match self.in_the_way(parent, name).first() {
            None => Ok(()),
            Some(other) => Err(format!(
                "{name} runs one at a time, and {} ({other}) is at work: wait for it, then call \
                 again",
                self.session[*other].label
            )),
        }
    }
}
