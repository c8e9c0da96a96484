//! Folding what is counted: slots, clocks, tokens and money. Every change of an agent's phase
//! passes through [`settle`], so a waiting agent holds no slot and its clock stands still.
//! Whose account it is, is an agent or `None`: the tree.

use alloc::vec::Vec;

use crate::{Account, AgentId, Breach, Mode, Session, Spend, Time, Timer, Usage};

/// Brings slot, clock and timers of an agent in line with what it is doing now.
pub(super) fn settle(session: &mut Session, id: AgentId) {
    let agent = &mut session[id];
    let active = agent.is_active();
    let was_active = agent.account.clock.running_since.is_some();
    if active && !was_active {
        if agent.mode != Mode::Floor {
            agent.slot = true;
            session.slots.taken += 1;
        }
        start_clock(session, Some(id));
        session.tree.active += 1;
        if session.tree.active == 1 {
            start_clock(session, None);
        }
    }
    if !active && was_active {
        stop_clock(session, Some(id));
        give_up_slot(session, id);
        session.tree.active -= 1;
        if session.tree.active == 0 {
            stop_clock(session, None);
        }
    }
}

fn account(session: &mut Session, whose: Option<AgentId>) -> &mut Account {
    match whose {
        Some(id) => &mut session[id].account,
        None => &mut session.tree.account,
    }
}

fn start_clock(session: &mut Session, whose: Option<AgentId>) {
    let now = session.now;
    adjust(session, whose, |account| account.clock.running_since = Some(now));
}

fn stop_clock(session: &mut Session, whose: Option<AgentId>) {
    let now = session.now;
    adjust(session, whose, |Account { clock, .. }| {
        clock.ms = clock.read(now);
        clock.running_since = None;
    });
}

pub(super) fn give_up_slot(session: &mut Session, id: AgentId) {
    if core::mem::take(&mut session[id].slot) {
        session.slots.taken -= 1;
        session.slots.excused = session.slots.excused.min(session.slots.taken);
    }
}

/// Time in which no process was there is nobody's active time.
pub(super) fn stand_still(session: &mut Session, passed_ms: u64) {
    if passed_ms == 0 {
        return;
    }
    let agents = session.agents.iter().map(|agent| Some(agent.id));
    for whose in agents.chain([None]).collect::<Vec<_>>() {
        let clock = &account(session, whose).clock;
        if let Some(since) = clock.running_since {
            let since = Some(since.plus_ms(passed_ms));
            adjust(session, whose, |account| account.clock.running_since = since);
        }
    }
}

fn timer(session: &Session, whose: Option<AgentId>) -> Option<(Time, Timer)> {
    let (clock, max) = match whose {
        Some(id) => (session[id].account.clock, session[id].limits.active_ms_max?),
        None => (session.tree.account.clock, session.world.limits.active_ms_max?),
    };
    Some((clock.running_since?.plus_ms(clock.left_ms(max)), Timer::Limit(whose)))
}

/// Changes what a clock or its limit is, with its timer kept right.
pub(super) fn retime(
    session: &mut Session,
    whose: Option<AgentId>,
    change: impl FnOnce(&mut Session),
) {
    if let Some(timer) = timer(session, whose) {
        session.timers.remove(&timer);
    }
    change(session);
    session.timers.extend(timer(session, whose));
}

fn adjust(session: &mut Session, whose: Option<AgentId>, change: impl FnOnce(&mut Account)) {
    retime(session, whose, |session| change(account(session, whose)));
}

/// What a person asks of a resting main is a new root: the tree is counted afresh.
pub(super) fn new_root(session: &mut Session) {
    let now = session.now;
    session.tree.spawns = 0;
    adjust(session, None, |account| {
        let Account { reserved, mut clock, .. } = *account;
        clock.base_ms = clock.read(now);
        *account = Account { reserved, clock, ..Account::default() };
    });
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
    let account = account(session, whose);
    account.topped_up = account.topped_up.saturating_add(micro_usd);
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
