//! Which of our environment variables a command sees: those on a list, and those granted by
//! name. A name that looks like a secret passes only when it was granted.

use std::ffi::{OsStr, OsString};

/// Where things are and how to speak. Nothing here opens a door; what loads code into programs
/// (`LD_PRELOAD`, `PYTHONPATH`, `NODE_OPTIONS`) and addresses of sockets are left out.
const PASSED: &[&str] = &[
    "CARGO_HOME",
    "COLORTERM",
    "GOPATH",
    "GOROOT",
    "HOME",
    "JAVA_HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "NO_COLOR",
    "NVM_DIR",
    "PATH",
    "PYENV_ROOT",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TZ",
    "USER",
    "VIRTUAL_ENV",
];
const PASSED_PREFIX: &str = "LC_";

const SECRET_PARTS: &[&str] =
    &["AUTH", "COOKIE", "CREDENTIAL", "PASSPHRASE", "PASSWD", "PASSWORD", "SECRET", "TOKEN"];
const SECRET_ENDS: &[&str] = &["KEY", "PASS", "PAT", "PWD"];
const SECRET_STARTS: &[&str] = &["AWS_", "AZURE_", "GCP_", "GOOGLE_"];

pub(crate) fn pass(
    ours: impl IntoIterator<Item = (OsString, OsString)>,
    granted: &[OsString],
) -> Vec<(OsString, OsString)> {
    ours.into_iter().filter(|(name, _)| granted.contains(name) || harmless(name)).collect()
}

fn harmless(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let listed = PASSED.contains(&name) || name.starts_with(PASSED_PREFIX);
    listed && !looks_secret(name)
}

fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_PARTS.iter().any(|part| name.contains(part))
        || SECRET_ENDS.iter().any(|end| name.ends_with(end))
        || SECRET_STARTS.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    #[test]
    fn what_passes() {
        let cases = [
            ("PATH", "", true),
            ("HOME", "", true),
            ("LC_ALL", "", true),
            ("LC_SECRET_TOKEN", "", false),
            ("LC_API_KEY", "", false),
            ("LD_PRELOAD", "", false),
            ("SSH_AUTH_SOCK", "", false),
            ("DBUS_SESSION_BUS_ADDRESS", "", false),
            ("DOCKER_HOST", "", false),
            ("XDG_RUNTIME_DIR", "", false),
            ("DISPLAY", "", false),
            ("NODE_OPTIONS", "", false),
            ("AWS_REGION", "", false),
            ("SOME_API_KEY", "", false),
            ("SOME_API_KEY", "SOME_API_KEY", true),
            ("SOME_API_KEY", "OTHER_API_KEY", false),
            ("HTTPS_PROXY", "", false),
            ("MY_SETTING", "", false),
            ("MY_SETTING", "MY_SETTING", true),
        ];
        for (name, granted, passes) in cases {
            let ours = [(OsString::from(name), OsString::from("value"))];
            let found = super::pass(ours, &[OsString::from(granted)]);
            assert_eq!(!found.is_empty(), passes, "{name}, granted {granted:?}");
        }
    }

    #[test]
    fn nothing_on_the_list_looks_like_a_secret() {
        let odd: Vec<_> = super::PASSED.iter().filter(|name| super::looks_secret(name)).collect();
        assert!(odd.is_empty(), "{odd:?}");
    }
}
