//! What is read of a template and told of a file before anybody has values for it.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

mod support;

use locum_definitions::{Given, Kind, Outcome, build, load, rehearsed};

use support::{Folder, read};

/// Statements may stand anywhere that leaves YAML once they are rendered, and what is told is told
/// at its place in the file.
#[test]
fn statements_around_and_in_front() {
    const HEAD: &str = "title: t\ndescription: d\n";
    const A: &str = "parameters:\n  - {key: a, input_type: string, requirement: required, \
                     description: d}\n";
    let cases = [
        (
            "instructions: |\n  {% if a == \"1\" %}\n  x: one\n  {% endif %}\n  tail\n\
             {% if a == \"1\" %}\nsettings:\n  temperature: 0.1\n{% endif %}\n",
            "\nx: one\n\ntail",
        ),
        (
            "instructions: |\n  {% for c in a %}{{ c }} {% endfor %}\n  {# why #}\n\
             {% if a == \"1\" %}\nprompt: one\n{% else %}\nprompt: other\n{% endif %}\n",
            "1 ",
        ),
        (
            "{% if a == \"1\" %}prompt: one{% else %}prompt: other{% endif %}\ninstructions: i\n",
            "i",
        ),
        ("instructions: {% if a == \"1\" %}\"one\"{% else %}\"other\"{% endif %}\n", "one"),
    ];
    for (text, expected) in cases {
        let text = format!("{HEAD}{text}{A}");
        let loaded = read(Kind::Recipe, &text);
        let Some(definition) = loaded.definition else { panic!("{text}{:#?}", loaded.problems) };
        assert_eq!(definition.parameters.len(), 1, "{text}");
        let values = [("a".to_owned(), "1".to_owned())].into();
        let given = Given { values, ..Given::default() };
        let Ok(Outcome::Built(built)) = build(&definition, &given) else { panic!("{text}") };
        let made = built.definition.instructions;
        assert_eq!(made.trim_end_matches('\n'), expected, "{text}");
    }
    let text = format!("{HEAD}prompt: p {{{{ a }}}}\n{{% if a %}}wrong: 1{{% endif %}}\n{A}");
    let told = read(Kind::Recipe, &text).problems;
    let told: Vec<String> = told.iter().map(ToString::to_string).collect();
    assert!(told.iter().any(|it| it.contains(":4:11: warning: the key \"wrong\"")), "{told:#?}");
}

/// What can be seen to fail before anybody gives a value.
#[test]
fn what_no_value_would_mend_is_seen_before() {
    let cases = [
        ("prompt: \"x {{ \\\"a\\\" * 1000000000 }}\"", "the template fails"),
        (
            "prompt: \"{% for a in range(9000) %}{% for b in range(9000) %}y{% endfor %}\
             {% endfor %}\"",
            "the template fails",
        ),
        ("prompt: \"{{ recipe_dir }}\"", ""),
    ];
    for (text, expected) in cases {
        let text = format!("title: t\ndescription: d\n{}\n", text.replace("\\\"", "\""));
        let loaded = read(Kind::Recipe, &text);
        let Some(definition) = loaded.definition else { panic!("{:#?}", loaded.problems) };
        let told: Vec<String> = rehearsed(&definition).iter().map(ToString::to_string).collect();
        assert_eq!(told.is_empty(), expected.is_empty(), "{text} {told:#?}");
        assert!(told.iter().all(|it| it.contains(expected)), "{told:#?}");
    }
}

/// Told in a file that is used all the same.
#[test]
fn what_nobody_would_do_is_told() {
    let cases = [
        (Kind::Agent, "---\nname: my agent\ndescription: d\n---\nx", "@my-agent or @\"my agent\""),
        (Kind::Agent, "---\nname: a (b)\ndescription: d\n---\nx", "write @\"a (b)\""),
        (
            Kind::Agent,
            "---\nname: a\ndescription: d\nlocum: {passthrough: {command: [cat]}}\n---\nx",
            ":6:1: warning: nobody reads these instructions",
        ),
        (
            Kind::Recipe,
            "title: t\ndescription: d\nprompt: p\nlocum: {ceiling: [read]}\n\
             retry: {max_retries: 1, checks: [{type: shell, command: \"true\"}]}\n",
            ":5:1: warning: the checks of \"retry\" can never pass",
        ),
    ];
    for (kind, text, expected) in cases {
        let loaded = read(kind, text);
        let told: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
        assert!(loaded.definition.is_some(), "{told:#?}");
        assert!(told.len() == 1 && told[0].contains(expected), "{text}\n{told:#?}");
    }
}

/// What is wrong in a part is told of the part.
#[test]
fn parts_have_their_own_places() {
    let folder = Folder::new();
    folder.write(
        "base.part",
        "title: T\ndescription: d\ninstructions: |\n  {% block ins %}base{% endblock %}\n  more\n\
         {% include \"inc/odd.part\" %}\n{% block rest %}{% endblock %}\n",
    );
    folder.write("inc/odd.part", "prompt: of {{ who }}\nsecond: line");
    let child = |more: &str| {
        format!(
            "{{% extends \"base.part\" %}}\n{{% block ins %}}child of {{{{ who }}}}\
             {{% endblock %}}\n\
             {{% block rest %}}\n{more}\nparameters:\n  - {{key: who, input_type: string, \
             requirement: required, description: x}}\n{{% endblock %}}\n"
        )
    };
    let cases = [
        ("", "inc/odd.part:2:1: warning: the key \"second\""),
        ("third: 3", "child.yaml:4:1: warning: the key \"third\""),
        ("settings: [", "child.yaml:6:3: not YAML"),
    ];
    for (more, expected) in cases {
        folder.write("child.yaml", child(more));
        let told = load(&folder.path().join("child.yaml")).problems;
        let told: Vec<String> = told.iter().map(ToString::to_string).collect();
        assert!(told.iter().any(|it| it.contains(expected)), "{expected}: {told:#?}");
    }
}
