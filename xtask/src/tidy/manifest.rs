//! Rules for manifests: dependencies point one way, the kernel has two, nobody has features.

use toml::{Table, Value};

use super::Problem;
use super::tree::{File, Tree};

/// Which room may use which. Tests may reach further: what they use is not shipped.
const ROOMS: &[(&str, &[&str])] = &[
    ("kernel", &[]),
    ("fetch", &[]),
    ("files", &[]),
    ("mcp", &[]),
    ("memory", &[]),
    ("process", &[]),
    ("sandbox", &[]),
    ("shell", &[]),
    ("definitions", &["kernel"]),
    ("journal", &["kernel"]),
    ("runtime", &["kernel", "journal", "shell"]),
    ("tools", &["kernel", "runtime", "fetch", "files", "mcp", "memory", "process", "sandbox"]),
    ("web", &["kernel", "runtime"]),
    ("tui", &["kernel"]),
    (
        "locum",
        &[
            "kernel",
            "journal",
            "runtime",
            "web",
            "tui",
            "definitions",
            "mcp",
            "memory",
            "process",
            "sandbox",
            "tools",
        ],
    ),
];

const KERNEL_DEPENDENCIES: &[&str] = &["serde", "serde_json"];

/// One entry of a dependency table, with what the workspace says about it.
struct Dependency {
    package: String,
    key: String,
    default_features: bool,
    features: Vec<String>,
}

pub(super) fn check(tree: &Tree, problems: &mut Vec<Problem>) {
    let shared = tree.get("Cargo.toml").and_then(|file| file.text.parse::<Table>().ok());
    let shared = shared.as_ref().and_then(|root| root.get("workspace")?.get("dependencies"));
    for file in &tree.files {
        let Some(room) = room_of(&file.path) else { continue };
        match file.text.parse::<Table>() {
            Ok(manifest) => check_room(file, room, &manifest, shared, problems),
            Err(error) => {
                let why = error.message().to_owned();
                problems.push(Problem::new(&file.path, 1, "manifest", why));
            }
        }
    }
}

fn room_of(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")
}

fn check_room(
    file: &File,
    room: &str,
    manifest: &Table,
    shared: Option<&Value>,
    problems: &mut Vec<Problem>,
) {
    let mut report = |key: &str, rule, why: String| {
        problems.push(Problem::new(&file.path, line_of(&file.text, key), rule, why));
    };
    if manifest.contains_key("features") {
        report("[features]", "features", "one build is one program; no cargo features".to_owned());
    }
    let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
        report("[package]", "direction", format!("`{room}` is not one of the rooms"));
        return;
    };
    let dependencies = dependencies(manifest, shared);
    for dependency in &dependencies {
        let Some(target) = dependency.package.strip_prefix("locum-") else { continue };
        if !allowed.contains(&target) {
            report(&dependency.key, "direction", format!("{room} may not use {target}"));
        }
    }
    if room != "kernel" {
        return;
    }
    for name in KERNEL_DEPENDENCIES {
        if !dependencies.iter().any(|dependency| dependency.package == *name) {
            report("[dependencies]", "kernel-dependencies", format!("{name} is missing"));
        }
    }
    for dependency in &dependencies {
        let Dependency { package, key, default_features, features } = dependency;
        if !KERNEL_DEPENDENCIES.contains(&package.as_str()) {
            report(key, "kernel-dependencies", format!("only serde and serde_json, not {package}"));
        } else if *default_features || features.iter().any(|feature| feature == "std") {
            report(key, "kernel-dependencies", format!("{package} brings std in"));
        }
    }
}

/// All that is shipped or runs while building, for every platform.
fn dependencies(manifest: &Table, shared: Option<&Value>) -> Vec<Dependency> {
    let platforms = manifest.get("target").and_then(Value::as_table);
    let platforms = platforms.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    let mut found = Vec::new();
    for table in platforms.chain([manifest]) {
        for kind in ["dependencies", "build-dependencies"] {
            let entries = table.get(kind).and_then(Value::as_table).into_iter().flatten();
            found.extend(entries.map(|(key, value)| dependency(key, value, shared)));
        }
    }
    found
}

fn dependency(key: &str, value: &Value, shared: Option<&Value>) -> Dependency {
    let inherited = value.get("workspace").and_then(Value::as_bool).unwrap_or(false);
    let shared = if inherited { shared.and_then(|shared| shared.get(key)) } else { None };
    let said = |name: &str| -> Vec<&Value> {
        [Some(value), shared].into_iter().flatten().filter_map(|place| place.get(name)).collect()
    };
    let package = said("package").first().and_then(|name| name.as_str()).unwrap_or(key);
    let off = said("default-features").iter().all(|value| value.as_bool() == Some(false));
    let features = said("features").into_iter().filter_map(Value::as_array).flatten();
    Dependency {
        package: package.to_owned(),
        key: key.to_owned(),
        // Silence means on, and one place that turns them on is enough.
        default_features: said("default-features").is_empty() || !off,
        features: features.filter_map(|feature| Some(feature.as_str()?.to_owned())).collect(),
    }
}

/// The parser does not keep lines for a table, and the first line that starts so is close enough.
fn line_of(text: &str, start: &str) -> usize {
    text.lines().position(|line| line.trim_start().starts_with(start)).map_or(1, |at| at + 1)
}
