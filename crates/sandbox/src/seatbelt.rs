//! Walls for macOS, as the text of a profile for `sandbox-exec -p`. Written from the format's
//! documentation by others and tested by nobody: there is no such machine to test on.

use std::fmt::Write as _;
use std::path::Path;

use crate::layers::{self, Mount};
use crate::walls::{Network, NoWalls, Terminal, Walls};

/// Later rules win, so the order is: all denied, what everyone needs, what is opened, guards.
const BASE: &str = "\
(version 1)
(deny default)
(allow process-fork)
(allow process-exec)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow file-read*)
(allow file-write* (literal \"/dev/null\") (literal \"/dev/zero\"))
(allow ipc-posix-sem)
(allow mach-lookup
  (global-name \"com.apple.system.opendirectoryd.libinfo\")
  (global-name \"com.apple.system.notification_center\"))
";

/// The profile's text. It works on a Mac only, but says the same everywhere.
pub fn profile(walls: &Walls) -> Result<String, NoWalls> {
    let plan = layers::plan(walls)?;
    let mut text = BASE.to_owned();
    let mut line = |rule: &str, reach: &str, path: &Path| {
        let path = path.to_str().ok_or_else(|| NoWalls::Name { path: path.to_owned() })?;
        let path = path.replace('\\', "\\\\").replace('"', "\\\"");
        // A string takes any text.
        let _ = writeln!(text, "({rule} ({reach} \"{path}\"))");
        Ok::<_, NoWalls>(())
    };
    for root in &plan.writable {
        line("allow file-write*", "subpath", root)?;
    }
    for layer in &plan.layers {
        match layer.mount {
            Mount::Open if plan.writable.contains(&layer.path) => {}
            // A folder on the way to a guard: it may be filled, but not moved away.
            Mount::Open => line("deny file-write-unlink", "literal", &layer.path)?,
            Mount::Show => line("allow file-read*", "subpath", &layer.path)?,
            Mount::Freeze => line("deny file-write*", "subpath", &layer.path)?,
            Mount::HideFile | Mount::HideFolder => {
                line("deny file-read* file-write*", "subpath", &layer.path)?;
            }
        }
    }
    let network = match walls.network {
        // There is no network of its own to be had here, and ours has servers in it.
        Network::Off | Network::Loopback => "",
        Network::On => "(allow network* (local ip))\n(allow network-outbound (remote ip))\n",
    };
    text.push_str(network);
    if walls.terminal == Terminal::Given {
        text.push_str("(allow file-ioctl file-write* (literal \"/dev/tty\"))\n");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::walls::{Guard, Keep, Network, StandIn, Walls};

    #[test]
    fn the_text() {
        let base = std::env::temp_dir().join(format!("locum-belt-{}", std::process::id()));
        fs::create_dir_all(base.join("w\"s/.git/hooks")).expect("folders");
        fs::create_dir_all(base.join("data")).expect("a folder");
        let base = fs::canonicalize(base).expect("a real path");
        let guard = |name: &str, keep| {
            let path = base.join(name);
            Guard { path, keep, absent: StandIn::Folder }
        };
        let guards = vec![guard("w\"s/.git/hooks", Keep::Frozen), guard("data", Keep::Hidden)];
        let walls = Walls { guards, ..Walls::around(base.join("w\"s")) };
        let text = super::profile(&walls).expect("a profile");
        let own = text.strip_prefix(super::BASE).expect("the base comes first");
        let expected = "\
(allow file-write* (subpath \"BASE/w\\\"s\"))
(deny file-read* file-write* (subpath \"BASE/data\"))
(deny file-write-unlink (literal \"BASE/w\\\"s/.git\"))
(deny file-write* (subpath \"BASE/w\\\"s/.git/hooks\"))
";
        assert_eq!(own.replace(base.to_str().expect("text"), "BASE"), expected);
        let open = super::profile(&Walls { network: Network::On, ..walls }).expect("a profile");
        assert!(open.contains("(allow network-outbound"), "{open}");
        let reading = super::profile(&Walls::read_only(&base)).expect("a profile");
        assert_eq!(reading, super::BASE, "nothing may be written, nobody called");
        let _ = fs::remove_dir_all(base);
    }
}
