//! What the kernel hears of a definition: everything that only this place knows is filled in.

use std::fmt::Write as _;
use std::path::Path;

use locum_definitions::{
    Built, Definition, Found, Kind, Library as Files, Origin, Reach, Scope, to_kernel,
};
use locum_kernel::{Check, Class, Definition as Judged, Rights, ToolSpec};
use locum_runtime::subjects;

use super::{Agreed, Librarian};
use crate::arguments;
use crate::library::is_on;

impl Librarian {
    /// What the kernel hears of it, with everything only this place knows filled in. `words` are
    /// what it was called with.
    pub(crate) fn judged(&self, files: &Files, built: &Built, words: &str) -> Judged {
        let definition = &built.definition;
        let specs = self.world.tools.specs();
        self.tell(built.problems.iter());
        let mut judged = to_kernel(definition, &specs);
        judged.limits.turns_max = judged.limits.turns_max.or(self.world.turns_usual);
        if let Some(classes) = self.world.script.as_ref().and_then(|it| it.may(&judged.name)) {
            let narrow = Rights { classes: classes.clone(), tools: None };
            judged.uses = judged.uses.meet(&narrow);
            judged.ceiling = judged.ceiling.meet(&narrow);
        }
        judged.model = judged.model.and_then(|name| self.model(&definition.name, &name));
        if let Some(proof) = &mut judged.proof {
            let exec = specs.iter().find(|spec| spec.name == "exec");
            for check in proof.checks.iter_mut().chain(&mut proof.on_failure) {
                read_line(check, exec);
            }
        }
        self.miss_servers(definition, &specs);
        if definition.kind == Kind::Skill {
            judged.instructions = arguments::filled(&judged.instructions, words);
        }
        judged.instructions.push_str(&self.besides(files, definition));
        if definition.memory.is_some() {
            judged.instructions.push_str(remembers(&judged.uses));
        }
        judged.stands_in = self.stands_in(files, &judged.name, &definition.origin);
        let asks = definition.servers.iter().filter(|it| it.needs_consent);
        if asks.clone().any(|server| !self.world.agreed.has(server, &definition.origin.file)) {
            let what: Vec<String> = definition.consents().into_iter().map(|it| it.what).collect();
            judged.caution = Some(format!("{} wants to {}", definition.name, what.join("; ")));
        } else if matches!(self.world.agreed, Agreed::Before(_)) {
            for server in asks.filter(|server| !server.wants().is_empty()) {
                let (name, server, wants) = (&definition.name, &server.name, server.wants());
                self.say(&format!("note: {name} starts the server {server} with {wants}"));
            }
        }
        judged
    }

    /// Servers a definition names that nobody has configured here.
    fn miss_servers(&self, definition: &Definition, specs: &[ToolSpec]) {
        for server in definition.servers.iter().filter(|it| it.how == Reach::Named) {
            let own = server.prefix();
            if !specs.iter().any(|spec| spec.name.starts_with(&own)) {
                let (name, wanted) = (&definition.name, &server.name);
                self.say(&format!(
                    "note: {name} wants the server {wanted}, which has no tools here; \
                     do: locum mcp list"
                ));
            }
        }
    }

    /// A project may call its own what it likes; what is allowed to a name was allowed to whoever
    /// had it before.
    pub(super) fn stands_in(&self, files: &Files, name: &str, origin: &Origin) -> bool {
        let is_theirs = |found: &Found| {
            found.origin.scope > origin.scope && found.name.eq_ignore_ascii_case(name)
        };
        origin.scope == Scope::Workspace
            && (self.is_known(name) || files.found.iter().any(is_theirs))
    }

    /// What it is told after its own words.
    fn besides(&self, files: &Files, definition: &Definition) -> String {
        let mut text = String::new();
        for name in &definition.skills {
            let found = files.named_as(Kind::Skill, name).ok();
            let found = found.filter(|found| is_on(found, &self.world.settings));
            // That one is not there was told when the definition was read.
            let Some(skill) = found.and_then(|found| self.read(files.load(found)).ok()) else {
                continue;
            };
            let folder = skill.origin.folder().display();
            let _ = write!(
                text,
                "\n\n# Skill: {name}\nIts files are in {folder}.\n\n{}",
                skill.instructions
            );
        }
        if definition.kind == Kind::Skill {
            let folder = definition.origin.folder().display();
            let _ = write!(text, "\n\nThe files of this skill are in {folder}.");
        }
        // Its text may well speak of a server by the name that no tool can have.
        for server in &definition.servers {
            let Some(called) = &server.called else { continue };
            let start = server.prefix();
            let _ = write!(text, "\n\nThe tools of the server `{called}` begin with `{start}`.");
        }
        text
    }

    /// A model that cannot be asked here is no reason to stop: its parent's is used.
    fn model(&self, definition: &str, name: &str) -> Option<String> {
        let models = self.world.models.as_ref()?;
        let found = models.usable(name);
        if found.is_none() {
            self.say(&format!(
                "note: {definition} wants the model {name}, which cannot be asked here; it uses \
                 its parent's"
            ));
        }
        found
    }
}

/// Who may change nothing may still look.
fn remembers(uses: &Rights) -> &'static str {
    if uses.allow("memory_save", Class::Write) {
        "\n\nYou have a memory of your own. Look with memory_search for what you noted before, and \
         keep what will be worth knowing next time with memory_save, scope agent."
    } else if uses.allow("memory_search", Class::Read) {
        "\n\nYou have a memory of your own. Look with memory_search for what you noted before."
    } else {
        ""
    }
}

fn read_line(check: &mut Check, exec: Option<&ToolSpec>) {
    let arguments = serde_json::json!({ "command": check.command });
    check.subjects = exec.and_then(|exec| subjects::subjects(exec, &arguments, Path::new("/")));
}

/// Nothing that a person has to agree to is started.
pub(crate) fn without_servers(judged: &mut Judged) {
    judged.kit.servers.clear();
    judged.setup = judged.kit.needs_setup();
}
