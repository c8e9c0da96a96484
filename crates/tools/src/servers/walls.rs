//! The walls around servers that are programs of this machine.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use locum_mcp::{Launch, ServerSpec, Transport, Wrap};
use locum_sandbox::{Hold, Network, Walls};

use crate::around::survey;
use crate::{Place, environment, links};

/// Servers run behind walls like any command, but with the network, for which most of them exist.
/// On a machine without walls they do not run: nobody was asked.
pub(super) fn wrap(place: Place) -> Wrap {
    // For as long as the session: a server may be started again at any time.
    let holds: Mutex<Vec<Hold>> = Mutex::default();
    Arc::new(move |spec: &ServerSpec| {
        let plain = Launch::plain(spec, &environment());
        if !matches!(spec.transport, Transport::Stdio { .. }) {
            return Ok(plain);
        }
        missing(&plain).map_or(Ok(()), Err)?;
        let survey = survey();
        survey.builder().map_err(|why| io::Error::other(why.to_string()))?;
        let mut walls = Walls::around(&place.workspace);
        walls.network = Network::On;
        walls.guards = place.guards();
        walls.guards.extend(place.guards_below());
        walls.writable = caches(place.home.as_deref());
        links::keep(&mut walls, &place).map_err(io::Error::other)?;
        let argv: Vec<OsString> = plain.argv.iter().map(OsString::from).collect();
        let cwd = plain.cwd.clone().unwrap_or_else(|| place.workspace.clone());
        let enclosed = locum_sandbox::enclose(&walls, &survey, &argv, &cwd);
        let enclosed = enclosed.map_err(io::Error::other)?;
        let word = |word: OsString| word.into_string().map_err(|_| io::Error::other("not UTF-8"));
        let argv = enclosed.argv.into_iter().map(word).collect::<io::Result<Vec<_>>>()?;
        let mut env: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in enclosed.env {
            env.insert(word(name)?, word(value)?);
        }
        // What the configuration gives it, it gives on purpose.
        if let Transport::Stdio { env: own, .. } = &spec.transport {
            env.extend(own.clone());
        }
        holds.lock().unwrap_or_else(PoisonError::into_inner).push(enclosed.hold);
        Ok(Launch { argv, env, cwd: Some(cwd) })
    })
}

/// Behind walls it would only be the walls that say so.
fn missing(launch: &Launch) -> Option<io::Error> {
    let program = launch.argv.first().filter(|word| !word.is_empty() && !word.contains('/'))?;
    let folders = launch.env.get("PATH")?;
    let is_there = std::env::split_paths(folders).any(|folder| folder.join(program).exists());
    let what = format!("there is no program `{program}`; install it or give its path");
    (!is_there).then(|| io::Error::new(io::ErrorKind::NotFound, what))
}

/// Where the usual runners of servers keep what they have fetched.
fn caches(home: Option<&Path>) -> Vec<PathBuf> {
    let names = [".npm", ".cache/uv"];
    let all = home.into_iter().flat_map(|home| names.map(|name| home.join(name)));
    all.filter(|path| path.is_dir()).collect()
}
