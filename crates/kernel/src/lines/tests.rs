//! Lines against a plain list of the same, at every length that a level of the tree has.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use serde_json::json;

use super::{Lines, Node, WIDTH};
use crate::{Body, CallId, Line, Output, Reply, Seq, Use};

fn line(seq: usize, body: Body) -> Arc<Line> {
    Arc::new(Line { seq: Seq(seq as u64), body })
}

fn told(seq: usize) -> Arc<Line> {
    line(seq, Body::Told(Vec::new()))
}

fn same(lines: &Lines, plain: &[Arc<Line>]) -> bool {
    lines.len() == plain.len()
        && lines.iter().zip(plain).all(|(ours, theirs)| Arc::ptr_eq(ours, theirs))
}

#[test]
fn they_are_a_list() {
    let (mut lines, mut plain) = (Lines::new(), Vec::new());
    assert!(lines.is_empty() && lines.last().is_none() && lines.without_last().is_empty());
    // One more than three levels hold.
    for seq in 0..WIDTH * WIDTH * WIDTH + WIDTH + 2 {
        let line = told(seq);
        lines.push(Arc::clone(&line));
        plain.push(line);
        assert_eq!((lines.first(), lines.last()), (plain.first(), plain.last()), "{seq}");
        let middle = seq / 2;
        assert!(Arc::ptr_eq(lines.get(middle).unwrap(), &plain[middle]), "{seq}");
        assert!(lines.get(seq + 1).is_none());
        if seq % 997 == 0 || seq % WIDTH < 2 && seq < 4_000 {
            assert!(same(&lines, &plain), "{seq}");
            assert!(same(&lines.without_last(), &plain[..seq]), "{seq}");
            assert!(lines.after(middle).eq(&plain[middle..]), "{seq}");
            assert!(lines.iter().rev().eq(plain.iter().rev()), "{seq}");
        }
    }
    let read: Lines = serde_json::from_value(serde_json::to_value(&plain).unwrap()).unwrap();
    assert_eq!(read, lines);
    assert_eq!(serde_json::to_string(&lines).unwrap(), serde_json::to_string(&plain).unwrap());
}

/// What goes on after a copy was taken is not in the copy, whichever of the two goes on.
#[test]
fn copies_go_their_own_ways() {
    for len in (0..300).chain(1_020..1_060) {
        let plain: Vec<Arc<Line>> = (0..len).map(told).collect();
        let one: Lines = plain.iter().cloned().collect();
        let (mut two, mut plain_two) = (one.clone(), plain.clone());
        let (mut three, mut plain_three) = (one.clone(), plain.clone());
        for seq in 0..70 {
            for (lines, plain) in [(&mut two, &mut plain_two), (&mut three, &mut plain_three)] {
                let line = told(seq);
                lines.push(Arc::clone(&line));
                plain.push(line);
            }
        }
        assert!(same(&one, &plain), "{len}");
        assert!(same(&two, &plain_two) && same(&three, &plain_three), "{len}");
        assert!(len == 0 || one != one.without_last());
    }
}

/// However long a conversation is, a request for a model copies few of its lines.
#[test]
fn a_copy_shares_all_but_the_newest() {
    let mut lines: Lines = (0..50_000).map(told).collect();
    let copy = lines.clone();
    assert!(copy.tail.len() <= WIDTH);
    assert!(Arc::ptr_eq(copy.root.as_ref().unwrap(), lines.root.as_ref().unwrap()));
    lines.extend((0..WIDTH).map(told));
    let (Some(Node::Branch(before)), Some(Node::Branch(after))) =
        (copy.root.as_deref(), lines.root.as_deref())
    else {
        panic!("50,000 lines are more than a leaf")
    };
    let shared = before.iter().zip(after).filter(|(one, two)| Arc::ptr_eq(one, two)).count();
    assert_eq!(shared, before.len() - 1, "one node on each level is made anew");
}

fn replied(seq: usize, calls: usize) -> Arc<Line> {
    let calls = (0..calls).map(|_| Use::new("ls", json!({}))).collect();
    line(seq, Body::Replied(Reply { calls, ..Reply::default() }))
}

fn results(seq: usize, turn: u64, places: &[u16]) -> Arc<Line> {
    let result =
        |index: &u16| (CallId { turn: Seq(turn), index: *index }, Output::ok(String::new()));
    line(seq, Body::Results(places.iter().map(result).collect()))
}

/// Lines, and the first that does not pair.
type Case = (&'static str, Vec<Arc<Line>>, Option<u64>);

#[test]
fn unpaired_lines_are_noticed_and_not_forgotten() {
    let summary = || line(3, Body::Summary(String::new()));
    let cases: [Case; 10] = [
        ("talk", Vec::from([told(1), replied(2, 0), told(3)]), None),
        ("calls", Vec::from([told(1), replied(2, 2), results(3, 2, &[0, 1])]), None),
        ("calls that may still return", Vec::from([told(1), replied(2, 2)]), None),
        ("no reply", Vec::from([told(1), results(2, 1, &[0])]), Some(2)),
        ("no line before", Vec::from([results(2, 1, &[0])]), Some(2)),
        ("no calls", Vec::from([replied(1, 0), results(2, 1, &[])]), Some(2)),
        ("one lacks", Vec::from([replied(2, 2), results(3, 2, &[0]), told(4)]), Some(3)),
        ("out of order", Vec::from([replied(2, 2), results(3, 2, &[1, 0])]), Some(3)),
        ("of another turn", Vec::from([replied(2, 1), results(3, 1, &[0])]), Some(3)),
        ("cut off", Vec::from([replied(2, 1), summary(), replied(4, 1), told(5)]), Some(3)),
    ];
    for (name, all, expected) in cases {
        let lines: Lines = all.into_iter().collect();
        assert_eq!(lines.unpaired().map(|seq| seq.0), expected, "{name}");
        assert_eq!(lines.clone().unpaired(), lines.unpaired(), "{name}");
    }
}
