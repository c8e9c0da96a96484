//! No text breaks the reader: not random ones, not long ones, not deep ones.

use locum_shell::{DEPTH_MAX, LINE_BYTES_MAX, PARTS_MAX, Reading, Why, read};

const ROUNDS: u32 = 100_000;

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % n as u64).expect("small")
    }
}

/// Every line of the other tests, disturbed again and again. `ROUNDS=1000000` looks longer.
#[test]
fn mutated_lines_are_read_without_panic() {
    let corpus = [
        include_str!("bypass.txt"),
        include_str!("harmless.txt"),
        include_str!("denied.txt"),
        include_str!("opaque.txt"),
        include_str!("plain.txt"),
    ];
    let lines: Vec<Vec<char>> = corpus
        .iter()
        .flat_map(|text| text.lines())
        .map(|line| line.replace('␊', "\n").chars().collect())
        .collect();
    let marks: Vec<char> = "'\"\\`$(){}[];&|<>\n\t #!~*?=-…0aé\u{200b}\0".chars().collect();
    let mut dice = Dice(0x0f17_77ed);
    let rounds = std::env::var("ROUNDS").ok().and_then(|text| text.parse().ok());
    for round in 0..rounds.unwrap_or(ROUNDS) {
        let mut line = lines[dice.below(lines.len())].clone();
        for _ in 0..=dice.below(4) {
            let at = dice.below(line.len() + 1);
            match dice.below(4) {
                0 if at < line.len() => drop(line.remove(at)),
                1 => {
                    let other = &lines[dice.below(lines.len())];
                    let from = dice.below(other.len() + 1);
                    line.splice(at..at, other[from..].iter().copied());
                }
                _ => line.insert(at, marks[dice.below(marks.len())]),
            }
        }
        let text: String = line.iter().collect();
        let reading = read(&text);
        // Reading is a function, and a plain reading names something.
        match &reading {
            Reading::Plain(parts) => assert!(!parts.is_empty(), "{text:?}"),
            Reading::Opaque { seen, .. } => assert!(seen.len() <= PARTS_MAX, "{text:?}"),
        }
        if round % 16 == 0 {
            assert_eq!(reading, read(&text));
        }
    }
}

/// What a long line of one thing costs is its length: were it the square, this would not end.
#[test]
fn long_lines_are_read_once() {
    let pieces = [
        "a",
        "a ",
        "a;",
        "a\n",
        "$(",
        "`",
        "'",
        "\"",
        "\\",
        "(",
        "{ ",
        "((",
        "$((",
        "${",
        "<(",
        ">",
        "<<E\n",
        "<",
        "&&",
        "|",
        "if ",
        "case x in ",
        "for i in ",
        "[[ ",
        "!",
        " ",
        "\t",
        "\n",
        "#",
        "$X",
        "*",
        "[",
        "{a,",
        "1",
        "1>",
        "a=b ",
        "sudo ",
        "nice ",
        "sh -c '",
        "eval ",
        "xargs ",
        "find . -exec ",
        "\"$(a)\"",
        "$(a) ",
        "a|",
        "~",
        "é",
        "…",
        "watch a ",
        "watch npx 'a b' ",
        "npx ",
        "uv run ",
        "git -c a='!b' ",
        "git config 'a=!b;c' ",
        "vim +a ",
        "$",
        "a>f;",
    ];
    for piece in pieces {
        let line = piece.repeat(LINE_BYTES_MAX / piece.len());
        drop(read(&line));
        drop(read(&format!("ls {line}")));
        drop(read(&format!("ls \"{line}")));
        drop(read(&format!("cat <<E\n{line}\nE\n")));
    }
}

#[test]
fn bounds_are_told() {
    let why = |line: &str| match read(line) {
        Reading::Plain(parts) => panic!("plain: {parts:?}"),
        Reading::Opaque { why, .. } => why,
    };
    assert_eq!(why(&format!("ls {}", "a".repeat(LINE_BYTES_MAX))), Why::TooLong);
    let deep = DEPTH_MAX as usize + 1;
    assert_eq!(why(&format!("{}ls{}", "echo $(".repeat(deep), ")".repeat(deep))), Why::TooDeep);
    assert_eq!(why(&format!("{}ls", "nice ".repeat(deep * 2))), Why::TooDeep);
    let many: Vec<String> = (0..=PARTS_MAX).map(|n| format!("ls {n}")).collect();
    assert_eq!(why(&many.join(";")), Why::TooMany);
    assert_eq!(why(""), Why::Syntax("there is no command"));
    assert_eq!(why("# nothing"), Why::Syntax("there is no command"));
    let text = why("ls \u{200b}").to_string();
    assert_eq!(text, "cannot tell what this runs: it has the character U+200B, which hides");
}

/// How parts are written, word for word: rules are matched against this.
#[test]
fn parts_are_written_in_one_way() {
    let cases = [
        ("ls", "ls"),
        ("  ls   -la\t src ", "ls -la src"),
        ("'ls' \"-la\"", "ls -la"),
        ("git commit -m \"fix: a & b\"", "git commit -m 'fix: a & b'"),
        ("echo \"it's\"", r"echo 'it'\''s'"),
        ("echo ''", "echo ''"),
        ("echo '$HOME'", "echo '$HOME'"),
        ("echo $HOME \"$A b\" ${C}d", "echo … '… b' …d"),
        ("ls *.rs a[bc] {x,y}", "ls ….rs a… …"),
        ("ls ~/src '~'", "ls ~/src '~'"),
        ("a && b || c; d | e & f", "a|b|c|d|e|f"),
        ("a > x 2>> y < z 2>&1 3>/dev/null", "> x|> y|< z|a"),
        ("a $(b `c`) <(d)", "c|b …|d|a … …"),
        ("cd x && timeout 5 env A=1 b", "cd x|b"),
        ("sudo -u root a b", "sudo -u root a b|a b"),
        ("sh -c 'a; b'", "a|b"),
        ("find . -name '*.o' -delete", "find . -name '*.o' -delete|rm …"),
        ("x | xargs -n1 a -b", "x|a -b …"),
        ("npx a b", "npx a b|+run a b"),
        ("uv run --with a nice sh -c 'b; c'", "uv run --with a nice sh -c 'b; c'|+run b|+run c"),
        ("ssh a 'b && c'", "ssh a 'b && c'|+run b|+run c"),
        ("git -C a b", "git -C a b"),
        ("/usr/bin/a b", "/usr/bin/a b"),
        ("[ -f a ] && b", "[ -f a ]|b"),
        ("[[ -n $x ]]", "[[ -n … ]]"),
        ("true", "true"),
        ("a || true", "a"),
    ];
    for (line, expected) in cases {
        let parts = match read(line) {
            Reading::Plain(parts) | Reading::Opaque { seen: parts, .. } => parts,
        };
        assert_eq!(parts.join("|"), expected, "{line}");
    }
}
