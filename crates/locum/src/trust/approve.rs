//! The servers a trusted folder brings along: each is a program of somebody else's, so each is
//! approved once, by what it would really run. Another command line is another server.

use std::collections::BTreeMap;
use std::env;
use std::path::Path;

use locum_definitions::{Server, Wants};
use locum_kernel::Digest;
use locum_mcp::{ServerSpec, Transport};
use locum_tools::Place;
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::complaint::{Complaint, USAGE};
use crate::config;
use crate::configured;
use crate::data;
use crate::data::Places;
use crate::print;
use crate::screen::ours;
use crate::text::{clean, quote};
use crate::trust::store::{Approval, Store, Verdict, now};
use crate::trust::{self, By, Person, Said, Trust, shown};
use crate::variables::wants;

/// One server as it stands in the file: names of variables, not what they hold.
struct Written {
    name: String,
    /// Without what variables and headers are set to: it may end in a log.
    line: String,
    /// With it, for the person who decides.
    whole: String,
    wants: Wants,
    digest: Digest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Values {
    Shown,
    Hidden,
}

/// Those of a trusted folder's servers that may start; a person who is there is asked once about
/// each that is new, others are told how to approve it.
pub(crate) fn allowed(
    place: &Place,
    trust: &Trust,
    person: Person,
    specs: Vec<ServerSpec>,
    written: &[ServerSpec],
) -> Result<Vec<ServerSpec>, Complaint> {
    let Trust::Yes { root, by } = trust else { return Ok(Vec::new()) };
    if specs.is_empty() {
        return Ok(specs);
    }
    let store = Store::read(&place.data)?;
    let mut allowed = Vec::new();
    for spec in specs {
        let it = Written::of(&spec, written, &place.workspace);
        let verdict = match (store.of_server(&it.digest), by, person) {
            (Some(answer), _, _) => answer,
            (None, _, Person::There) => it.ask(&place.data, root),
            // Who runs a script with this flag has looked at what the folder brings.
            (None, By::Flag, Person::Absent) => {
                it.tell_wants();
                Verdict::Yes
            }
            (None, By::Answer, Person::Absent) => Verdict::No,
        };
        if verdict == Verdict::Yes {
            allowed.push(spec);
        } else {
            let name = clean(&it.name);
            print::note(&format!(
                "note: the server {name} of .mcp.json is not approved, so it is not started: {}. \
                 do: {}",
                it.line,
                it.command(&place.workspace)
            ));
        }
    }
    Ok(allowed)
}

impl Written {
    /// In another folder the same words may start another program.
    fn of(spec: &ServerSpec, written: &[ServerSpec], folder: &Path) -> Written {
        // An address that begins with a variable is none before the variable is known.
        let spec = written.iter().find(|other| other.name == spec.name).unwrap_or(spec);
        let parts = match &spec.transport {
            Transport::Stdio { command, args, env, cwd } => {
                json!([folder, spec.name, "stdio", command, args, env, cwd])
            }
            Transport::Http { url, headers } => json!([folder, spec.name, "http", url, headers]),
        };
        let digest = Digest::of_bytes(parts.to_string().as_bytes());
        let wants = wants(spec);
        let given = if wants.is_empty() { String::new() } else { format!(", with {wants}") };
        let lines = [Values::Hidden, Values::Shown];
        let [line, whole] =
            lines.map(|it| format!("{}{}", line(&spec.transport, it), visible(&given)));
        Written { name: spec.name.clone(), line, whole, wants, digest }
    }

    /// Nobody is asked, so it is said.
    fn tell_wants(&self) {
        if !self.wants.is_empty() {
            let (name, wants) = (visible(&self.name), visible(&self.wants.to_string()));
            print::note(&format!("note: the server {name} of .mcp.json starts with {wants}"));
        }
    }

    /// What a person types to approve it, wherever they are now.
    fn command(&self, folder: &Path) -> String {
        let here = env::current_dir().and_then(|here| here.canonicalize());
        let elsewhere = here.ok().is_none_or(|here| here != folder);
        let at = format!(" -C {}", quote(&folder.display().to_string()));
        let at = if elsewhere { at } else { String::new() };
        format!("locum mcp approve {}{at}", quote(&self.name))
    }

    fn ask(&self, data: &Path, root: &Path) -> Verdict {
        let question = format!(
            "{} wants to start a server.\n  {}: {}\nLet it start, now and later? [y/N]",
            shown(root),
            visible(&self.name),
            self.whole
        );
        let Some(approved) = trust::ask(&question) else { return Verdict::No };
        if let Err(Complaint { what, cause, .. }) = self.keep(data, root, approved) {
            print::note(&format!("note: the answer is not remembered: {what} {cause}"));
        }
        approved
    }

    fn keep(&self, data: &Path, root: &Path, approved: Verdict) -> Result<(), Complaint> {
        let approval = Approval {
            name: self.name.clone(),
            line: self.line.clone(),
            folder: root.display().to_string(),
            approved,
            at: now(),
        };
        Store::change(data, |store| store.approve(&self.digest, approval))
    }
}

/// The whole command line, with what it is given.
fn line(transport: &Transport, values: Values) -> String {
    let pair = |(key, it): (&String, &String)| match values {
        Values::Shown => format!("{key}={it}"),
        Values::Hidden => key.clone(),
    };
    let pairs = |table: &BTreeMap<String, String>| {
        let pairs: Vec<String> = table.iter().map(pair).collect();
        if pairs.is_empty() { String::new() } else { format!(" (with {})", pairs.join(", ")) }
    };
    visible(&match transport {
        Transport::Stdio { command, args, env, cwd } => {
            let words = std::iter::once(command).chain(args).map(|word| quote(word));
            let folder = cwd.as_ref().map(|cwd| format!(" in {}", cwd.display()));
            let words = words.collect::<Vec<_>>().join(" ");
            format!("{words}{}{}", folder.unwrap_or_default(), pairs(env))
        }
        Transport::Http { url, headers } => format!("{url}{}", pairs(headers)),
    })
}

/// What would not be seen, or would change how the rest is seen, is spelled out.
fn visible(text: &str) -> String {
    let shown = |sign: char| {
        let hidden = matches!(sign, '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' | '\u{ad}');
        let blank = sign != ' ' && sign.is_whitespace();
        if hidden || blank || clean(&sign.to_string()).is_empty() {
            ours(&format!("‹U+{:04X}›", u32::from(sign))).into_owned()
        } else {
            sign.to_string()
        }
    };
    text.chars().map(shown).collect()
}

/// `locum mcp approve NAME`.
pub(crate) fn approve(name: &str, folder: &Path, places: &Places<'_>) -> Result<u8, Complaint> {
    let here = folder.canonicalize().map_err(|error| Complaint::workspace(folder, &error))?;
    let data = data::folder(places.data)?;
    let Trust::Yes { root, .. } = trust::quietly(&here, &data, Said::Nothing)? else {
        return Err(Complaint {
            code: "E126",
            what: format!("{} is not trusted, so none of its servers is.", shown(&here)),
            cause: "Its files are not interpreted before you trust it.".into(),
            next: format!("locum trust {}", quote(&here.display().to_string())),
            exit: USAGE,
        });
    };
    let file = here.join(".mcp.json");
    let settings = config::read(places.config)?;
    let (specs, written) = configured::of_folder(&file, &here, &settings)?;
    let Some(spec) = specs.iter().find(|spec| spec.name == name) else {
        let names: Vec<String> = specs.iter().map(|spec| clean(&spec.name)).collect();
        return Err(Complaint {
            code: "E128",
            what: format!("There is no server {:?} in {}.", clean(name), shown(&file)),
            cause: format!("There are: {}.", names.join(", ")),
            next: "locum mcp approve NAME with one of these".into(),
            exit: USAGE,
        });
    };
    let it = Written::of(spec, &written, &here);
    it.keep(&data, &root, Verdict::Yes)?;
    print::line(&format!("approved {}: {}", visible(&it.name), it.line));
    Ok(0)
}

/// Whether somebody has agreed to a server that a project's definition brings.
pub(crate) fn is_agreed(data: &Path, server: &Server, folder: &Path) -> bool {
    let store = Store::read(data).ok();
    store.and_then(|store| store.of_server(&digest_of(server, folder))) == Some(Verdict::Yes)
}

/// Keeps that somebody did, for a server that needs it.
pub(crate) fn agree(data: &Path, server: &Value, folder: &Path) -> Result<(), Complaint> {
    let Ok(server) = Server::deserialize(server) else { return Ok(()) };
    if !server.needs_consent || is_agreed(data, &server, folder) {
        return Ok(());
    }
    let approval = Approval {
        name: server.name.clone(),
        line: server.wants().to_string(),
        folder: folder.display().to_string(),
        approved: Verdict::Yes,
        at: now(),
    };
    Store::change(data, |store| store.approve(&digest_of(&server, folder), approval))
}

/// Where it stands in its file does not matter, what it would run and be given does. In another
/// folder the same words may start another program.
fn digest_of(server: &Server, folder: &Path) -> Digest {
    let wants = server.wants().to_string();
    let parts = json!([folder, server.name, server.how, server.available_tools, wants]);
    Digest::of_bytes(parts.to_string().as_bytes())
}
