//! What is excused, by name and with a reason. An excuse that nothing needs any more is a problem.

use super::Problem;
use super::tree::Tree;

const LIST: &str = "xtask/tidy-exemptions.txt";

/// The rest has no excuse. `function-lines` is followed by `:name`.
const EXCUSABLE: &[&str] = &["file-lines", "function-lines", "line-width", "float", "machine-path"];

struct Exemption<'a> {
    line: usize,
    path: &'a str,
    key: &'a str,
}

/// Takes excused problems out and puts problems with the list itself in.
pub(super) fn excuse(tree: &Tree, problems: Vec<Problem>) -> Vec<Problem> {
    let mut own = Vec::new();
    let exemptions: Vec<Exemption<'_>> = tree.get(LIST).map_or(Vec::new(), |file| {
        let lines = file.text.lines().enumerate();
        lines.filter_map(|(number, line)| parse(number + 1, line, &mut own)).collect()
    });
    let fits = |exemption: &Exemption<'_>, problem: &Problem| {
        exemption.path == problem.path && exemption.key == problem.key()
    };
    for exemption in &exemptions {
        if !problems.iter().any(|problem| fits(exemption, problem)) {
            let why = format!("{} no longer needs {}", exemption.path, exemption.key);
            own.push(Problem::new(LIST, exemption.line, "exemption", why));
        }
    }
    let excused = |problem: &Problem| exemptions.iter().any(|exemption| fits(exemption, problem));
    problems.into_iter().filter(|problem| !excused(problem)).chain(own).collect()
}

fn parse<'a>(line: usize, text: &'a str, own: &mut Vec<Problem>) -> Option<Exemption<'a>> {
    let mut words = text.split_whitespace();
    let path = words.next().filter(|word| !word.starts_with('#'))?;
    let mut refuse = |why: &str| {
        own.push(Problem::new(LIST, line, "exemption", why));
        None
    };
    let Some(key) = words.next() else { return refuse("write: path  rule  reason") };
    let rule = key.split(':').next().unwrap_or(key);
    if !EXCUSABLE.contains(&rule) {
        return refuse("this rule has no exemptions");
    }
    if words.next().is_none() {
        return refuse("an exemption needs a reason");
    }
    Some(Exemption { line, path, key })
}
