//! What a person configures: which servers there are and how they are reached or started.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::name;

/// One configured server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSpec {
    /// Names the server to people, in tool names and in files.
    pub name: String,
    pub transport: Transport,
    /// For one call.
    pub timeout: Duration,
    /// For a start until the server has introduced itself.
    pub start_timeout: Duration,
    /// None: all of them. Others are neither listed nor callable. A star at its end stands for
    /// the rest of a name.
    pub allowed_tools: Option<Vec<String>>,
    /// Neither listed nor callable, whatever is allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied_tools: Vec<String>,
}

impl ServerSpec {
    pub fn new(name: impl Into<String>, transport: Transport) -> ServerSpec {
        ServerSpec {
            name: name.into(),
            transport,
            timeout: limits::CALL_TIME,
            start_timeout: limits::START_TIME,
            allowed_tools: None,
            denied_tools: Vec::new(),
        }
    }

    /// Tells apart everything that could make it another server. Not to be read back: it holds no
    /// secret, although what it is made from does.
    pub fn digest(&self) -> String {
        let all = serde_json::to_vec(self).unwrap_or_default();
        name::hex(&name::digest([all.as_slice()]))
    }

    pub(crate) fn allows(&self, tool: &str) -> bool {
        let among = |list: &[String]| list.iter().any(|name| name::stands_for(name, tool));
        self.allowed_tools.as_deref().is_none_or(among) && !among(&self.denied_tools)
    }
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Transport {
    /// A program of ours to start, spoken to through its input and output.
    Stdio {
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
        cwd: Option<PathBuf>,
    },
    /// Streamable HTTP. A bearer token is a header like any other.
    Http { url: String, headers: BTreeMap<String, String> },
}

/// Values of environments and headers are where tokens are, so only their names are shown.
impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Transport::Stdio { command, args, env, cwd } => {
                let env: Vec<&String> = env.keys().collect();
                let mut out = f.debug_struct("Stdio");
                out.field("command", command).field("args", args);
                out.field("env", &env).field("cwd", cwd).finish()
            }
            Transport::Http { url, headers } => {
                let headers: Vec<&String> = headers.keys().collect();
                f.debug_struct("Http").field("url", url).field("headers", &headers).finish()
            }
        }
    }
}

/// How a program is really started: the command itself, or a sandbox around it. Nothing else of
/// our own environment reaches it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Launch {
    pub argv: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub cwd: Option<PathBuf>,
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let env: Vec<&String> = self.env.keys().collect();
        let mut out = f.debug_struct("Launch");
        out.field("argv", &self.argv).field("env", &env).field("cwd", &self.cwd).finish()
    }
}

impl Launch {
    /// Without a sandbox. Of `environment` a program gets what nearly every program needs and
    /// what holds no secrets, then what was configured for it.
    pub fn plain(spec: &ServerSpec, environment: &BTreeMap<String, String>) -> Launch {
        const HARMLESS: &[&str] =
            &["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];
        let Transport::Stdio { command, args, env, cwd } = &spec.transport else {
            return Launch::default();
        };
        let mut argv = vec![command.clone()];
        argv.extend(args.iter().cloned());
        let kept = environment.iter().filter(|(key, _)| HARMLESS.contains(&key.as_str()));
        let given = kept.chain(env).map(|(key, value)| (key.clone(), value.clone()));
        Launch { argv, env: given.collect(), cwd: cwd.clone() }
    }
}

/// Encloses the start of a program.
pub type Wrap = Arc<dyn Fn(&ServerSpec) -> io::Result<Launch> + Send + Sync>;

/// Whether servers may ask our model something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// They may ask; whoever reads the events answers.
    Offered,
    /// They are told from the beginning that they may not.
    Never,
}

/// What all servers of one engine share.
#[derive(Clone)]
pub struct Settings {
    /// How we introduce ourselves.
    pub client_name: String,
    pub client_version: String,
    /// The folders work happens in, told to servers that ask.
    pub roots: Vec<PathBuf>,
    pub wrap: Wrap,
    pub sampling: Sampling,
    /// Where logins are kept, one file for each server, readable by its owner only. None: only
    /// as long as the program runs.
    pub credentials: Option<PathBuf>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Settings");
        out.field("client_name", &self.client_name).field("roots", &self.roots);
        out.field("credentials", &self.credentials).finish_non_exhaustive()
    }
}
