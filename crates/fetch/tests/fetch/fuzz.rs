//! Pages made to hurt, and pages made by chance: nothing panics, nothing takes long, and nothing
//! becomes more than it was.

use std::time::{Duration, Instant};

use locum_fetch::html::to_markdown;

/// Unoptimised and on a machine that has other things to do.
const SOON: Duration = Duration::from_secs(20);
const BYTES: usize = 2 * 1024 * 1024;

/// A stack a hundred times smaller than usual notices recursion.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(256 * 1024);
    thread.spawn(work).unwrap().join().unwrap();
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long it takes is what is tested")]
fn pages_made_to_hurt() {
    let fill = |piece: &str| piece.repeat(BYTES / piece.len());
    let half = |a: &str, b: &str| {
        let times = BYTES / (a.len() + b.len());
        format!("{}{}", a.repeat(times), b.repeat(times))
    };
    let cases = [
        ("nested tables", half("<table><tr><td>", "</table>")),
        ("ten thousand tables", "<table><tr><td>x".repeat(10_000)),
        ("nested blocks", half("<div>", "</div>")),
        ("nested lists", fill("<ul><li>x")),
        ("nested quotes", fill("<blockquote>x")),
        ("nested inline", half("<b>", "</i>")),
        ("ends without beginnings", fill("</div></p>")),
        ("far beginnings", format!("<i><table>{}{}", "<b>".repeat(190), fill("</i>"))),
        ("paragraphs behind a wall", format!("<p><table><td>{}", fill("<div>x"))),
        ("one line", fill("x")),
        ("spaces", fill(" \n")),
        ("one attribute", format!("<a href='{}'>x</a>", fill("x"))),
        ("many attributes", format!("<a {}>x</a>", fill("href=/x "))),
        ("one name", format!("<{}>x", fill("x"))),
        ("links", fill("<a href=/x>y</a>")),
        ("open links", fill("<a href=/x>")),
        ("entities", fill("&amp;&#x41;&bogus;")),
        ("half entities", fill("&#")),
        ("comments", fill("<!---->")),
        ("open comment", format!("<!--{}", fill("-"))),
        ("code", fill("<code>`</code>")),
        ("one code", format!("<pre>{}", fill("`"))),
        ("lines of code", format!("{}<pre>{}", "<ul><li>x".repeat(20), fill("\n"))),
        ("cells", format!("<table><tr>{}", fill("<td>"))),
        ("rows", format!("<table>{}", fill("<tr><td>a<td>b"))),
        ("hidden", half("<div hidden>", "</div>")),
        ("drawings", format!("<svg>{}</svg>x", fill("<path/>"))),
        ("open drawings", format!("<svg>{}</svg>x", fill("<path>"))),
        ("styles", format!("<p style='{}'>x", fill("/**/"))),
        ("many styles", fill("<p style='a:b;c:d'>")),
        ("zeros", fill("\0")),
        ("signs of four bytes", fill("🦀")),
        ("hidden signs", fill("\u{e0041}")),
        ("brackets", fill("<")),
        ("scripts", fill("<script>")),
        ("titles", fill("<title>x</title>")),
        ("headings", fill("<h1>")),
        ("base", fill("<base href=x/>")),
    ];
    for (name, html) in cases {
        on_a_small_stack(move || {
            let begun = Instant::now();
            let read = to_markdown(&html, "https://example.org/");
            let took = begun.elapsed();
            assert!(took < SOON, "{name}: {took:?}");
            assert!(read.text.len() <= BYTES, "{name}: {} bytes", read.text.len());
            if name == "drawings" || name == "open drawings" {
                assert_eq!(read.text, "x", "{name}");
            }
        });
    }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(below).unwrap()).unwrap()
    }
}

const SEEDS: &[&str] = &[
    "<!doctype html><html><head><title>T</title><base href='/b/'></head><body><h1>H</h1><p>a",
    "<ul><li>a<ol start=3><li>b</ol><li><pre><code class=language-x>c</code></pre></ul>",
    "<table><thead><tr><th>a<th>b</thead><tr><td>1<td><table><tr><td>2<td>3</table></table>",
    "<a href='x'>l<b>m</b></a><blockquote>q<p>r</blockquote><dl><dt>s<dd>t</dl>",
    "<div hidden>h<span style='display:none'>i</span></div><nav>n</nav><svg><path/></svg>",
    "<script>if(a<b){}</script><style>p{}</style><!-- c --><textarea><b></textarea>&amp;&#128512;",
];
const PIECES: &[&str] = &[
    "<",
    ">",
    "/",
    "'",
    "\"",
    "=",
    "&",
    ";",
    "\0",
    "\n",
    " ",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<table>",
    "</table>",
    "<td>",
    "</td>",
    "<tr>",
    "</tr>",
    "<p>",
    "</p>",
    "<a href=",
    "</a>",
    "<pre>",
    "</pre>",
    "<code>",
    "</code>",
    "<li>",
    "</li>",
    "<ul>",
    "</ul>",
    "<h1>",
    "</h1>",
    "<script>",
    "</script>",
    "<svg/>",
    "<title>",
    "</title>",
    "<div hidden>",
    "</div>",
    "<br>",
    "\u{e0041}",
    "🦀",
    "é",
    "`",
    "|",
    "<b>",
    "</b>",
    "<plaintext>",
    "<select>",
    "</select>",
];

#[test]
#[expect(clippy::disallowed_methods, reason = "how long it takes is what is tested")]
fn pages_made_by_chance() {
    let begun = Instant::now();
    let mut dice = Dice(0x5eed_1234_abcd_0001);
    for round in 0..20_000 {
        let mut page: Vec<char> = SEEDS[dice.below(SEEDS.len())].chars().collect();
        for _ in 0..=dice.below(12) {
            let at = dice.below(page.len() + 1);
            match dice.below(4) {
                0 => {
                    let piece = PIECES[dice.below(PIECES.len())].chars();
                    page.splice(at..at, piece);
                }
                1 => {
                    let to = (at + dice.below(9)).min(page.len());
                    page.drain(at..to);
                }
                2 => {
                    let to = (at + dice.below(60)).min(page.len());
                    let copy = page[at..to].to_vec();
                    let place = dice.below(page.len() + 1);
                    page.splice(place..place, copy);
                }
                _ => page.truncate(at.max(1)),
            }
        }
        let html: String = page.into_iter().collect();
        let read = to_markdown(&html, "https://example.org/dir/");
        let hidden = |sign: char| sign == '\0' || sign == '\u{e0041}';
        assert!(!read.text.contains(hidden), "round {round}: {html}");
        assert_eq!(read.text, to_markdown(&html, "https://example.org/dir/").text);
        assert_eq!(read.text.trim_end(), read.text, "round {round}: {html:?}");
    }
    assert!(begun.elapsed() < Duration::from_mins(2), "{:?}", begun.elapsed());
}
