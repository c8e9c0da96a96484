//! Files spoilt by chance, the same every time.

/// Numbers that look random and are the same every time.
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (sides.max(1) as u64)).unwrap_or(0)
    }
}

/// The bytes after one to three of these, and the name of the last.
pub(crate) fn shaken(whole: &[u8], dice: &mut Dice) -> (Vec<u8>, &'static str) {
    let mut bytes = whole.to_vec();
    let mut last = "";
    for _ in 0..=dice.roll(3) {
        if bytes.is_empty() {
            bytes.push(b'x');
        }
        let (name, way) = WAYS[dice.roll(WAYS.len())];
        way(&mut bytes, dice);
        last = name;
    }
    (bytes, last)
}

type Way = fn(&mut Vec<u8>, &mut Dice);

const WAYS: &[(&str, Way)] = &[
    ("cut", |bytes, dice| bytes.truncate(dice.roll(bytes.len()))),
    ("bit", |bytes, dice| {
        let at = dice.roll(bytes.len());
        bytes[at] ^= 1 << dice.roll(8);
    }),
    ("lines again", |bytes, dice| {
        let lines = lines(bytes);
        let line = lines[dice.roll(lines.len())].clone();
        let again = bytes[line.clone()].repeat(1 + dice.roll(50));
        bytes.splice(line.start..line.start, again).for_each(drop);
    }),
    ("lines away", |bytes, dice| {
        let lines = lines(bytes);
        let line = lines[dice.roll(lines.len())].clone();
        bytes.drain(line).for_each(drop);
    }),
    ("tabs", |bytes, dice| {
        let lines = lines(bytes);
        let line = lines[dice.roll(lines.len())].clone();
        for byte in bytes[line].iter_mut().take_while(|byte| **byte == b' ') {
            *byte = b'\t';
        }
    }),
    ("carriage returns", |bytes, dice| {
        let ends: &[u8] = [&b"\r\n"[..], b"\r"][dice.roll(2)];
        *bytes = bytes.split(|byte| *byte == b'\n').collect::<Vec<_>>().join(ends);
    }),
    ("mark", |bytes, dice| {
        let at = [0, dice.roll(bytes.len())][dice.roll(2)];
        bytes.splice(at..at, *b"\xEF\xBB\xBF").for_each(drop);
    }),
    ("zero", |bytes, dice| bytes.insert(dice.roll(bytes.len()), 0)),
    ("no UTF-8", |bytes, dice| {
        let at = dice.roll(bytes.len());
        let bad: &[u8] =
            [&b"\xFF"[..], b"\xC3", b"\xED\xA0\x80", b"\xF5\x80\x80\x80"][dice.roll(4)];
        bytes.splice(at..at, bad.iter().copied()).for_each(drop);
    }),
    ("deep", |bytes, dice| {
        let open: &[u8] =
            [&b"["[..], b"{a: ", b"- ", b"? ", b"{{", b"((", b"{% if a %}"][dice.roll(7)];
        let deep = open.repeat(1 + dice.roll(20_000));
        let at = line_end(bytes, dice);
        bytes.splice(at..at, [&b"\nx: "[..], &deep].concat()).for_each(drop);
    }),
    ("aliases", |bytes, dice| {
        let many = 1 + dice.roll(40);
        let line = |level: usize| {
            let before =
                format!("*a{},", level.saturating_sub(1)).repeat(if level == 0 { 0 } else { 9 });
            format!("\na{level}: &a{level} [{before}x]")
        };
        let bomb: String = (0..many).map(line).collect();
        let at = line_end(bytes, dice);
        bytes.splice(at..at, bomb.into_bytes()).for_each(drop);
    }),
    ("long", |bytes, dice| {
        let most = [10_000, 200_000, 900_000, 10_000_000][dice.roll(4)];
        let line = lines(bytes);
        let part = bytes[line[dice.roll(line.len())].clone()].to_vec();
        let times = most / part.len().max(1);
        bytes.extend(part.repeat(times));
    }),
    ("words", |bytes, dice| {
        let words: [&[u8]; 16] = [
            b"{{ x | y(",
            b"}}",
            b"{% raw %}",
            b"{% if",
            b"{#",
            b"---\n",
            b"\n...\n",
            b"*",
            b"&a ",
            b"!!binary ",
            b": ",
            b"\n- ",
            b"|+9\n",
            b"'",
            b"\"\\u",
            b"<<: *a",
        ];
        let word = words[dice.roll(words.len())];
        let at = dice.roll(bytes.len());
        bytes.splice(at..at, word.repeat(1 + dice.roll(3))).for_each(drop);
    }),
    ("hidden", |bytes, dice| {
        let signs = ["\u{202E}", "\u{E0041}", "\u{200B}", "\u{FE0F}", "\u{10FFFD}", "\u{100000}"];
        let at = line_end(bytes, dice);
        bytes.splice(at..at, signs[dice.roll(signs.len())].bytes()).for_each(drop);
    }),
    ("swapped", |bytes, dice| {
        let at = dice.roll(bytes.len());
        bytes.rotate_left(at);
    }),
];

/// Never empty; each with its end.
fn lines(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut at = 0;
    let mut found = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        found.push(at..at + line.len());
        at += line.len();
    }
    if found.is_empty() {
        found.push(0..0);
    }
    found
}

fn line_end(bytes: &[u8], dice: &mut Dice) -> usize {
    let lines = lines(bytes);
    lines[dice.roll(lines.len())].end
}
