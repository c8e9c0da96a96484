//! What the YAML parser found, in words for the person who wrote the file.

/// Parts of the parser's sentence, what it means, and the cure.
const WORDS: &[(&str, &str, &str)] = &[
    (
        "mapping values are not allowed",
        "a colon where no key can be",
        "put text with a colon in it in quotes, and indent keys of one table alike",
    ),
    (
        "did not find expected key",
        "this line is no key, and the text above it has ended",
        "indent it as far as the text it belongs to, or write: key: value",
    ),
    (
        "did not find expected '-' indicator",
        "this line is no part of the list above it",
        "start it with -, or indent it as the keys before the list",
    ),
    ("simple key", "a line without a colon among keys", "write: key: value, or indent it"),
    ("block sequence entries", "a list where none can be", "put the - on a line of its own"),
    (
        "unknown anchor",
        "an alias of something that is not there",
        "put text with a * in it in quotes",
    ),
    ("anchor or alias", "a * or & without a name", "put text that starts with it in quotes"),
    ("trailing content after", "words after the closing quote", "put the whole text in quotes"),
    ("document indicator", "a text in quotes goes on past a line of ---", "close the quote"),
    ("quoted scalar, found un", "an escape that does not exist", "write \\\\ for a backslash"),
    ("hexadecimal", "an escape that does not exist", "write \\\\ for a backslash"),
    ("unexpected end of file", "a text in quotes has no end", "close the quote"),
    ("unexpected end of stream", "a text in quotes has no end", "close the quote"),
    ("EOF while parsing a flow sequence", "a list has no end", "close it with ]"),
    ("EOF while parsing a flow mapping", "a table has no end", "close it with }"),
    ("unclosed bracket", "", "close it, or put the text in quotes"),
    ("mismatched bracket", "", "close it with its own kind, or put the text in quotes"),
    ("flow sequence, expected", "a list is not closed here", "add a comma or ]"),
    ("flow mapping, did not", "a table is not closed here", "add a comma or }"),
    ("implicit flow mapping", "a list or table has no end", "close it"),
    ("a tab", "a tab where only spaces can be", "indent with spaces"),
    ("invalid indentation", "indented less than what it belongs to", "indent it further"),
    ("indentation indicator", "a block with a wrong number", "write: |"),
    (
        "while scanning a block scalar",
        "words after the mark of a block",
        "put the text on the next line",
    ),
    (
        "expected <document start>",
        "a line that starts with %, or words after the end",
        "put text that starts with % in quotes",
    ),
    ("directive", "a line that starts with %", "put text that starts with % in quotes"),
    ("tag", "a word that starts with !", "put text that starts with ! in quotes"),
    ("unexpected character", "", "put text that starts with it in quotes"),
    ("expected node content", "nothing where a value is expected", "put the text in quotes"),
];

const ELSE: &str = "put text with a colon, a quote or a brace in it in quotes";

/// What is wrong and how it is written; the parser's own words where there are no better ones.
pub(crate) fn plain(info: &str) -> (String, &'static str) {
    let found = WORDS.iter().find(|(part, _, _)| info.contains(part));
    match found {
        Some((_, "", how)) => (format!("not YAML: {info}"), how),
        Some((_, what, how)) => (format!("not YAML: {what}"), how),
        None => (format!("not YAML: {info}"), ELSE),
    }
}
