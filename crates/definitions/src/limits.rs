//! Every bound of reading, with its reason. Files come from strangers: what is too big, too deep
//! or too many is an error that says so, never a wait.

/// The largest definition seen in public is below 100 KiB.
pub const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// A file given as a parameter's value ends up in a prompt; more would not fit a window.
pub const VALUE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// What a template may grow to once its values are in.
pub const RENDERED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Instructions of the virtual machine that renders templates; a long recipe takes some hundred.
pub const TEMPLATE_FUEL: u64 = 200_000;

/// A template that includes templates, down to this many.
pub const TEMPLATE_DEPTH: usize = 200;

/// Texts that a template may put together in one tag, and how often those that build on each
/// other may multiply: what is in between is not written, so nothing else bounds it.
pub const JOINS_MAX: usize = 16;
pub const GROWTH_MAX: usize = 64;

/// Files one template may pull in.
pub const INCLUDES_MAX: usize = 64;

/// Keys and values in one file, copies made by aliases counted: the bound of an alias bomb. The
/// largest public recipe has below 500.
pub const NODES_MAX: usize = 20_000;

/// Text in one file, copies made by aliases counted.
pub const TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Collections inside collections. Schemas are the deepest things people write, at about twenty.
pub const DEPTH_MAX: usize = 64;

/// Problems told of one file; who wants the rest mends these first.
pub const PROBLEMS_MAX: usize = 100;

/// Definitions in one place people keep them.
pub const FILES_MAX: usize = 5_000;

/// Entries looked at in one folder.
pub const ENTRIES_MAX: usize = 10_000;

/// Folders below a folder of skills.
pub const FOLDERS_DEEP: usize = 4;

/// All definitions read in one scan.
pub const SCAN_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Notes for agents (`AGENTS.md`): one file, and all of them together.
pub const NOTE_BYTES_MAX: usize = 32 * 1024;
pub const NOTES_BYTES_MAX: usize = 64 * 1024;
