//! The page that people edit: made, read back, and merged with what happened meanwhile.

use locum_memory::{Base, Change, Error, Id, Note, Provenance, Reader, Scope, merge, render};

use super::{Folder, model, workspace};

/// 2026-01-31, noon.
const AT: u64 = 1_769_860_800_000;

fn note(number: u64, text: &str) -> Note {
    let (id, scope) = (Id(number), Scope::User);
    Note { id, text: text.into(), scope, provenance: model(AT), updated_at: AT }
}

#[test]
fn a_page_is_readable() {
    let mut second = note(12, "## m1 is no heading\nnor is this:\n\\## new\n## but this may stay");
    second.provenance = Provenance::person(AT);
    let page = render(&workspace("/w"), &[note(1, "Run the tests.\n\nAll of them."), second]);
    let (text, base) = page.split_once("\n<!-- locum base:").unwrap();
    assert_eq!(
        text,
        "# Memory: workspace /w\n\
         \n\
         <!-- locum: change a text, delete a note with its heading, or write a new one under the \
         heading `## new`. -->\n\
         \n\
         ## m1 · model, main/builder in run_1, 2026-01-31\n\
         \n\
         Run the tests.\n\
         \n\
         All of them.\n\
         \n\
         ## m12 · person, 2026-01-31\n\
         \n\
         \\## m1 is no heading\n\
         nor is this:\n\
         \\\\## new\n\
         ## but this may stay\n"
    );
    assert!(base.starts_with(" m1=") && base.ends_with(" -->\n"), "{base}");
}

#[test]
fn a_page_that_nobody_edited_changes_nothing() {
    let texts = [
        "plain",
        "## m1\n## new\n\\## m2\n\\\\## new",
        "# Memory: user",
        "<!-- locum base: m1=0 -->\n  <!-- locum: x -->",
        "```\n## m3 · code\n```",
        "a\n\n\nb",
        "  indented\n\ttab",
        "---\n***\n===",
        "\\",
        "-->",
        "ends with spaces   \nhere",
        "漢字 🦀 é",
        "## ",
        "##m1",
        "## newer things",
    ];
    let notes: Vec<Note> =
        (1..).zip(texts).map(|(number, text)| note(number, text.trim())).collect();
    let page = render(&Scope::User, &notes);
    for page in [page.clone(), page.replace('\n', "\r\n"), format!("\u{feff}{page}\n\n")] {
        let told = Base::in_page(&page);
        assert_eq!(told, Base::of(&notes));
        assert_eq!(merge(&told, &page, &notes), [], "{page}");
    }
    assert_eq!(merge(&Base::default(), &render(&Scope::User, &[]), &[]), []);
}

/// What was kept when the page was made, what was done to the page, what is kept now, and what
/// comes of it. `-` is no note.
#[test]
fn what_was_changed_where() {
    let edited = |text: &str| Change::Edited { id: Id(1), text: text.into() };
    let both = |text: &str| Change::Both { id: Id(1), text: text.into() };
    let revived = |text: &str| Change::Revived { id: Id(1), text: text.into() };
    let added = |text: &str| Change::Added { text: text.into() };
    let (forgotten, kept) = (Change::Forgotten { id: Id(1) }, Change::Kept { id: Id(1) });
    let cases: Vec<(&str, &str, &str, Vec<Change>)> = vec![
        ("a", "## m1\na", "a", vec![]),
        ("a", "## m1\na", "b", vec![]),
        ("a", "## m1\na", "-", vec![]),
        ("a", "## m1\nb", "a", vec![edited("b")]),
        ("a", "## m1\nb", "b", vec![]),
        ("a", "## m1\nb", "c", vec![both("b")]),
        ("a", "## m1\nb", "-", vec![revived("b")]),
        ("a", "", "a", vec![forgotten.clone()]),
        ("a", "", "b", vec![kept.clone()]),
        ("a", "", "-", vec![]),
        ("a", "## m1\n\n \n", "a", vec![forgotten]),
        ("a", "## m1\n", "b", vec![kept]),
        ("-", "## m1\na", "-", vec![added("a")]),
        ("-", "## m1\na", "a", vec![]),
        ("-", "## m1\na", "b", vec![both("a")]),
        ("a", "## m1\na\n## new\nb", "a", vec![added("b")]),
        ("a", "## m1\na\n## New note\nb\n## new\n\nc\n", "a", vec![added("b"), added("c")]),
        ("a", "## m1\na\n## m1\nb", "a", vec![added("b")]),
        ("a", "## m1\na\n## m77\nb", "a", vec![added("b")]),
        ("a", "stray\n\n## m1\na", "a", vec![added("stray")]),
        ("a", "## m1\na\n## new\n", "a", vec![]),
        ("a", "## m1\na\n### new\nb", "a", vec![edited("a\n### new\nb")]),
    ];
    let notes = |text: &str| if text == "-" { vec![] } else { vec![note(1, text)] };
    for (base, page, now, expected) in cases {
        let changes = merge(&Base::of(&notes(base)), page, &notes(now));
        assert_eq!(changes, expected, "{base:?} {page:?} {now:?}");
    }
}

#[test]
fn an_edited_page_is_taken_in_whole_or_not_at_all() {
    let folder = Folder::new("taken");
    let memory = folder.open();
    let me = Reader::default();
    for text in ["one", "two", "three", "four"] {
        memory.save(&me, &Scope::User, text, &model(1)).unwrap();
    }
    let notes = memory.list(&me, &Scope::User, None, 99).unwrap();
    let page = render(&Scope::User, &notes);
    let without_four: String = {
        let at = page.find("## m4").unwrap();
        let end = page.find("\n<!-- locum base").unwrap();
        format!("{}\n## new\n\nfive\n{}", &page[..at], &page[end..])
    };
    let page = without_four.replace("\none\n", "\nOne!\n").replace("\ntwo\n", "\nTwo!\n");
    memory.replace(&me, Id(2), "zwei", &model(2)).unwrap();

    let bad = page.replace("five", &"x".repeat(9_000));
    let error = memory.take_back(&me, &Scope::User, None, &bad, &Provenance::person(3));
    let error = error.unwrap_err();
    assert!(matches!(&error, Error::InPage { place, .. } if place == "a new note"), "{error}");
    let texts = |memory: &locum_memory::Memory| {
        let notes = memory.list(&me, &Scope::User, None, 99).unwrap();
        notes.into_iter().map(|note| format!("{} {}", note.id, note.text)).collect::<Vec<_>>()
    };
    assert_eq!(texts(&memory), ["m1 one", "m2 zwei", "m3 three", "m4 four"]);

    let changes = memory.take_back(&me, &Scope::User, None, &page, &Provenance::person(3));
    let told: Vec<String> = changes.unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "changed m1",
            "m2 was changed elsewhere too: it stays, your text is a new note",
            "added a note",
            "forgot m4",
        ]
    );
    assert_eq!(texts(&memory), ["m1 One!", "m2 zwei", "m3 three", "m5 Two!", "m6 five"]);
    let first = memory.get(&me, Id(1)).unwrap();
    assert_eq!(first.provenance, Provenance::person(3));
    // Twice is once: what the page asks for is there by now.
    let again = memory.take_back(&me, &Scope::User, None, &page, &Provenance::person(4)).unwrap();
    assert_eq!(texts(&memory).len(), 5, "{again:?}");
}
