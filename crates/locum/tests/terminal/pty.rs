//! A terminal of a test's own, made by `script`.

use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::support::{Folder, PATIENCE, USER, Watch};

/// What is typed at a terminal, and what is seen there.
pub(crate) struct Terminal {
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    seen: Vec<u8>,
    /// How far the test has looked.
    at: usize,
    _watch: Watch,
}

impl Terminal {
    /// None, and told so, where no terminal can be made.
    pub(crate) fn start(folder: &Folder, arguments: &[&str]) -> Option<Terminal> {
        Terminal::start_with(folder, arguments, &[])
    }

    /// The same with variables. Without any it is a terminal that can do everything, and a person
    /// who wants no colour.
    pub(crate) fn start_with(
        folder: &Folder,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Option<Terminal> {
        let made = Command::new("script").arg("--version").output();
        if !made.is_ok_and(|output| output.status.success()) {
            eprintln!("SKIPPED: `script` is not installed; no terminal was tested");
            return None;
        }
        let data = folder.data();
        let words = [env!("CARGO_BIN_EXE_locum")].into_iter().chain(arguments.iter().copied());
        let words = words.chain(["--data", data.to_str().unwrap()]);
        let words: Vec<String> = words.map(|word| format!("'{word}'")).collect();
        let command = format!("stty cols 100 rows 30; exec {}", words.join(" "));
        let mut script = Command::new("script");
        script.args(["-qec", &command, "/dev/null"]).current_dir(&folder.0).env("USER", USER);
        // Whoever runs the tests may have a configuration and definitions of their own.
        script.env("XDG_CONFIG_HOME", &folder.0).env_remove("LOCUM_CONFIG");
        for name in ["ACCESSIBLE", "LOCUM_PLAIN", "LOCUM_ASCII", "LOCUM_LOG", "CLICOLOR_FORCE"] {
            script.env_remove(name);
        }
        script.env("TERM", "xterm-256color").env("NO_COLOR", "1").envs(variables.iter().copied());
        let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        Some(Terminal {
            stdin: child.stdin.take().unwrap(),
            stdout: child.stdout.take().unwrap(),
            seen: Vec::new(),
            at: 0,
            _watch: Watch::over(child.id(), PATIENCE),
            child,
        })
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen).replace("\r\n", "\n")
    }

    /// Looks on until these words are seen after those looked for before.
    pub(crate) fn until(&mut self, words: &str) {
        loop {
            let text = self.text();
            if let Some(found) = text.get(self.at..).and_then(|rest| rest.find(words)) {
                self.at += found + words.len();
                return;
            }
            assert!(self.look(), "{words:?} was not seen after {}: {text}", self.at);
        }
    }

    fn look(&mut self) -> bool {
        let mut bytes = [0; 4096];
        let read = self.stdout.read(&mut bytes).unwrap_or(0);
        self.seen.extend(&bytes[..read]);
        read > 0
    }

    pub(crate) fn type_line(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").unwrap();
    }

    /// Everything that was seen until it ended, and how it ended.
    pub(crate) fn end(mut self) -> (String, Option<i32>) {
        while self.look() {}
        (self.text(), self.child.wait().unwrap().code())
    }
}
