//! The table of attacks, read from text.

#[derive(Debug)]
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) flags: Vec<Flag>,
    pub(crate) script: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Flag {
    Guard,
    Walled,
    Apart,
}

pub(crate) fn read() -> Vec<Attack> {
    let lines = include_str!("attacks.txt").lines();
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(parse).collect()
}

fn parse(line: &'static str) -> Attack {
    let (head, script) = line.split_once(": ").expect("name: script");
    let (name, flags) = head.split_once(" [").unwrap_or((head, ""));
    let flag = |word: &str| match word {
        "guard" => Flag::Guard,
        "walled" => Flag::Walled,
        "apart" => Flag::Apart,
        other => panic!("{name}: what is {other}?"),
    };
    let flags = flags.trim_end_matches(']').split(' ').filter(|word| !word.is_empty());
    Attack { name, flags: flags.map(flag).collect(), script }
}
