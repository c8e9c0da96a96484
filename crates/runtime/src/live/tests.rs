//! What a reader of the feed gets, step by step.

use tokio::task::unconstrained;

use super::*;
use crate::line::Body;

fn line(seq: u64) -> Line {
    let (ts, session) = (String::new(), "s".to_owned());
    Line { v: 1, seq, ts, session, agent: AgentRef::nobody(), body: Body::Gap { missed: 0 } }
}

fn lines(feed: &Feed, numbers: &[u64], last: u64) {
    feed.lines(numbers.iter().copied().map(line).collect(), Seq(last));
}

fn shown(told: &Told) -> String {
    match told {
        Told::Line(line) => format!("line {}", line.seq),
        Told::Piece { seq, piece } => match piece.kind {
            PieceKind::Text => format!("{} after {seq}", piece.text),
            PieceKind::Thinking => format!("({}) after {seq}", piece.text),
            PieceKind::Output { call, bytes } => {
                format!("{call}: {} of {bytes} after {seq}", piece.text)
            }
        },
        Told::Gap { seq, missed } => format!("{missed} missed after {seq}"),
    }
}

/// Everything that is there to be read now, however much it is.
async fn read(reader: &mut Reader) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        tokio::select! {
            biased;
            told = unconstrained(reader.next()) => {
                let Some(told) = told else {
                    all.push("closed".into());
                    return all;
                };
                all.push(shown(&told));
            }
            () = std::future::ready(()) => return all,
        }
    }
}

#[tokio::test]
async fn a_piece_waits_until_the_turn_it_belongs_to_is_safe() {
    let feed = Feed::default();
    let mut reader = feed.subscribe();
    let (early, late) =
        (feed.live(Seq(3), AgentRef::nobody()), feed.live(Seq(9), AgentRef::nobody()));
    early.thinking("hm");
    early.text("a");
    assert_eq!(read(&mut reader).await, [""; 0], "nothing explains it yet");
    assert!(reader.is_idle());
    lines(&feed, &[1], 2);
    assert_eq!(read(&mut reader).await, ["line 1"]);
    late.text("x");
    lines(&feed, &[2, 3], 5);
    assert_eq!(read(&mut reader).await, ["line 2", "line 3", "(hm) after 3", "a after 3"]);
    early.text("b");
    early.text("");
    assert_eq!(read(&mut reader).await, ["b after 3"], "at once, and nothing is no piece");
    // A decision that tells nothing makes pieces safe too.
    lines(&feed, &[], 9);
    assert_eq!(read(&mut reader).await, ["x after 3"]);
    drop((feed, early, late));
    assert_eq!(read(&mut reader).await, ["closed"]);
}

#[tokio::test]
async fn a_turn_that_is_not_safe_holds_nobody_else_back() {
    let feed = Feed::default();
    let mut reader = feed.subscribe();
    lines(&feed, &[1], 4);
    feed.live(Seq(9), AgentRef::nobody()).text("x");
    feed.live(Seq(7), AgentRef::nobody()).text("y");
    feed.live(Seq(4), AgentRef::nobody()).text("z");
    assert_eq!(read(&mut reader).await, ["line 1", "z after 1"]);
    lines(&feed, &[2], 7);
    assert_eq!(read(&mut reader).await, ["line 2", "y after 2"]);
    lines(&feed, &[3], 9);
    assert_eq!(read(&mut reader).await, ["line 3", "x after 3"]);
}

#[tokio::test]
async fn who_is_too_slow_is_told_once_and_goes_on_after_what_was_read_elsewhere() {
    let feed = Feed::default();
    let mut reader = feed.subscribe();
    lines(&feed, &[1, 2], 2);
    assert_eq!(read(&mut reader).await, ["line 1", "line 2"]);
    // Held back, and then forgotten: what it belonged to is in the lines that are read again.
    feed.live(Seq(50), AgentRef::nobody()).text("forgotten");
    assert_eq!(read(&mut reader).await, [""; 0]);
    let behind = u64::try_from(BEHIND_MAX).unwrap();
    for number in 3..behind + 13 {
        lines(&feed, &[number], number);
    }
    let gap = reader.next().await.unwrap();
    assert_eq!(shown(&gap), "10 missed after 2");
    reader.caught_up(behind + 11);
    assert_eq!(read(&mut reader).await, [format!("line {}", behind + 12)], "none twice");
    reader.caught_up(1);
    lines(&feed, &[behind + 12, behind + 13], behind + 13);
    assert_eq!(read(&mut reader).await, [format!("line {}", behind + 13)], "never back");
}

#[tokio::test]
async fn what_is_held_back_is_bounded_too() {
    let feed = Feed::default();
    let mut reader = feed.subscribe();
    lines(&feed, &[1], 1);
    let live = feed.live(Seq(9), AgentRef::nobody());
    assert_eq!(read(&mut reader).await, ["line 1"]);
    for _ in 0..BEHIND_MAX {
        live.text("x");
        assert_eq!(read(&mut reader).await, [""; 0]);
    }
    live.text("y");
    assert_eq!(read(&mut reader).await, [format!("{BEHIND_MAX} missed after 1")]);
    lines(&feed, &[2], 9);
    assert_eq!(read(&mut reader).await, ["line 2", "y after 2"]);
}

#[tokio::test]
async fn who_comes_later_hears_from_then_on() {
    let feed = Feed::default();
    lines(&feed, &[1], 1);
    let mut reader = feed.subscribe();
    reader.caught_up(1);
    lines(&feed, &[2], 2);
    assert_eq!(read(&mut reader).await, ["line 2"]);
    Live::nobody().text("unheard");
    assert!(reader.is_idle());
}
