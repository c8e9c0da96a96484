//! Good recipes made bad, each in one way; the program's own tests use them as well.

use super::shake::Dice;

/// Bad in one way each, at a random place of a good file.
pub(crate) fn spoil(text: &str, dice: &mut Dice) -> Option<(String, &'static str)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut spoilt: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    let at = dice.roll(lines.len());
    let whole = |lines: Vec<String>| lines.join("\n");
    let required =
        ["title:", "description:", "key:", "input_type:", "requirement:", "cmd:", "uri:"];
    let way = dice.roll(9);
    let words = match way {
        0 => {
            let key = required[dice.roll(required.len())];
            let line = lines.iter().position(|line| line.contains(key))?;
            spoilt[line] = lines[line].replacen(key, "other_key:", 1);
            "missing"
        }
        1 => {
            let line = lines.iter().position(|line| line.starts_with("title:"))?;
            spoilt.insert(line + 1, lines[line].to_owned());
            "twice"
        }
        2 => {
            spoilt[at].insert(0, ['\u{202E}', '\u{E0041}', '\u{2066}'][dice.roll(3)]);
            "U+"
        }
        3 => {
            spoilt.push(format!("more: \"{{{{ unknown_{at} }}}}\""));
            "is used and is no parameter"
        }
        4 => {
            let open = ["[", "{a: ", "\"", "'"][dice.roll(4)];
            spoilt.push(format!("more: {open}"));
            ""
        }
        5 => {
            let (from, to) = [
                ("input_type: string", "input_type: text"),
                ("requirement: required", "requirement: maybe"),
                ("type: stdio", "type: carrier_pigeon"),
                ("temperature: 0.5", "temperature: hot"),
                ("max_turns: 12", "max_turns: -1"),
                ("type: integer", "type: whole"),
            ][dice.roll(6)];
            let line = lines.iter().position(|line| line.contains(from))?;
            spoilt[line] = lines[line].replacen(from, to, 1);
            "expected"
        }
        6 => {
            spoilt.push(format!("more: {}", "[".repeat(70 + dice.roll(1000))));
            "inside"
        }
        7 => {
            spoilt.push(["{% if %}", "{% for %}", "{{ x", "{% endif %}"][dice.roll(4)].to_owned());
            ""
        }
        _ => {
            spoilt.insert(at, "---".to_owned());
            spoilt.push("...\n---\nsecond: document".to_owned());
            ""
        }
    };
    let words = if way == 5 && whole(spoilt.clone()).contains("whole") { "type" } else { words };
    Some((whole(spoilt), words))
}
