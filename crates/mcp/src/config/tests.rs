//! Files as people write them, whole and broken.

use std::time::Duration;

use super::parse;
use crate::spec::Transport;

/// Stands in for whoever knows variables.
fn fill(text: &str) -> Result<String, String> {
    if text.contains("${NO}") {
        return Err("${NO} is not set; set it or write ${NO:-default}".to_owned());
    }
    Ok(text.replace("${HOME}", "/srv/a").replace("${TOKEN}", "t0k"))
}

#[test]
fn a_usual_file() {
    let text = r#"{
  "mcpServers": {
    "files": { "command": "npx", "args": ["-y", "x", "${HOME}"], "env": {"A": "${TOKEN}"},
               "cwd": "/tmp", "timeout": 1500, "allowedTools": ["read"] },
    "far": { "type": "http", "url": "https://x.example/mcp",
             "headers": {"Authorization": "Bearer ${TOKEN}"} },
    "off": { "disabled": true, "command": 7 }
  }
}"#;
    let config = parse(".mcp.json", text, &fill);
    assert_eq!((&config.errors, &config.warnings), (&Vec::new(), &Vec::new()));
    let [far, files] = config.servers.as_slice() else { panic!("{config:?}") };
    let Transport::Http { url, headers } = &far.transport else { panic!("{far:?}") };
    assert_eq!(
        (url.as_str(), headers["Authorization"].as_str()),
        ("https://x.example/mcp", "Bearer t0k")
    );
    let Transport::Stdio { command, args, env, cwd } = &files.transport else {
        panic!("{files:?}")
    };
    assert_eq!((command.as_str(), args.len(), env["A"].as_str()), ("npx", 3, "t0k"));
    assert_eq!(args[2], "/srv/a");
    assert_eq!(cwd.as_deref(), Some(std::path::Path::new("/tmp")));
    assert_eq!(files.timeout, Duration::from_millis(1500));
    assert_eq!(files.allowed_tools.as_deref(), Some(&["read".to_owned()][..]));
    let shown = format!("{config:?}");
    assert!(!shown.contains("t0k"), "a token is shown: {shown}");
}

/// Lists of tools and rules name tools as other programs do, unless two would be alike.
#[test]
fn odd_names() {
    let cases = [
        ("{\"My Server\": X, \"fig.ma\": X, \"a__b\": X}", "My_Server a_b fig_ma", 3),
        ("{\"My Server\": X, \"My_Server\": X}", "My Server My_Server", 0),
        ("{\"é\": X, \"good-1\": X}", "good-1 é", 0),
    ];
    for (servers, names, warnings) in cases {
        let servers = servers.replace('X', "{\"command\": \"x\"}");
        let config = parse("f", &format!("{{\"mcpServers\": {servers}}}"), &fill);
        let mut found: Vec<&str> = config.servers.iter().map(|it| it.name.as_str()).collect();
        found.sort_unstable();
        assert_eq!((found.join(" ").as_str(), config.warnings.len()), (names, warnings));
    }
}

#[test]
fn complaints() {
    let cases: &[(&str, &str)] = &[
        ("{", "f:1: EOF while parsing an object"),
        ("{\n\"mcpServers\": {\n\"a\": {,}}}", "f:3: key must be a string"),
        ("[]", "f:1: an object with `mcpServers` is expected"),
        ("{}", "f:1: `mcpServers` is missing"),
        ("{\n \"mcpServers\": []}", "f:2: `mcpServers` is not an object"),
        ("{\"mcpServers\": {\n\n\"a\": 3}}", "f:3: server `a` is not an object"),
        ("{\"mcpServers\": {\n\"a\": {}}}", "f:2: server `a` has neither `command` nor `url`"),
        ("{\"mcpServers\": {\n\"a\": {\"type\":\"http\"}}}", "f:2: server `a` has no `url`"),
        (
            "{\"mcpServers\": {\"a\": {\n\"url\": \"ftp://x\"}}}",
            "f:2: `ftp://x` is no http or https address",
        ),
        (
            "{\"mcpServers\": {\"a\": {\n\"type\":\n\"sse\", \"url\": \"http://x\"}}}",
            "f:2: the old `sse` transport is not spoken; use `http`, most servers do",
        ),
        (
            "{\"mcpServers\": {\"a\": {\n\"type\": \"ws\", \"url\": \"http://x\"}}}",
            "f:2: `type` is `ws`; `stdio` and `http` are known",
        ),
        (
            "{\"mcpServers\": {\"a\": {\"command\": \"x\",\n\"args\": \"y\"}}}",
            "f:2: `args` is not a list",
        ),
        (
            "{\"mcpServers\": {\"a\": {\"command\": \"x\",\n\"args\": [1]}}}",
            "f:2: `args` takes text",
        ),
        (
            "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"env\": {\n\n\"K\": \"${NO}\"}}}}",
            "f:3: ${NO} is not set; set it or write ${NO:-default}",
        ),
        (
            "{\"mcpServers\": {\"a\": {\"command\": \"x\",\n\"timeout\": 0}}}",
            "f:2: `timeout` is in milliseconds, from 1 to 86400000",
        ),
    ];
    for (text, expected) in cases {
        let config = parse("f", text, &fill);
        let said: Vec<String> = config.errors.iter().map(ToString::to_string).collect();
        assert_eq!(said, [*expected], "{text}");
        assert_eq!(config.servers, [], "{text}");
    }
}

#[test]
fn warnings_keep_the_server() {
    let cases: &[(&str, &str)] = &[
        (
            "{\"mcpServers\": {\"a\": {\"command\": \"x\",\n\"tomeout\": 3}}}",
            "f:2: `tomeout` means nothing here",
        ),
        (
            "{\"mcpServers\": {\"a\": {\"command\": \"y\"},\n\"a\": {\"command\": \"x\"}}}",
            "f:2: `a` is given twice; the last one counts",
        ),
    ];
    for (text, expected) in cases {
        let config = parse("f", text, &fill);
        let said: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
        assert!(said.contains(&(*expected).to_owned()), "{said:?}");
        assert_eq!((config.servers.len(), config.errors.len()), (1, 0), "{text}");
    }
}

#[test]
fn one_bad_server_does_not_take_the_others() {
    let text = "{\"mcpServers\": {\"a\": {}, \"b\": {\"command\": \"x\"}}}";
    let config = parse("f", text, &fill);
    assert_eq!((config.servers.len(), config.errors.len()), (1, 1));
}
