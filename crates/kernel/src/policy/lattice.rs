//! Over random trees of agents: what an agent uses is within its ceiling, its ceiling within its
//! parent's, and the judge never lets through what anybody above was forbidden. Beside the kernel
//! an onlooker keeps its own account, as plain sets of tools.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use serde_json::json;

use super::{Ruling, judge};
use crate::{
    Audience, Call, CallId, CallState, Class, Command, Config, Definition, Input, Kind, Message,
    Owed, PolicyMode, Reply, Rights, Session, Time, To, ToolSpec, TreeLimits, Urgency, Use, Who,
    step,
};

/// Trees that are tried where nothing is optimised; `cargo xtask sim` tries 100,000.
const TREES: u64 = 3_000;
const ACTS: u64 = 7;
const DEFINITIONS: usize = 24;

const TOOLS: [(&str, Class); 6] = [
    ("read", Class::Read),
    ("write", Class::Write),
    ("edit", Class::Write),
    ("exec", Class::Exec),
    ("fetch", Class::Network),
    ("spawn_agent", Class::Delegate),
];

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % n as u64).unwrap_or_default()
    }

    fn rights(&mut self) -> Rights {
        let classes = Class::ALL.into_iter().filter(|_| self.below(5) > 0);
        let rights = Rights { classes: classes.collect(), tools: None };
        if self.below(2) == 0 {
            return rights;
        }
        let tools: Vec<&str> =
            TOOLS.iter().filter(|_| self.below(4) > 0).map(|(name, _)| *name).collect();
        rights.with_tools(tools)
    }
}

/// The tools that rights allow, one bit each: no code is shared with what is tested.
fn bits(rights: &Rights) -> u8 {
    let mut bits = 0;
    for (place, (name, class)) in TOOLS.iter().enumerate() {
        let named = rights.tools.as_ref().is_none_or(|set| set.iter().any(|it| it == name));
        if named && rights.classes.iter().any(|it| it == class) {
            bits |= 1 << place;
        }
    }
    bits
}

/// What the onlooker knows of an agent.
#[derive(Clone, Copy)]
struct Known {
    parent: Option<usize>,
    uses: u8,
    ceiling: u8,
}

fn base(dice: &mut Dice) -> (Session, Vec<(u8, u8)>) {
    let mut definitions = Vec::new();
    let mut known = Vec::new();
    for nth in 0..DEFINITIONS {
        let mut definition = Definition::new(&format!("d{nth}"), Kind::Agent);
        (definition.uses, definition.ceiling) = (dice.rights(), dice.rights());
        known.push((bits(&definition.uses), bits(&definition.ceiling)));
        definitions.push(definition);
    }
    let tools = TOOLS[..5].iter().map(|(name, class)| ToolSpec {
        brought: false,
        caution: None,
        identity: None,
        name: String::from(*name),
        class: *class,
        idempotent: false,
        subject: None,
        timeout_ms: None,
    });
    let config = Config {
        offers: Vec::new(),
        session: "lattice".into(),
        workspace: String::new(),
        main: Definition::new("main", Kind::Main),
        model: "a/b".into(),
        audience: Audience::Present,
        mode: PolicyMode::Auto,
        rules: Vec::new(),
        limits: TreeLimits { slots: 100, ..TreeLimits::default() },
        tools: tools.collect(),
        definitions,
        models: BTreeMap::new(),
    };
    let mut session = Session::new();
    step(&mut session, Time(0), Input::Configured(alloc::boxed::Box::new(config))).unwrap();
    let message = Message {
        pictures: Vec::new(),
        channel: "t".into(),
        sender: "t".into(),
        external_id: None,
        text: "go".into(),
        urgency: Urgency::Queue,
        to: To::Main,
        reply_to: None,
    };
    step(&mut session, Time(1), Input::Said(message)).unwrap();
    (session, known)
}

struct Tree<'a> {
    session: Session,
    definitions: &'a [(u8, u8)],
    agents: Vec<Known>,
}

impl Tree<'_> {
    /// An agent asks for a child; whether it gets one, the judge decides.
    fn birth(&mut self, dice: &mut Dice) {
        let models = self.session.owed.iter().filter_map(|(key, owed)| match owed {
            Owed::Model(id) => Some((*key, *id)),
            Owed::Tool(..) | Owed::Setup(_) | Owed::Delivery(_) | Owed::Relay(_) => None,
        });
        let models: Vec<_> = models.collect();
        let Some(&(key, parent)) = models.get(dice.below(models.len().max(1))) else {
            return;
        };
        let nth = dice.below(DEFINITIONS);
        if self.session[parent].name == format!("d{nth}") {
            return; // Nobody may use itself.
        }
        let arguments = json!({ "agent": format!("d{nth}"), "message": "work" });
        let call =
            Use { made: None, ours: None, name: "spawn_agent".into(), arguments, subjects: None };
        let reply = Reply { calls: Vec::from([call]), ..Reply::default() };
        let before = self.session.agents.len();
        step(&mut self.session, Time(2), Input::Replied { key, reply }).unwrap();
        let may = self.may(parent.index()) & (1 << 5) != 0;
        assert_eq!(self.session.agents.len() > before, may, "a birth from {parent}");
        if may {
            let (uses, ceiling) = self.definitions[nth];
            self.agents.push(Known { parent: Some(parent.index()), uses, ceiling });
        }
    }

    fn narrow(&mut self, dice: &mut Dice) {
        let nth = dice.below(self.agents.len());
        let to = dice.rights();
        self.agents[nth].ceiling &= bits(&to);
        let agent = self.session.agents[nth].id;
        let command = Command::Narrow { agent, to };
        let by = Who::Person("ann".into());
        // Nothing may be left to take away.
        let _ = step(&mut self.session, Time(3), Input::Commanded { by, command });
    }

    /// What the onlooker says an agent may do: its own uses, and the ceilings of all above.
    fn may(&self, nth: usize) -> u8 {
        let mut may = self.agents[nth].uses;
        let mut at = Some(nth);
        while let Some(nth) = at {
            may &= self.agents[nth].ceiling;
            at = self.agents[nth].parent;
        }
        may
    }

    fn check(&self) {
        for (nth, agent) in self.session.agents.iter().enumerate() {
            assert!(agent.uses.within(&agent.ceiling), "{}: use ⊆ ceiling", agent.id);
            if let Some((parent, _)) = agent.parent {
                let above = &self.session[parent].ceiling;
                assert!(agent.ceiling.within(above), "{}: ceiling ⊆ parent", agent.id);
            }
            let may = self.may(nth);
            for (place, (name, _)) in TOOLS.iter().enumerate() {
                let call = call(name);
                let ruling = judge(&self.session, agent, &call, Time(4));
                let lets = !matches!(ruling, Ruling::Deny(..));
                assert_eq!(lets, may & (1 << place) != 0, "{} {name}: {ruling:?}", agent.id);
            }
        }
    }
}

fn call(name: &str) -> Call {
    Call {
        made: None,
        ours: None,
        id: CallId { turn: crate::Seq(1), index: 0 },
        name: name.into(),
        arguments: Arc::new(json!({ "path": "a" })),
        subjects: None,
        edited: false,
        state: CallState::Pending,
        wonders: Vec::new(),
        wondered: 0,
        relays: Vec::new(),
    }
}

#[test]
fn nothing_is_allowed_that_anybody_above_was_forbidden() {
    let mut dice = Dice(0x1a77_1ce5);
    let mut births = 0;
    let (mut session, mut definitions) = base(&mut dice);
    let trees = option_env!("LOCUM_TREES").and_then(|text| text.parse().ok());
    let trees = trees.unwrap_or(TREES);
    for tree in 0..trees {
        if tree % 1_000 == 0 {
            (session, definitions) = base(&mut dice);
        }
        let everything = bits(&Rights::all());
        let main = Known { parent: None, uses: everything, ceiling: everything };
        let (session, definitions) = (session.clone(), definitions.as_slice());
        let mut tree = Tree { session, definitions, agents: Vec::from([main]) };
        for _ in 0..ACTS {
            if dice.below(4) == 0 { tree.narrow(&mut dice) } else { tree.birth(&mut dice) }
        }
        tree.check();
        births += tree.agents.len() - 1;
    }
    assert!(
        births as u64 > trees,
        "only {births} births: the trees are too small to show anything"
    );
}
