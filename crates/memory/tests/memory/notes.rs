//! What is kept, who sees it, and what is found.

use locum_memory::{Error, Id, Limits, Memory, Provenance, Reader, Saved, Scope, Source};

use super::{Folder, agent, model, reader, workspace};

#[test]
fn a_note_comes_back_as_it_was_given() {
    let folder = Folder::new("back");
    let memory = folder.open();
    let me = reader("/w", "builder");
    let saved = memory.save(&me, &workspace("/w"), "  Run `cargo test`\r\nfirst.\n", &model(5));
    let Saved::New(note) = saved.unwrap() else { panic!("it is new") };
    assert_eq!(note.id.to_string(), "m1");
    assert_eq!(note.text, "Run `cargo test`\nfirst.");
    assert_eq!(note.provenance, model(5));
    assert_eq!((&note.scope, note.updated_at), (&workspace("/w"), 5));
    drop(memory);
    assert_eq!(folder.open().get(&me, note.id).unwrap(), note);
    assert_eq!(note.provenance.source, Source::Model);
}

#[test]
fn the_same_text_in_a_scope_is_one_note() {
    let folder = Folder::new("same");
    let memory = folder.open();
    let me = reader("/w", "builder");
    let first = memory.save(&me, &Scope::User, "likes tea", &model(1)).unwrap();
    let again = memory.save(&me, &Scope::User, "likes tea\n", &Provenance::person(9)).unwrap();
    let Saved::Again(again) = again else { panic!("it was there") };
    assert_eq!((again.id, again.updated_at), (first.note().id, 9));
    assert_eq!(again.provenance, model(1), "who said it first");
    let other = memory.save(&me, &workspace("/w"), "likes tea", &model(2)).unwrap();
    assert!(matches!(other, Saved::New(_)), "another scope is another note");
    assert_eq!(memory.list(&me, &Scope::User, None, 10).unwrap().len(), 1);
}

#[test]
fn a_reader_sees_the_user_the_workspace_and_itself() {
    let folder = Folder::new("sees");
    let memory = folder.open();
    let places = [
        (Scope::User, reader("/w", "builder")),
        (workspace("/w"), reader("/w", "builder")),
        (workspace("/v"), reader("/v", "builder")),
        (agent("builder", "/w"), reader("/w", "builder")),
        (agent("builder", "/v"), reader("/v", "builder")),
        (agent("tester", "/w"), reader("/w", "tester")),
    ];
    for (scope, owner) in &places {
        memory.save(owner, scope, &format!("the secret word of {scope}"), &model(1)).unwrap();
    }
    let nobody = Reader::default();
    let folder_only = Reader { workspace: Some("/w".into()), agent: None };
    let agent_only = Reader { workspace: None, agent: Some("builder".into()) };
    let cases = [
        (reader("/w", "builder"), vec![1, 2, 4]),
        (reader("/v", "builder"), vec![1, 3, 5]),
        (reader("/w", "tester"), vec![1, 2, 6]),
        (reader("/x", "x"), vec![1]),
        (folder_only, vec![1, 2]),
        (agent_only, vec![1]),
        (nobody, vec![1]),
    ];
    for (who, expected) in cases {
        let mut found = ask(&memory, &who, "secret word", 50);
        found.sort_unstable();
        assert_eq!(found, expected, "{who:?}");
        // Also where every note is read, and by id.
        let mut found = ask(&memory, &who, "ecret", 50);
        found.sort_unstable();
        assert_eq!(found, expected, "{who:?}");
        for number in 1..=6 {
            let seen = memory.get(&who, Id(number)).is_ok();
            assert_eq!(seen, expected.contains(&number), "{who:?} m{number}");
            if !seen {
                let forgot = memory.forget(&who, Id(number));
                assert!(matches!(forgot, Err(Error::Unknown { .. })), "{who:?} m{number}");
                let wrote = memory.replace(&who, Id(number), "mine", &model(2));
                assert!(matches!(wrote, Err(Error::Unknown { .. })), "{who:?} m{number}");
            }
        }
        for (scope, _) in &places {
            let listed = memory.list(&who, scope, None, 9).is_ok();
            let saved = memory.save(&who, scope, &format!("the secret word of {scope}"), &model(1));
            assert_eq!((listed, saved.is_ok()), (who.sees(scope), who.sees(scope)), "{who:?}");
        }
    }
    assert_eq!(memory.scopes().unwrap().iter().map(|(_, count)| count).sum::<u32>(), 6);
}

/// Ids only: what most tests compare.
fn ask(memory: &Memory, who: &Reader, question: &str, limit: usize) -> Vec<u64> {
    let found = memory.search(who, question, limit).unwrap();
    found.iter().map(|found| found.note.id.0).collect()
}

const TEXTS: &[&str] = &[
    "Run the tests with `cargo test -p kernel`; the whole suite takes ten minutes.", // 1
    "Ann prefers short answers and British spelling.",                               // 2
    "The database runs on port 5433, not 5432.",                                     // 3
    "項目的資料庫密碼在保險庫裡",                                                    // 4
    "日本語のコメントを書いてください。テストは夜に走る。",                          // 5
    "Der Datenbankverbindungsaufbau dauert zu lange.",                               // 6
    "ErrorHandler lives in crates/core/errorHandling.rs and parseURL beside it.",    // 7
    "Café opens at nine; the crème brûlée is on Tuesdays.",                          // 8
    "ฐานข้อมูลอยู่ที่เครื่องเก่า",                                                            // 9
    "Deploys are running every Friday 🦀 100% of the time_out.",                     // 10
    "Релиз собирается командой make dist",                                           // 11
];

#[test]
fn notes_are_found_by_what_people_and_models_ask() {
    let folder = Folder::new("found");
    let memory = folder.open();
    let me = reader("/w", "main");
    for text in TEXTS {
        memory.save(&me, &Scope::User, text, &model(1)).unwrap();
    }
    let cases: &[(&str, &[u64])] = &[
        ("cargo test", &[1]),
        ("testing", &[1]),
        ("how do I run the kernel tests?", &[1]),
        ("SPELLING", &[2]),
        ("5432", &[3]),
        ("資料庫", &[4]),
        ("密碼", &[4]),
        ("庫", &[4]),
        ("資庫", &[]),
        ("コメント", &[5]),
        ("夜", &[5]),
        ("日本", &[5]),
        ("verbindung", &[6]),
        ("Datenbank", &[6]),
        ("handler", &[7]),
        ("errorhandler", &[7]),
        ("url", &[7]),
        ("core/errorHandling.rs", &[7]),
        ("cafe creme brulee", &[8]),
        ("CAFÉ", &[8]),
        ("ข้อมูล", &[9]),
        ("🦀", &[10]),
        ("100%", &[10]),
        ("time_out", &[10]),
        ("run", &[10, 3, 1]),
        ("релиз", &[11]),
        ("собир", &[11]),
        ("zebra quagga", &[]),
    ];
    for (question, expected) in cases {
        let found = ask(&memory, &me, question, 10);
        let fits = match expected {
            [] | [_] => found.first() == expected.first(),
            // The order of notes that are alike is another test's.
            several => several.iter().all(|number| found.contains(number)),
        };
        assert!(fits, "{question}: {found:?}, not {expected:?}");
    }
}

#[rustfmt::skip]
const ODD: &[&str] = &[
    "", " ", "\"", "\"\"", "'", "''", "*", "**", "a*", "\"a", "a\"b\"c", "AND", "OR", "NOT",
    "a AND", "AND a", "a OR OR b", "NEAR", "NEAR(", "NEAR(a b, 2)", "text:", "text:a", "a:b:c",
    ":", "^a", "-a", "+a", "(", ")", "((((", "{a b}:c", "a\0b", "\0", "%", "_", "\\", "%%%",
    ";--", "'; DROP TABLE note; --", "\u{202e}abc", "\u{e0041}\u{e0042}", "e\u{301}", "\u{301}",
    "\u{200d}", "👩‍👩‍👧", "ﬃ", "ß", "İ", "ﷺ", "\u{feff}", "a\nb\tc\r", "🦀🦀🦀", "١٢٣", "²", "Ⅷ",
    "...", "a.b.c", "words_docsize", "rowid", "rank", "café*", "漢*", "漢 AND 字", "ก", "เ", "ๅๅๅ",
];

#[test]
fn no_question_is_an_error() {
    let folder = Folder::new("odd");
    let memory = folder.open();
    let me = reader("/w", "main");
    for text in TEXTS {
        memory.save(&me, &Scope::User, text, &model(1)).unwrap();
    }
    let long = ["x".repeat(100_000), "\"".repeat(5_000), "漢".repeat(9_000), "a ".repeat(9_999)];
    let mut seed = 7_u64;
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap()
    };
    let mixed: Vec<String> = (0..500)
        .map(|_| (0..random() % 9).map(|_| ODD[random() % ODD.len()]).collect::<String>())
        .collect();
    let all = ODD.iter().map(ToString::to_string).chain(long).chain(mixed);
    for question in all {
        let found = memory.search(&me, &question, 10);
        assert!(found.is_ok(), "{question:?}: {found:?}");
    }
}

#[test]
fn the_best_comes_first_and_of_equals_the_freshest() {
    let folder = Folder::new("order");
    let memory = folder.open();
    let me = reader("/w", "main");
    let texts = [
        ("alpha beta one", 10),
        ("alpha gamma delta epsilon zeta eta theta iota kappa", 99),
        ("alpha beta two", 30),
        ("alpha beta six", 20),
        ("alphabet soup", 98),
    ];
    for (text, at) in texts {
        memory.save(&me, &Scope::User, text, &model(at)).unwrap();
    }
    assert_eq!(ask(&memory, &me, "alpha beta", 10), [3, 4, 1, 2, 5]);
    assert_eq!(ask(&memory, &me, "alpha beta", 2), [3, 4]);
    memory.save(&me, &Scope::User, "alpha beta one", &model(40)).unwrap();
    assert_eq!(ask(&memory, &me, "alpha beta", 1), [1], "said again is fresh");
    let found = memory.search(&me, "alpha beta", 10).unwrap();
    assert!(found.windows(2).take(3).all(|two| two[0].score >= two[1].score), "{found:?}");
    assert_eq!(found[0].snippet, "alpha beta one");
}

#[test]
fn replaced_and_forgotten_notes_are_not_found_as_they_were() {
    let folder = Folder::new("replace");
    let memory = folder.open();
    let me = reader("/w", "main");
    for text in ["the port is 5432", "the host is alpha"] {
        memory.save(&me, &Scope::User, text, &model(1)).unwrap();
    }
    let now = memory.replace(&me, Id(1), "the port is 7000", &Provenance::person(8)).unwrap();
    assert_eq!(now.note().provenance, Provenance::person(8));
    assert_eq!((now.note().id, now.note().updated_at), (Id(1), 8));
    assert_eq!(ask(&memory, &me, "5432", 9), []);
    assert_eq!(ask(&memory, &me, "7000", 9), [1]);
    let both = memory.replace(&me, Id(2), "the port is 7000", &model(9)).unwrap();
    assert!(matches!(&both, Saved::Again(note) if note.id == Id(1)), "{both:?}");
    assert_eq!(ask(&memory, &me, "alpha", 9), []);
    assert_eq!(memory.forget(&me, Id(1)).unwrap().text, "the port is 7000");
    assert_eq!(ask(&memory, &me, "port", 9), []);
    assert!(matches!(memory.forget(&me, Id(1)), Err(Error::Unknown { .. })));
    let next = memory.save(&me, &Scope::User, "another", &model(1)).unwrap();
    assert_eq!(next.note().id, Id(3), "no id is given twice");
}

#[test]
fn what_does_not_fit_is_refused_with_the_reason() {
    let folder = Folder::new("bounds");
    let memory = Memory::open_within(&folder.0, Limits { note_bytes: 64, notes_per_scope: 3 });
    let memory = memory.unwrap();
    let me = reader("/w", "main");
    let key = format!("the key is ghp_{}", "Ab3dEf6hIj9kLm2nOp5qRs8t");
    let long = "x".repeat(65);
    let cases = [
        ("", "a note needs a text"),
        (" \n\t\u{e0041}\u{7}", "a note needs a text"),
        (&long, "the text has 65 bytes and a note at most 64; keep what matters in it"),
        (
            &key,
            "the text was not kept: it seems to hold a GitHub token (ghp_…); say where the secret \
             is kept instead",
        ),
    ];
    for (text, told) in cases {
        let error = memory.save(&me, &Scope::User, text, &model(1)).unwrap_err();
        assert_eq!(error.to_string(), told);
    }
    for number in 0..3 {
        memory.save(&me, &Scope::User, &format!("note {number}"), &model(1)).unwrap();
    }
    let error = memory.save(&me, &Scope::User, "note 3", &model(1)).unwrap_err();
    assert_eq!(error.to_string(), "user has 3 notes, and no more fit; forget some first");
    memory.save(&me, &Scope::User, "note 1", &model(1)).unwrap();
    memory.save(&me, &workspace("/w"), "note 3", &model(1)).unwrap();
    memory.forget(&me, Id(1)).unwrap();
    memory.save(&me, &Scope::User, "note 3", &model(1)).unwrap();
    let wide = "é".repeat(33);
    assert!(memory.save(&me, &Scope::User, &wide, &model(1)).is_err(), "bytes are counted");
}

#[test]
fn hidden_signs_are_not_kept() {
    let folder = Folder::new("hidden");
    let memory = folder.open();
    let text = "be\u{e0069}\u{e0067} kind\u{202e}\u{0}\u{1b}[31m";
    let saved = memory.save(&Reader::default(), &Scope::User, text, &model(1)).unwrap();
    assert_eq!(saved.note().text, "be kind[31m");
}

#[test]
fn lists_come_in_pages() {
    let folder = Folder::new("paging");
    let memory = folder.open();
    let me = Reader::default();
    for number in 0..25 {
        memory.save(&me, &Scope::User, &format!("note {number}"), &model(1)).unwrap();
    }
    let (mut after, mut seen) = (None, Vec::new());
    loop {
        let page = memory.list(&me, &Scope::User, after, 10).unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        seen.push(page.len());
    }
    assert_eq!(seen, [10, 10, 5]);
}

#[test]
fn ids_read_as_they_are_written() {
    let cases = [
        ("m1", Some(1)),
        ("M12", Some(12)),
        (" m7 ", Some(7)),
        ("m", None),
        ("12", None),
        ("m-1", None),
        ("m+1", None),
        ("mm1", None),
        ("m99999999999999999999", None),
        ("m18446744073709551615", None),
    ];
    for (text, expected) in cases {
        assert_eq!(text.parse::<Id>().ok(), expected.map(Id), "{text}");
    }
}
