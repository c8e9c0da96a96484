//! Responses streams that leave something out, and such as are wrong in every way we know of.

use locum_kernel::FailureKind;
use serde_json::{Value, json};

use super::responses_stream::{
    added, arguments, call, completed, created, decode, done, incomplete, message, read, say, sse,
    uses,
};
use crate::wire::responses::Responses;
use crate::wire::{Key, Settings, Wire as _};

/// Text and a call, whole.
fn whole() -> [Value; 2] {
    [message("ab"), call("c1", "read", "{\"a\":1}")]
}

fn means_the_same(name: &str, events: &[Value]) {
    let reply = read(&[&[created()], events].concat());
    let reply = reply.unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
    assert_eq!(reply.text, "ab", "{name}");
    assert_eq!(reply.calls, [uses("read", json!({ "a": 1 }))], "{name}");
    assert_eq!(reply.usage.total(), 282, "{name}");
}

#[test]
fn what_is_not_ended_on_the_way_is_taken_from_the_end() {
    let (text, calls) = (added(0, &message("")), added(1, &call("c1", "read", "")));
    let end = || completed(&whole());
    means_the_same("only the end", &[end()]);
    let begun = [text.clone(), say(0, "a"), calls, arguments(1, "{\"a\""), end()];
    means_the_same("no ends", &begun);
    means_the_same("only pieces", &[say(0, "a"), arguments(1, "{"), end()]);
    let one = [text, say(0, "ab"), done(0, &whole()[0]), end()];
    means_the_same("one item told on the way", &one);
    let shifted = [added(3, &message("")), say(3, "ab"), added(7, &call("c1", "read", "")), end()];
    means_the_same("positions that shift", &shifted);
}

#[test]
fn what_is_ended_on_the_way_needs_no_telling_at_the_end() {
    let (text, calls) = (added(0, &message("")), added(1, &call("c1", "read", "")));
    let [message_done, call_done] = whole();
    let mut renamed = message("ab");
    renamed["id"] = "m9".into();
    let (ended, called) = (done(0, &renamed), done(1, &call_done));
    let names = [text.clone(), say(0, "ab"), ended, calls.clone(), called.clone()];
    means_the_same("names that change", &[&names[..], &[completed(&whole())]].concat());
    let bare = [done(0, &message_done), called, completed(&[])];
    means_the_same("an end without items", &bare);
    let empty = [done(0, &message("")), done(1, &call("c1", "read", "")), completed(&[])];
    let pieces = [text, say(0, "ab"), calls, arguments(1, "{\"a\":1}")];
    means_the_same("empty ends", &[&pieces[..], &empty].concat());
    let nothing = json!({ "type": "response.output_item.added", "output_index": 0, "item": null });
    let gap = [nothing, done(1, &message_done), done(2, &call_done), completed(&whole())];
    means_the_same("an item that is nothing", &gap);
}

/// As llama.cpp has it: what a piece belongs to is told by name.
#[test]
fn items_may_have_names_instead_of_places() {
    let placeless = |mut event: Value, name: &str| {
        event.as_object_mut().unwrap().remove("output_index");
        event["item_id"] = name.into();
        event
    };
    let [message_done, call_done] = whole();
    let mut begun = call("c1", "read", "");
    begun.as_object_mut().unwrap().remove("id");
    let text = [
        placeless(added(0, &message("")), ""),
        placeless(say(0, "a"), "m1"),
        placeless(say(0, "b"), "m1"),
        placeless(done(0, &message_done), ""),
    ];
    let called = [
        placeless(added(1, &begun), ""),
        placeless(arguments(1, "{\"a\":1}"), "c1"),
        placeless(done(1, &call_done), ""),
    ];
    let events = [&text[..], &called, &[completed(&[])]].concat();
    means_the_same("names", &events);
    // Two calls at once, which end under other names: whose pieces are whose is not known.
    let other = placeless(added(2, &call("c2", "read", "")), "");
    let unknown = placeless(done(1, &call("c9", "read", "")), "");
    let lost = [called[0].clone(), other, unknown, completed(&[])];
    assert!(read(&lost).is_err());
    let stray = [called[0].clone(), placeless(arguments(1, "{}"), "c7"), completed(&[])];
    assert_eq!(read(&stray).unwrap_err().kind, FailureKind::Malformed);
}

#[test]
fn text_needs_no_end_of_its_own() {
    for beginning in [vec![], vec![created()], vec![created(), added(0, &message(""))]] {
        let events = [&beginning[..], &[say(0, "a"), say(0, "b"), completed(&[])]].concat();
        assert_eq!(read(&events).unwrap().text, "ab");
    }
    let done = json!({ "type": "response.done", "response": { "status": "completed" } });
    assert_eq!(read(&[created(), say(0, "a"), done]).unwrap().text, "a");
}

#[test]
fn an_answer_without_room_is_what_was_ended() {
    let mut short = call("c2", "write", "{\"a\": {}}");
    short["status"] = "incomplete".into();
    let cut = |events: &[Value], output: &[Value]| {
        let end = [incomplete("max_output_tokens", output)];
        read(&[&[created()], events, &end].concat()).unwrap()
    };
    let reply = cut(&[added(0, &message("")), say(0, "ab")], &[]);
    assert_eq!((reply.text.as_str(), reply.usage.output), ("ab", 42));
    // A call that was ended in order stands; one that was not is text, which is never run.
    let events = [done(0, &call("c1", "read", "{}")), added(1, &call("c2", "write", ""))];
    assert_eq!(cut(&events, &[]).calls, [uses("read", json!({}))]);
    let both = [uses("read", json!({})), uses("write", json!("{\"a\": {}}"))];
    assert_eq!(cut(&events, &[call("c1", "read", "{}"), short.clone()]).calls, both);
    assert_eq!(cut(&[events[0].clone(), done(1, &short)], &[]).calls, both);
    // Half a thought is not given back.
    let thought = json!({
        "type": "reasoning", "id": "r", "encrypted_content": "x", "status": "incomplete",
    });
    assert_eq!(cut(&[done(0, &thought)], &[]).reasoning, None);
}

fn each_fails(cases: &[(&str, Vec<Value>, FailureKind)]) {
    for (name, events, kind) in cases {
        let failure = read(&[&[created()], &events[..]].concat()).expect_err(name);
        assert_eq!(failure.kind, *kind, "{name}: {failure:?}");
    }
}

#[test]
fn an_answer_that_does_not_end_is_none() {
    use FailureKind::{Cut, Filtered, Malformed};
    let (text, calls) = (added(0, &message("")), added(0, &call("c1", "read", "")));
    let ended = done(0, &call("c1", "read", "{}"));
    let listed = completed(&[call("c", "ls", "{}")]);
    let refused = json!({ "type": "refusal", "refusal": "not this" });
    let refusal = json!({ "type": "message", "id": "m1", "content": [refused] });
    let refusing =
        json!({ "type": "response.refusal.delta", "output_index": 0, "delta": "not this" });
    let endless = json!({ "type": "response.done", "response": {} });
    let filtered = incomplete("content_filter", &[]);
    each_fails(&[
        ("only a start", vec![], Cut),
        ("no end", vec![text.clone(), say(0, "a"), done(0, &message("a"))], Cut),
        ("a call without an end", vec![calls.clone(), ended.clone()], Cut),
        ("only an end of a call", vec![ended], Cut),
        ("an open call", vec![calls.clone(), arguments(0, "{}"), completed(&[])], Malformed),
        ("a call in pieces only", vec![arguments(0, "{}"), completed(&[])], Malformed),
        ("open and not listed", vec![text.clone(), say(0, "a"), listed], Malformed),
        ("an end of no kind", vec![endless], Malformed),
        ("filtered", vec![done(0, &message("a")), filtered], Filtered),
        ("refused", vec![done(0, &refusal), completed(&[])], Filtered),
        ("refused in pieces", vec![text, refusing, completed(&[])], Filtered),
    ]);
    assert_eq!(read(&[]).unwrap_err().kind, Cut);
}

#[test]
fn an_answer_that_contradicts_itself_is_none() {
    use FailureKind::Malformed;
    let (text, calls) = (added(0, &message("")), added(0, &call("c1", "read", "")));
    let ended = done(0, &call("c1", "read", "{}"));
    let other = call("c2", "read", "{}");
    let tool = call("c1", "exec", "{}");
    let mut nameless = call("c1", "", "{}");
    nameless["name"] = Value::Null;
    let nowhere = json!({ "type": "response.output_text.delta", "delta": "a" });
    let second = json!({ "type": "response.created", "response": { "id": "r2" } });
    each_fails(&[
        ("an index twice", vec![text.clone(), calls.clone()], Malformed),
        ("an index again", vec![done(0, &message("a")), calls.clone()], Malformed),
        ("a piece for nobody", vec![text.clone(), say(3, "a")], Malformed),
        ("a piece after the end", vec![done(0, &message("a")), say(0, "a")], Malformed),
        ("two ends", vec![ended.clone(), ended], Malformed),
        ("arguments in a text", vec![text, arguments(0, "{}")], Malformed),
        ("text in a call", vec![calls.clone(), say(0, "a")], Malformed),
        ("another kind at the end", vec![calls.clone(), done(0, &message("a"))], Malformed),
        ("another call at the end", vec![calls.clone(), done(0, &other)], Malformed),
        ("another tool at the end", vec![calls.clone(), done(0, &tool)], Malformed),
        ("another call in the list", vec![calls.clone(), completed(&[other])], Malformed),
        ("no name", vec![done(0, &nameless)], Malformed),
        ("no index", vec![calls.clone(), nowhere], Malformed),
        ("a second answer", vec![calls, second], Malformed),
    ]);
}

fn broken(code: &str, words: &str) -> Value {
    let error = json!({ "code": code, "message": words });
    let response = json!({ "id": "r1", "status": "failed", "error": error, "output": [] });
    json!({ "type": "response.failed", "response": response })
}

#[test]
fn what_a_provider_says_went_wrong_is_a_failure_of_its_kind() {
    use FailureKind::{
        Auth, ContextTooLong, Filtered, Other, Overloaded, Quota, RateLimited, Server, UnknownModel,
    };
    let flat = |code: Value| json!({ "type": "error", "code": code, "message": "no" });
    let nested = |code: &str| {
        let error = json!({ "type": code, "code": code, "message": "no" });
        json!({ "type": "error", "error": error })
    };
    let ended = done(0, &call("c1", "read", "{}"));
    each_fails(&[
        ("rate limited", vec![flat("rate_limit_exceeded".into())], RateLimited),
        ("a number", vec![flat(429.into())], RateLimited),
        ("quota", vec![nested("insufficient_quota")], Quota),
        ("no such model", vec![nested("model_not_found")], UnknownModel),
        ("a bad key", vec![nested("invalid_api_key")], Auth),
        ("failed", vec![ended, broken("server_error", "oops")], Server),
        ("too long", vec![broken("context_length_exceeded", "too long")], ContextTooLong),
        ("too long in words", vec![broken("x", "exceeds the context window")], ContextTooLong),
        ("overloaded", vec![broken("server_is_overloaded", "later")], Overloaded),
        ("against the rules", vec![broken("invalid_prompt", "it was flagged")], Filtered),
        ("a bad request", vec![broken("invalid_prompt", "no")], Other),
        ("unknown", vec![broken("new_error", "no")], Server),
        ("nothing said", vec![json!({ "type": "response.failed" })], Server),
    ]);
    let later =
        |words: &str| read(&[broken("rate_limit_exceeded", words)]).unwrap_err().retry_after_ms;
    assert_eq!(later("Please try again in 11.054s. Visit"), Some(12_000));
    assert_eq!(later("Please try again in 35ms."), Some(35));
    assert_eq!(later("Please try again in 99999999999999999999s."), None);
    assert_eq!(later("Please try again later"), None);
}

#[test]
fn what_a_provider_refuses_with_is_understood_in_all_its_forms() {
    use FailureKind::{Auth, Other, Quota, RateLimited};
    let cases = [
        (r#"{"error":{"message":"no","type":"x","code":"invalid_api_key"}}"#, Auth),
        (r#"{"error":{"message":"no","type":"insufficient_quota","code":null}}"#, Quota),
        (r#"{"object":"error","message":"no","type":"rate_limit_error","code":429}"#, RateLimited),
        (r#"{"error":{"message":"no","type":"invalid_request_error","code":null}}"#, Other),
        (r#"{"error":"no"}"#, Other),
        (r#"{"detail":"no"}"#, Other),
    ];
    let settings = Settings::new("http://localhost", Key::new("k"));
    let meaning = Responses::new(&settings).meaning();
    for (body, kind) in cases {
        let (name, words) = (meaning.error_in)(body.as_bytes()).unwrap();
        assert_eq!(((meaning.named)(&name, &words), words.as_str()), (kind, "no"), "{body}");
    }
    for body in ["", "<html>", "{}", "[]", "7"] {
        assert_eq!((meaning.error_in)(body.as_bytes()), None, "{body}");
    }
}

#[test]
fn bytes_that_are_no_events_are_told_from_events() {
    let whole = sse(&[
        created(),
        added(0, &message("")),
        say(0, "a"),
        done(0, &message("a")),
        completed(&[]),
    ]);
    let put = |what: &str| {
        let at = whole.find("event: response.output_item.done").unwrap();
        [&whole[..at], what, &whole[at..]].concat()
    };
    // Passed over.
    for what in [
        ": a comment\n\n",
        "data: {\"type\":\"response.tomorrow\",\"delta\":7,\"output_index\":\"x\"}\n\n",
        "data: {\"type\":\"response.audio.delta\",\"delta\":{\"a\":1},\"item\":3}\n\n",
        "data: {\"type\":\"keepalive\",\"sequence_number\":99}\n\n",
        "event: ping\n\n",
        "data: {}\n\n",
        "data: [DONE]\n\n",
        &sse(&[json!({ "type": "response.output_text.annotation.added", "annotation": {} })]),
    ] {
        assert_eq!(decode(&[put(what).as_bytes()]).unwrap().text, "a", "{what:?}");
    }
    // Not to be passed over.
    let deep = format!("data: {{\"type\":\"error\",\"error\":{}\n\n", "[".repeat(100_000));
    for what in [
        "data: <html>\n\n",
        "data: {\"type\":\"response.output_text.delta\"\n\n",
        "data: {\"type\":\"response.output_text.delta\",\"output_index\":-1,\"delta\":\"\"}\n\n",
        "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":7}\n\n",
        "data: 7\n\n",
        &deep,
    ] {
        let failure = decode(&[put(what).as_bytes()]).expect_err(what);
        assert_eq!(failure.kind, FailureKind::Malformed, "{what:?}");
    }
    let mut broken = whole.clone().into_bytes();
    let at = whole.find("\"delta\":\"a\"").unwrap() + 9;
    broken[at] = 0xff;
    assert_eq!(decode(&[&broken]).unwrap_err().kind, FailureKind::Malformed, "invalid UTF-8");
    // Errors a gateway put in.
    for gateway in [
        "event: error\ndata: {\"message\":\"no\",\"code\":\"rate_limit_exceeded\"}\n\n",
        "data: {\"error\":{\"message\":\"no\",\"code\":429}}\n\n",
    ] {
        let failure = decode(&[put(gateway).as_bytes()]).unwrap_err();
        assert_eq!(failure.kind, FailureKind::RateLimited, "{gateway}");
    }
    for what in ["<html>", "data: {\"object\":\"chat.completion.chunk\"}\n\n", "{}"] {
        assert_eq!(decode(&[what.as_bytes()]).unwrap_err().kind, FailureKind::Malformed, "{what}");
    }
    let after = format!("{whole}data: garbage\n\n{}", sse(&[created()]));
    assert_eq!(decode(&[after.as_bytes()]).unwrap().text, "a");
}

#[test]
fn there_is_an_end_to_everything() {
    let many: Vec<Value> = (0..2_000).map(|index| added(index, &message(""))).collect();
    assert_eq!(read(&many).unwrap_err().kind, FailureKind::Malformed, "items");
    let listed = vec![message("a"); 2_000];
    assert_eq!(read(&[completed(&listed)]).unwrap_err().kind, FailureKind::Malformed, "listed");
    let long = sse(&[say(0, &"x".repeat(9 << 20))]);
    assert_eq!(decode(&[long.as_bytes()]).unwrap_err().kind, FailureKind::Malformed, "an event");
    let piece = sse(&[say(0, &"x".repeat(7 << 20))]);
    let pieces = vec![piece.as_bytes(); 10];
    assert_eq!(decode(&pieces).unwrap_err().kind, FailureKind::Malformed, "text");
}
