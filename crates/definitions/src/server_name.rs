//! What the tools of a server begin with: a model can only call names of letters, digits, `_` and
//! `-`, and texts written for another program name tools as that program does.

use crate::server::Server;

/// Between a server's name and its tool's.
pub(crate) const MARK: &str = "__";
/// With a tool's name behind it a name must stay below what providers take.
const LETTERS_MAX: usize = 40;

impl Server {
    /// Under the name that recipes' own program makes of it: small letters without spaces.
    pub(crate) fn named_for_recipes(self) -> Server {
        let name = self.name.to_lowercase();
        let solid: String = name.chars().filter(|sign| !sign.is_whitespace()).collect();
        self.under(&solid)
    }

    /// The same for agents, whose programs keep capitals and put `_` for the rest.
    pub(crate) fn named_for_agents(self) -> Server {
        let name = self.name.clone();
        self.under(&name)
    }

    fn under(mut self, name: &str) -> Server {
        // With its values it is read again.
        if name.contains("{{") {
            return self;
        }
        let mut clean = spelled(name);
        // Two of them would end the server's name too early.
        while clean.contains(MARK) {
            clean = clean.replace(MARK, "_");
        }
        let clean: String = clean.trim_matches('_').chars().take(LETTERS_MAX).collect();
        let clean = clean.trim_end_matches('_');
        let clean = if clean.is_empty() { "server" } else { clean };
        if clean != self.name {
            self.called = Some(std::mem::replace(&mut self.name, clean.to_owned()));
        }
        self
    }

    /// How the names of its tools begin.
    #[must_use]
    pub fn prefix(&self) -> String {
        format!("{}{MARK}", spelled(&self.name))
    }
}

pub(crate) fn spelled(name: &str) -> String {
    let good = |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || sign == '-';
    name.chars().map(|sign| if good(sign) { sign } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use crate::problem::Place;
    use crate::server::by_name;

    #[test]
    fn names() {
        let cases = [
            ("git", "git__", "git__"),
            ("a-b_c", "a-b_c__", "a-b_c__"),
            ("GitHub", "github__", "GitHub__"),
            ("Google Drive", "googledrive__", "Google_Drive__"),
            ("a__b", "a_b__", "a_b__"),
            ("a.b/", "a_b__", "a_b__"),
            (" x ", "x__", "x__"),
            ("é", "server__", "server__"),
        ];
        for (name, recipe, agent) in cases {
            let server = || by_name(name, Place::START);
            let both = [server().named_for_recipes(), server().named_for_agents()];
            for (server, expected) in both.into_iter().zip([recipe, agent]) {
                assert_eq!(server.prefix(), expected, "{name:?}");
                let kept = format!("{name}__") == expected;
                assert_eq!(server.called.as_deref(), (!kept).then_some(name), "{name:?}");
            }
        }
        let long = by_name(&"x".repeat(100), Place::START).named_for_agents();
        assert_eq!(long.prefix().len(), 42);
    }
}
