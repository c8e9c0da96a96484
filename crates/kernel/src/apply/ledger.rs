//! Folding what is counted: slots, clocks, tokens and money. Every change of an agent's phase
//! passes through [`settle`], so a waiting agent holds no slot and its clock stands still.

use crate::{Account, AgentId, Breach, Mode, Session, Spend, Timer, Usage};

/// Brings slot, clock and timers of an agent in line with what it is doing now.
pub(super) fn settle(session: &mut Session, id: AgentId) {
    let now = session.now;
    let agent = &mut session[id];
    let active = agent.is_active();
    let was_active = agent.account.clock.running_since.is_some();
    if active && !was_active {
        agent.account.clock.running_since = Some(now);
        if agent.mode != Mode::Floor {
            agent.slot = true;
            session.slots.held += 1;
        }
        start_timer(session, id);
        session.tree.active += 1;
        if session.tree.active == 1 {
            session.tree.account.clock.running_since = Some(now);
            start_tree_timer(session);
        }
    }
    if !active && was_active {
        stop_timer(session, id);
        stop_clock(session, id);
        give_up_slot(session, id);
        session.tree.active -= 1;
        if session.tree.active == 0 {
            stop_tree_timer(session);
            let clock = &mut session.tree.account.clock;
            clock.ms = clock.read(now);
            clock.running_since = None;
        }
    }
}

fn stop_clock(session: &mut Session, id: AgentId) {
    let now = session.now;
    let agent = &mut session[id];
    let clock = &mut agent.account.clock;
    clock.ms = clock.read(now);
    clock.running_since = None;
}

pub(super) fn give_up_slot(session: &mut Session, id: AgentId) {
    if let Some(agent) = session.agents.get_mut(id.index())
        && agent.slot
    {
        agent.slot = false;
        session.slots.held -= 1;
        session.slots.excused = session.slots.excused.min(session.slots.held);
    }
}

fn agent_timer(session: &Session, id: AgentId) -> Option<(crate::id::Time, Timer)> {
    let agent = &session[id];
    let clock = agent.account.clock;
    let left = clock.left_ms(agent.limits.active_ms_max?);
    Some((clock.running_since?.plus_ms(left), Timer::Agent(id)))
}

/// Call after the clock has begun to run or its base has moved.
pub(super) fn start_timer(session: &mut Session, id: AgentId) {
    if let Some(timer) = agent_timer(session, id) {
        session.timers.insert(timer);
    }
}

/// Call before the clock stops or its base moves.
pub(super) fn stop_timer(session: &mut Session, id: AgentId) {
    if let Some(timer) = agent_timer(session, id) {
        session.timers.remove(&timer);
    }
}

fn tree_timer(session: &Session) -> Option<(crate::id::Time, Timer)> {
    let clock = session.tree.account.clock;
    let left = clock.left_ms(session.world.limits.active_ms_max?);
    Some((clock.running_since?.plus_ms(left), Timer::Tree))
}

pub(super) fn start_tree_timer(session: &mut Session) {
    if let Some(timer) = tree_timer(session) {
        session.timers.insert(timer);
    }
}

pub(super) fn stop_tree_timer(session: &mut Session) {
    if let Some(timer) = tree_timer(session) {
        session.timers.remove(&timer);
    }
}

/// Runs over the accounts that pay for an agent: its own, its ancestors', the tree's.
fn each_payer(session: &mut Session, id: AgentId, mut pay: impl FnMut(&mut Account)) {
    let mut at = Some(id);
    while let Some(agent) = at.and_then(|id| session.agents.get_mut(id.index())) {
        pay(&mut agent.account);
        at = agent.parent.map(|(parent, _)| parent);
    }
    pay(&mut session.tree.account);
}

pub(super) fn reserve(session: &mut Session, id: AgentId, spend: Spend) {
    each_payer(session, id, |account| account.reserved.add(spend));
}

pub(super) fn release(session: &mut Session, id: AgentId, spend: Spend) {
    each_payer(session, id, |account| account.reserved.sub(spend));
}

pub(super) fn charge(session: &mut Session, id: AgentId, usage: &Usage, micro_usd: Option<u64>) {
    let spend = Spend { tokens: usage.total(), micro_usd: micro_usd.unwrap_or(0) };
    each_payer(session, id, |account| {
        account.spent.add(spend);
        account.unpriced += u32::from(micro_usd.is_none());
    });
    let agent = &mut session[id];
    agent.tally.usage.add(usage);
    agent.tally.micro_usd = agent.tally.micro_usd.saturating_add(spend.micro_usd);
    agent.tally.unpriced += u32::from(micro_usd.is_none());
}

pub(super) fn top_up(session: &mut Session, whose: Option<AgentId>, micro_usd: u64) {
    let account = match whose {
        None => Some(&mut session.tree.account),
        Some(id) => session.agents.get_mut(id.index()).map(|agent| &mut agent.account),
    };
    if let Some(account) = account {
        account.topped_up = account.topped_up.saturating_add(micro_usd);
    }
}

/// A continued limit counts from here on.
pub(super) fn renew(session: &mut Session, whose: Option<AgentId>) {
    let now = session.now;
    adjust(session, whose, |account| {
        account.tokens_base = account.spent.tokens;
        account.clock.base_ms = account.clock.read(now);
        account.clock.grace_ms = 0;
    });
}

/// How long a grace turn may take when time itself was the limit.
const GRACE_MS: u64 = 60_000;

pub(super) fn allow_grace(session: &mut Session, breach: &Breach) {
    let now = session.now;
    adjust(session, breach.of, |account| {
        let over = account.clock.against_limit(now).saturating_sub(breach.max);
        account.clock.grace_ms = over.saturating_add(GRACE_MS);
    });
}

/// Changes what a limit is counted from, with its timer kept right.
fn adjust(session: &mut Session, whose: Option<AgentId>, change: impl FnOnce(&mut Account)) {
    match whose {
        None => {
            stop_tree_timer(session);
            change(&mut session.tree.account);
            start_tree_timer(session);
        }
        Some(id) => {
            stop_timer(session, id);
            let agent = &mut session[id];
            change(&mut agent.account);
            start_timer(session, id);
        }
    }
}
