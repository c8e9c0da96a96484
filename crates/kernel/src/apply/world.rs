//! Folding what the session was told about the world.

use alloc::sync::Arc;

use super::ledger;
use crate::{Change, Offer, Session};

pub(super) fn configure(session: &mut Session, changes: &[Change]) {
    for change in changes {
        let world = &mut session.world;
        match change {
            Change::Audience(audience) => world.audience = *audience,
            Change::Mode(mode) => world.mode = *mode,
            Change::Rules(rules) => world.rules.clone_from(rules),
            Change::Limits(limits) => {
                ledger::retime(session, None, |session| session.world.limits = limits.clone());
                session.slots.excused = session.slots.taken;
            }
            Change::Model(model) => world.model.clone_from(model),
            Change::Workspace(folder) => world.workspace.clone_from(folder),
            Change::ModelSpec { name, spec } => {
                world.models.insert(name.clone(), spec.clone());
            }
            Change::Tool(tool) => {
                let before = world.tools.insert(tool.name.clone(), tool.clone());
                // What was granted was granted to something that said another thing of itself.
                if before.is_some_and(|before| before.identity != tool.identity) {
                    session.grants.retain(|_, grant| grant.tool != tool.name);
                    // So were rules: whoever wrote them saw what it said then.
                    session.world.disguised.insert(tool.name.clone());
                }
            }
            Change::ToolGone(name) => {
                let before = world.tools.remove(name);
                // Whatever comes back under its name may say another thing of itself.
                if before.is_some_and(|before| before.identity.is_some()) {
                    session.grants.retain(|_, grant| grant.tool != *name);
                }
            }
            Change::Definition { digest, definition } => {
                world.catalogue.insert(definition.name.clone(), digest.clone());
                world.definitions.insert(digest.clone(), Arc::new((**definition).clone()));
            }
            Change::Brought { digest, definition } => {
                world.definitions.insert(digest.clone(), Arc::new((**definition).clone()));
            }
            Change::Offers(offers) => {
                let named = |offer: &Offer| (offer.name.clone(), offer.clone());
                world.offers = offers.iter().map(named).collect();
            }
            // Agents made from it keep the words they had: only the name goes.
            Change::DefinitionGone(name) => {
                world.catalogue.remove(name);
            }
        }
    }
}
