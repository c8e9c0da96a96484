//! Reading the small words of the scenario language: quoted texts, durations, money, options.

use serde::Serialize;
use serde_json::Value;

/// The name under which an enum's variant is written.
pub(crate) fn variant<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value).expect("plain data") {
        Value::String(name) => name,
        Value::Object(map) => map.keys().next().cloned().unwrap_or_default(),
        other => other.to_string(),
    }
}

/// Takes one JSON value off the front of a text.
pub(crate) fn json(text: &str) -> Result<(Value, &str), String> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = stream.next().ok_or("a JSON value is missing")?.map_err(|why| why.to_string())?;
    Ok((value, text[stream.byte_offset()..].trim_start()))
}

/// `"quoted"` or the rest of the line as it is.
pub(crate) fn text(text: &str) -> Result<String, String> {
    let text = text.trim();
    if !text.starts_with('"') {
        return Ok(text.into());
    }
    let (value, rest) = json(text)?;
    if !rest.is_empty() {
        return Err(format!("what is {rest:?}?"));
    }
    // "x" * 50000000 is written "x*50000000": a text of that many bytes.
    let text = value.as_str().unwrap_or_default();
    Ok(match text.rsplit_once('*').and_then(|(unit, n)| Some((unit, n.parse::<usize>().ok()?))) {
        Some((unit, times)) if unit.len() == 1 => unit.repeat(times),
        _ => text.into(),
    })
}

/// `30s`, `500ms`, `2m`, `1h`, `40d` in milliseconds.
pub(crate) fn duration_ms(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..split].parse().map_err(|_| format!("{text:?} is no duration"))?;
    Ok(number
        * match &text[split..] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            unit => return Err(format!("{unit:?} is no unit of time")),
        })
}

/// `1.25` dollars in millionths.
pub(crate) fn micro_usd(text: &str) -> Result<u64, String> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let part: String = part.chars().chain("000000".chars()).take(6).collect();
    let parse = |digits: &str| digits.parse::<u64>().map_err(|_| format!("{text:?} is no amount"));
    Ok(parse(whole)? * 1_000_000 + parse(&part)?)
}

/// The word before the first space, and the rest.
pub(crate) fn word(text: &str) -> (&str, &str) {
    let text = text.trim();
    match text.split_once(char::is_whitespace) {
        Some((word, rest)) => (word, rest.trim()),
        None => (text, ""),
    }
}
