//! Templates, with values that stay values. Every `{{ … }}` writes a mark, the structure of the
//! file is read with the marks in it, and only then are they filled: whatever a value says, it
//! is one piece of text. Conditions and filters see the true values all the time.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior};

use crate::definition::Origin;
use crate::file;
use crate::limits::{
    FILE_BYTES_MAX, GROWTH_MAX, INCLUDES_MAX, JOINS_MAX, RENDERED_BYTES_MAX, TEMPLATE_DEPTH,
    TEMPLATE_FUEL,
};
use crate::pieces::{Pieces, has_marks, is_mark, mark, number};
use crate::problem::Place;
use crate::tree::Fault;
use crate::whence::Whence;

/// The variable that every recipe has.
pub(crate) const RECIPE_DIR: &str = "recipe_dir";

const MAIN: &str = "recipe";

/// A text that starts with the stand-in of a template's value.
pub(crate) fn is_sketch(sign: char) -> bool {
    is_mark(sign)
}

/// Statements whose output is caught and worked on before it is written: a filter would see
/// marks there, so they are refused rather than rendered wrongly.
const CAUGHT: &[&str] = &["macro", "call", "filter", "import", "from", "autoescape"];

#[derive(Debug)]
pub(crate) struct Rendered {
    text: String,
    slots: Vec<String>,
    /// What it includes, by name.
    parts: Vec<(String, String)>,
}

impl Rendered {
    /// With marks in the places of values.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Where its lines were written.
    pub(crate) fn whence(&self, origin: &Origin, text: &str) -> Whence {
        let parts = self.parts.iter();
        let parts = parts.map(|(name, text)| (origin.folder().join(name), text.clone()));
        let main = (origin.file.clone(), text.to_owned());
        Whence { rendered: self.text.clone(), sources: [main].into_iter().chain(parts).collect() }
    }

    /// The values of the marks in a text that is indented so far in the file.
    pub(crate) fn fill(&self, text: String, indent: Option<usize>) -> String {
        settle(fill(&self.slots, text), indent)
    }
}

/// What the `indent` filter puts before a line. Authors use it to keep a value of many lines
/// inside a block, where YAML takes the block's own indentation away again; here the value was
/// never outside, so as much is taken away as YAML would take.
const SOFT_SPACE: char = '\u{10FFFC}';

fn settle(text: String, indent: Option<usize>) -> String {
    if !has_marks(&text) {
        return text;
    }
    let line = |line: &str| {
        let rest = line.trim_start_matches(SOFT_SPACE);
        let width = line[..line.len() - rest.len()].chars().count();
        let kept = indent.map_or(0, |indent| width.saturating_sub(indent));
        // The filter may have met one in the middle, after words of the author's.
        format!("{}{}", " ".repeat(kept), rest.replace(SOFT_SPACE, " "))
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

fn fill(slots: &[String], text: String) -> String {
    if !has_marks(&text) {
        return text;
    }
    let ours = |sign: char| is_mark(sign) && sign != SOFT_SPACE;
    let mut full = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find(ours) {
        full.push_str(&rest[..at]);
        let mut signs = rest[at..].chars();
        let high = signs.next().map_or(0, number);
        let low = signs.next().filter(|sign| ours(*sign)).map_or(0, number);
        full.push_str(slots.get(high * BASE + low).map_or("", String::as_str));
        rest = signs.as_str();
    }
    full.push_str(rest);
    full
}

/// Two marks number a slot.
const BASE: usize = 60_000;

/// How it begins when parts of a template include each other for ever.
pub const CIRCLE: &str = "the template leads back to itself";

/// What a template and all that it includes may look at.
#[derive(Debug)]
pub(crate) struct Variables {
    pub(crate) used: BTreeSet<String>,
    /// Names that mean something by themselves, such as `range`, unless a parameter has them.
    pub(crate) given: BTreeSet<String>,
}

pub(crate) fn variables(pieces: &Pieces<'_>, folder: &Path) -> Result<Variables, Fault> {
    if !pieces.is_template() {
        return Ok(Variables { used: BTreeSet::new(), given: BTreeSet::new() });
    }
    refuse_caught(pieces)?;
    let slots = Slots::default();
    let mut environment = environment(folder, &slots, UndefinedBehavior::Chainable);
    let prepared = pieces.prepared();
    let failed = |error: &Error| fault(error, &prepared);
    environment.add_template_owned(MAIN, prepared.clone()).map_err(|error| failed(&error))?;
    let given = environment.globals().map(|(name, _)| name.to_owned());
    let given: BTreeSet<String> = given.chain(["self", RECIPE_DIR].map(String::from)).collect();
    let template = environment.get_template(MAIN).map_err(|error| failed(&error))?;
    if includes(pieces) {
        // Nothing is known yet, so most of it may fail; what it reaches for is what counts.
        match template.render_captured_to((), Bounded::default()) {
            Err(error) if missing_part(&error) => return Err(failed(&error)),
            Ok(_) | Err(_) => {}
        }
    }
    let used = environment.templates().flat_map(|(_, part)| part.undeclared_variables(false));
    Ok(Variables { used: used.collect(), given })
}

fn missing_part(error: &Error) -> bool {
    let kinds = [
        ErrorKind::TemplateNotFound,
        ErrorKind::SyntaxError,
        ErrorKind::BadInclude,
        ErrorKind::InvalidOperation,
    ];
    kinds.contains(&error.kind())
}

/// It is made of more than one file, so its structure is only there once it is rendered.
pub(crate) fn includes(pieces: &Pieces<'_>) -> bool {
    pieces.keywords().any(|(word, _, _)| matches!(word, "extends" | "include"))
}

/// The whole text with values; a variable that has none is an error if `strict`.
pub(crate) fn render(
    pieces: &Pieces<'_>,
    folder: &Path,
    values: &BTreeMap<String, String>,
    undefined: UndefinedBehavior,
) -> Result<Rendered, Fault> {
    if !pieces.is_template() {
        // The engine takes the last line break away, so it is away here too.
        let text = pieces.text();
        let text = text.strip_suffix('\n').unwrap_or(text).to_owned();
        return Ok(Rendered { text, slots: Vec::new(), parts: Vec::new() });
    }
    refuse_caught(pieces)?;
    let slots = Slots::default();
    let mut environment = environment(folder, &slots, undefined);
    let prepared = pieces.prepared();
    let failed = |error: &Error| fault(error, &prepared);
    environment.add_template_owned(MAIN, prepared.clone()).map_err(|error| failed(&error))?;
    let template = environment.get_template(MAIN).map_err(|error| failed(&error))?;
    let mut out = Bounded::default();
    let values = minijinja::Value::from(values.clone());
    template.render_captured_to(values, &mut out).map_err(|error| failed(&error))?;
    let text = String::from_utf8_lossy(&out.bytes).into_owned();
    let parts = environment.templates().filter(|(name, _)| *name != MAIN);
    let parts = parts.map(|(name, part)| (name.to_owned(), part.source().to_owned())).collect();
    Ok(Rendered { text, slots: slots.take(), parts })
}

/// What could not be rendered rightly, or within bounds.
fn refuse_caught(pieces: &Pieces<'_>) -> Result<(), Fault> {
    let mut growth = 1_usize;
    for (word, tag, byte) in pieces.tags() {
        let joins = tag.matches(['~', '+', '*']).count();
        if word == "set" {
            growth = growth.saturating_mul(1 + joins);
        }
        if joins > JOINS_MAX || growth > GROWTH_MAX {
            let what = "too many texts are put together here";
            return Err(Fault::new(pieces.place(byte), what, "write them out"));
        }
        let block = word == "set" && !tag.contains('=');
        if CAUGHT.contains(&word) || block {
            let what = format!("{{% {word} … %}} is not supported in definitions");
            return Err(Fault::new(pieces.place(byte), what, "use filters: {{ name | upper }}"));
        }
    }
    Ok(())
}

/// What was written by `{{ … }}`, in order.
#[derive(Clone, Debug, Default)]
struct Slots(Arc<Mutex<(Vec<String>, usize)>>);

impl Slots {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).0)
    }

    /// The mark that stands for a text from now on; `None` when there is too much already.
    fn put(&self, text: String) -> Option<String> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (slots, bytes) = &mut *kept;
        // A block that was caught brings its marks along.
        let text = fill(slots, text);
        *bytes += text.len();
        if *bytes > RENDERED_BYTES_MAX || slots.len() >= BASE * BASE {
            return None;
        }
        slots.push(text);
        let slot = slots.len() - 1;
        Some([mark(slot / BASE), mark(slot % BASE)].iter().collect())
    }
}

fn environment(folder: &Path, slots: &Slots, undefined: UndefinedBehavior) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(undefined);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_fuel(Some(TEMPLATE_FUEL));
    environment.set_recursion_limit(TEMPLATE_DEPTH);
    environment.set_debug(true);
    // They pad to any width they are asked for.
    for filter in ["format", "batch", "slice", "indent"] {
        environment.remove_filter(filter);
    }
    environment.add_filter("indent", indent);
    environment.add_filter("replace", replace);
    environment.add_filter("join", join);
    // With it a loop could add to what it has.
    environment.remove_global("namespace");
    let slots = slots.clone();
    environment.set_formatter(move |out, _, value| {
        let text =
            if value.is_none() || value.is_undefined() { String::new() } else { value.to_string() };
        if text.is_empty() {
            return Ok(());
        }
        let too_much = || Error::new(ErrorKind::WriteFailure, "the rendered text is too long");
        out.write_str(&slots.put(text).ok_or_else(too_much)?).map_err(Error::from)
    });
    environment.set_loader(loader(folder.to_owned()));
    environment
}

fn too_long() -> Error {
    Error::new(ErrorKind::InvalidOperation, "the text gets too long")
}

fn replace(text: &str, from: &str, to: &str) -> Result<String, Error> {
    let bytes = text.len() + text.matches(from).count().saturating_mul(to.len());
    if bytes > RENDERED_BYTES_MAX { Err(too_long()) } else { Ok(text.replace(from, to)) }
}

fn join(items: &minijinja::Value, between: Option<&str>) -> Result<String, Error> {
    let between = between.unwrap_or("");
    let mut text = String::new();
    for (number, item) in items.try_iter()?.enumerate() {
        if number > 0 {
            text.push_str(between);
        }
        text.push_str(&item.to_string());
        if text.len() > RENDERED_BYTES_MAX {
            return Err(too_long());
        }
    }
    Ok(text)
}

/// Empty lines stay empty, as in the original.
fn indent(text: &str, width: usize) -> Result<String, Error> {
    const WIDTH_MAX: usize = 64;
    if width > WIDTH_MAX {
        return Err(Error::new(ErrorKind::InvalidOperation, "indent by at most 64"));
    }
    let space: String = std::iter::repeat_n(SOFT_SPACE, width).collect();
    let line = |(number, line): (usize, &str)| match line {
        line if number == 0 || line.is_empty() => line.to_owned(),
        line => format!("{space}{line}"),
    };
    Ok(text.split('\n').enumerate().map(line).collect::<Vec<_>>().join("\n"))
}

/// Parts come from beneath the recipe's folder, and are read as the recipe is.
fn loader(folder: PathBuf) -> impl Fn(&str) -> Result<Option<String>, Error> + Send + Sync {
    let read = Mutex::new(0_usize);
    move |name| {
        let mut count = read.lock().unwrap_or_else(PoisonError::into_inner);
        *count += 1;
        if *count > INCLUDES_MAX {
            let why = format!("more than {INCLUDES_MAX} files are included");
            return Err(Error::new(ErrorKind::BadInclude, why));
        }
        match file::read(&folder.join(name), &folder, FILE_BYTES_MAX) {
            Ok(text) => {
                if let Some(sign) = crate::hidden::refused(&text) {
                    let why = format!("{name} hides U+{:04X}", u32::from(sign));
                    return Err(Error::new(ErrorKind::BadInclude, why));
                }
                let pieces = Pieces::of(&text);
                let pieces = pieces.map_err(|f| Error::new(ErrorKind::BadInclude, f.what))?;
                Ok(Some(pieces.prepared()))
            }
            Err(file::Refused::Missing { .. }) => Ok(None),
            Err(refused) => Err(Error::new(ErrorKind::BadInclude, refused.to_string())),
        }
    }
}

fn fault(error: &Error, prepared: &str) -> Fault {
    // The innermost cause is the one a person can do something about.
    let mut inner = error;
    while let Some(cause) = std::error::Error::source(inner).and_then(|e| e.downcast_ref()) {
        inner = cause;
    }
    let ours = error.name().is_none_or(|name| name == MAIN);
    let place = match (error.range(), error.line()) {
        (Some(range), _) if ours => Place::of_byte(prepared, range.start),
        (_, Some(line)) if ours => Place::new(line, 1),
        _ => Place::START,
    };
    let detail = inner.detail().map_or_else(String::new, |detail| format!(": {detail}"));
    let from = match inner.name() {
        Some(name) if name != MAIN => format!(" in {name}"),
        _ => String::new(),
    };
    let circle = ["recursion limit", "cycle in template"].iter().any(|it| detail.contains(it));
    if circle && inner.kind() == ErrorKind::InvalidOperation {
        return Fault::new(place, format!("{CIRCLE}{from}"), "take one include or extends out");
    }
    let what = format!("the template fails{from}: {}{detail}", inner.kind());
    let cures = [
        (ErrorKind::SyntaxError, "to write braces as they are: {% raw %} … {% endraw %}"),
        (ErrorKind::TemplateNotFound, "put the part beneath this folder, and name it from here"),
        (ErrorKind::BadInclude, "put the part beneath this folder, and name it from here"),
        (ErrorKind::UndefinedError, "add it to parameters"),
    ];
    let cure = cures.iter().find(|(kind, _)| *kind == inner.kind());
    let how = cure.map_or("mend the expression", |(_, how)| *how);
    Fault::new(place, what, how)
}

#[derive(Debug, Default)]
struct Bounded {
    bytes: Vec<u8>,
}

impl io::Write for Bounded {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + more.len() > RENDERED_BYTES_MAX {
            return Err(io::Error::other("the rendered text is too long"));
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
