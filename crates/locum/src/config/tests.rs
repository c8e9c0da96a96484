//! What a configuration may say, and what it is told when it says something else.

use super::*;

#[test]
fn everything_there_is_can_be_said() {
    let config = parse(
        Path::new("/etc/x/config.toml"),
        r#"
            model = "groq/llama"
            fallback = ["openai/gpt-5", "fast"]
            ca_file = "ca.pem"
            recipes = ["r", "/s"]
            enable = ["dig"]
            rules = ['allow exec "cargo *"', { rule = 'deny exec "rm *"', match = ["rm -r x"] }]
            aliases.fast = "groq/small"
            [providers.google]
            base_url = "http://127.0.0.1:1"
            key_env = "MY_KEY"
            headers = { X-Team = "a b" }
            [providers.mine]
            base_url = "http://127.0.0.1:2/v1"
            wire = "openai-chat"
            key_file = "/k"
            model = "m"
            [prices."google/g"]
            input = 0.5
            output = 1
            [limits]
            slots = 2
            max_turns = 3
            max_cost_usd = 1.25
        "#,
    );
    let config = config.unwrap();
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
    assert_eq!(config.model.as_deref(), Some("groq/llama"));
    assert_eq!(config.fallback, ["openai/gpt-5", "fast"]);
    assert_eq!(config.aliases["fast"], "groq/small");
    let rules: Vec<String> = config.rules.iter().map(ToString::to_string).collect();
    assert_eq!(rules, ["allow exec \"cargo *\"", "deny exec \"rm *\""]);
    assert_eq!(config.ca_file.as_deref(), Some(Path::new("/etc/x/ca.pem")));
    assert_eq!(config.recipes, [Path::new("/etc/x/r"), Path::new("/s")]);
    assert_eq!(config.enable, ["dig"]);
    let google = &config.providers["gemini"];
    assert_eq!(google.headers, [("X-Team".to_owned(), "a b".to_owned())]);
    assert_eq!(google.key_env.as_deref(), Some("MY_KEY"));
    assert_eq!(config.providers["mine"].key_file.as_deref(), Some(Path::new("/k")));
    assert_eq!(config.prices["gemini/g"].price.unwrap().input, 500_000);
    let Limits { slots, max_turns, max_cost } = config.limits;
    assert_eq!((slots, max_turns, max_cost), (Some(2), Some(3), Some(1_250_000)));
}

#[test]
fn a_rule_that_does_not_do_what_it_says_is_a_mistake() {
    let cases = [
        ("rules = ['forbid exec']", "c.toml:1: \"forbid exec\", column 1: "),
        ("rules = [{ match = ['x'] }]", "c.toml:1: rules needs a `rule`"),
        (
            "rules = [\n{ rule = 'deny exec \"rm *\"', match = ['ls'] }]",
            "does not match its example \"ls\"",
        ),
        (
            "rules = [{ rule = 'allow exec \"cargo *\"', not_match = ['cargo build'] }]",
            "matches its example \"cargo build\"",
        ),
    ];
    for (text, words) in cases {
        let told = told(text);
        assert!(told.contains(words), "{text}: {told}");
    }
}

/// What is told of a file, all of it.
fn told(text: &str) -> String {
    match parse(Path::new("c.toml"), text) {
        Ok(config) => config.warnings.join("\n"),
        Err(complaint) => complaint.cause.trim_end().to_owned(),
    }
}

#[test]
fn mistakes_are_told_with_their_line() {
    let cases = [
        ("", ""),
        ("modle = \"x\"", "c.toml:1: there is no setting \"modle\"; did you mean \"model\"?"),
        ("[limits]\nslot = 1", "c.toml:2: there is no setting \"slot\"; did you mean \"slots\"?"),
        ("zzzzzzz = 1", "c.toml:1: there is no setting \"zzzzzzz\""),
        ("\nmodel = 3", "c.toml:2: model must be a text in quotes, found integer"),
        ("model = \" \"", "c.toml:1: model is empty"),
        ("fallback = \"a\"", "c.toml:1: fallback must be a list of texts, found string"),
        ("recipes = \"a\"", "c.toml:1: recipes must be a list of folders, found string"),
        ("fallback = [1]", "c.toml:1: fallback must be a text in quotes, found integer"),
        ("aliases = 1", "c.toml:1: aliases must be a table, found integer"),
        (
            "[limits]\nslots = 0",
            "c.toml:2: limits.slots must be a whole number, 1 or more, found integer",
        ),
        (
            "[limits]\nmax_cost_usd = \"x\"",
            "c.toml:2: limits.max_cost_usd must be an amount of dollars, found string",
        ),
        (
            "[providers.mine]\nkey_env = \"K\"",
            "c.toml:1: providers.mine is nobody known, so it needs a base_url",
        ),
        (
            "[providers.openai]\nkey = \"sk-1\"",
            "c.toml:2: providers.openai.key: keys do not stand here; use key_env, key_file, \
             key_command or keyring",
        ),
        (
            "[providers.openai]\nwire = \"smtp\"",
            "c.toml:2: providers.openai.wire must be one of anthropic, openai-chat, \
             openai-responses, gemini, ollama",
        ),
        (
            "[prices]\nx = {input = 1, output = 2}",
            "c.toml:2: prices.\"x\" must be named \"provider/model\"",
        ),
        (
            "[prices.\"a/b\"]\ninput = 1\noutput = \"2\"",
            "c.toml:3: prices.\"a/b\".output must be dollars per million tokens",
        ),
        (
            "model = 1\n\n[limits]\nslots = -1",
            "c.toml:1: model must be a text in quotes, found integer\n\
             c.toml:4: limits.slots must be a whole number, 1 or more, found integer",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(told(text), expected, "{text}");
    }
    let broken = told("model = \"x\"\nfallback = [\n");
    assert!(broken.starts_with("c.toml:2: ") || broken.starts_with("c.toml:3: "), "{broken}");
}
