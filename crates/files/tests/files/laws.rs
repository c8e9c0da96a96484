//! Edits on texts of every encoding and line ending, against a plain model of what should come
//! out. The model knows characters and lines; bytes are made of them at the very end.

use locum_files::{Desk, Edit, Stop, Swap};
use serde_json::json;

use crate::support::{Dice, Scratch, within};

const CASES: usize = 400;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Code {
    Utf8,
    Marked,
    Le,
    Be,
    Latin,
}

const CODES: [Code; 5] = [Code::Utf8, Code::Marked, Code::Le, Code::Be, Code::Latin];

fn bytes(text: &str, code: Code) -> Vec<u8> {
    match code {
        Code::Utf8 => text.into(),
        Code::Marked => [b"\xef\xbb\xbf", text.as_bytes()].concat(),
        Code::Le => {
            [b"\xff\xfe".to_vec(), text.encode_utf16().flat_map(u16::to_le_bytes).collect()]
                .concat()
        }
        Code::Be => {
            [b"\xfe\xff".to_vec(), text.encode_utf16().flat_map(u16::to_be_bytes).collect()]
                .concat()
        }
        // The letters used here are where Latin-1 has them.
        Code::Latin => text.chars().map(|sign| u8::try_from(u32::from(sign)).unwrap()).collect(),
    }
}

fn word(dice: &mut Dice, code: Code) -> String {
    let letters: &[char] = match code {
        Code::Latin => &['a', 'b', ' ', 'é', 'ß', '\t'],
        Code::Utf8 | Code::Marked | Code::Le | Code::Be => &['a', 'b', ' ', 'é', '木', '𝄞', '\t'],
    };
    (0..=dice.roll(6)).map(|_| *dice.pick(letters)).collect()
}

fn lines(dice: &mut Dice, code: Code, most: usize) -> String {
    let mut text = String::new();
    for number in 0..=dice.roll(most) {
        if number > 0 {
            text.push('\n');
        }
        text.push_str(&word(dice, code));
    }
    text
}

/// Some stretch of the text, in whole letters.
fn stretch(dice: &mut Dice, text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let start = dice.roll(letters.len());
    let length = 1 + dice.roll((letters.len() - start).min(12));
    letters[start..start + length].iter().collect()
}

/// What should come out, or None if it must be refused.
fn model(text: &str, swaps: &[Swap]) -> Option<String> {
    let mut now = text.to_owned();
    for Swap { old, new, all } in swaps {
        let count = now.matches(&**old).count();
        if old == new || count == 0 || (count > 1 && *all != Some(true)) {
            return None;
        }
        now = now.replace(&**old, new);
    }
    (now != text).then_some(now)
}

fn case(seed: u64) -> bool {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let code = *dice.pick(&CODES);
    // A Latin-1 text needs something that is not UTF-8 to be known as such.
    let lead = if code == Code::Latin { "é " } else { "" };
    let tail = ["", "\n"][dice.roll(2)];
    let text = format!("{lead}{}{tail}", lines(&mut dice, code, 12));
    let is_crlf = dice.roll(2) == 1 && text.contains('\n');
    let on_disk = |text: &str| {
        let text = if is_crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
        bytes(&text, code)
    };
    let mut now = text.clone();
    let mut swaps = Vec::new();
    for _ in 0..=dice.roll(4) {
        let old = if dice.roll(8) == 0 { word(&mut dice, code) } else { stretch(&mut dice, &now) };
        let new = [lines(&mut dice, code, 3), String::new()][dice.roll(5) / 4].clone();
        let all = [None, Some(true), Some(false)][dice.roll(3)];
        swaps.push(Swap { old, new, all });
        now = model(&text, &swaps).filter(|now| !now.is_empty()).unwrap_or(now);
    }
    let expected = model(&text, &swaps);
    let scratch = Scratch::quick();
    scratch.put("root/f", on_disk(&text));
    let desk = Desk::new(scratch.roots());
    desk.run("me", "read", &json!({"path": "f"}), &Stop::new()).unwrap();
    // A model may say line endings either way.
    let said = |text: &str| {
        if is_crlf && seed.is_multiple_of(3) { text.replace('\n', "\r\n") } else { text.to_owned() }
    };
    let edits: Vec<Swap> = swaps
        .iter()
        .map(|swap| Swap { old: said(&swap.old), new: said(&swap.new), all: swap.all })
        .collect();
    let result = desk.edit("me", &Edit { path: "f".to_owned(), edits });
    let found = scratch.get("root/f");
    match (&expected, &result) {
        (Some(expected), Ok(answer)) => {
            assert_eq!(found, on_disk(expected), "seed {seed}: {code:?} {text:?} {swaps:?}");
            assert!(answer.change.is_some());
        }
        (None, Err(_)) => assert_eq!(found, on_disk(&text), "seed {seed}: changed all the same"),
        // What is left of a Latin-1 text may happen to be UTF-8 of something else.
        (Some(_), Err(error)) if error.to_string().contains("same text") => {
            assert!(code == Code::Latin, "seed {seed}: {error}");
            assert_eq!(found, on_disk(&text), "seed {seed}");
        }
        _ => panic!("seed {seed}: {code:?} {text:?} {swaps:?}\n{expected:?}\n{result:?}"),
    }
    expected.is_some()
}

#[test]
fn an_edit_changes_what_it_says_and_nothing_else() {
    within(300, || {
        let done = (1..=CASES as u64).filter(|seed| case(*seed)).count();
        eprintln!("{CASES} edits: {done} done as the model says, the others refused as it says");
        assert!(done > CASES / 4 && done < CASES);
    });
}
