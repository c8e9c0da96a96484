//! `glob`: paths that match, in order of paths, so that pages fit together.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

use crate::args::Glob;
use crate::desk::{Answer, Desk};
use crate::error::Error;
use crate::roots::Root;
use crate::walk::{Stop, Walk};

const ROWS: usize = 200;
const ROWS_MAX: usize = 1000;

impl Desk {
    pub fn glob(&self, args: &Glob, stop: &Stop) -> Result<Answer, Error> {
        let spot = self.roots.to_read(args.path.as_deref().unwrap_or("."))?;
        let wanted = Wanted::new(&args.pattern, &spot.root)?;
        let mut walk = Walk::new(&self.roots, &spot, stop)?;
        let limit = args.limit.unwrap_or(ROWS).clamp(1, ROWS_MAX);
        let offset = args.offset.unwrap_or(0);
        let mut rows = Vec::new();
        let mut count = 0_usize;
        while let Some(item) = walk.next() {
            if wanted.has(&item.path, &spot.path) {
                if count >= offset && rows.len() < limit {
                    rows.push(spot.root.say_whole(&item.path));
                }
                count += 1;
            }
        }
        let rest = count.saturating_sub(offset + rows.len());
        if rest > 0 {
            let next = offset + rows.len();
            rows.push(format!("[… and {rest} more: the next are at \"offset\": {next}]"));
        }
        if count == 0 {
            rows.push(format!("nothing matches {}", crate::error::shown(&args.pattern)));
        } else if rows.is_empty() {
            rows.push(format!("[{count} paths match; offset {offset} is past them]"));
        }
        if let Some(why) = walk.cut {
            rows.push(format!("[not everything was looked at: {why}]"));
        }
        Ok(Answer::text(rows.join("\n")))
    }
}

/// A pattern without a slash is about names, one with a slash about paths: from the folder that
/// is searched, or from the root.
pub(crate) struct Wanted {
    matcher: GlobMatcher,
    is_about_names: bool,
}

impl Wanted {
    pub(crate) fn new(pattern: &str, root: &Root) -> Result<Wanted, Error> {
        let refused = |why: String| Error::Pattern { why };
        let named = crate::error::shown(pattern);
        // An absolute pattern is one from the root, if it is in there.
        let inside = match Path::new(pattern).strip_prefix(&root.real) {
            Ok(rest) => rest.to_string_lossy().into_owned(),
            Err(_) if pattern.starts_with('/') => {
                return Err(Error::Outside { path: named });
            }
            Err(_) => pattern.trim_start_matches("./").to_owned(),
        };
        if inside.split('/').any(|part| part == "..") {
            return Err(Error::Outside { path: named });
        }
        let is_about_names = !pattern.contains('/');
        let glob = GlobBuilder::new(&inside).literal_separator(true).build();
        let glob = glob.map_err(|error| refused(format!("{named}: {}", error.kind())))?;
        Ok(Wanted { matcher: glob.compile_matcher(), is_about_names })
    }

    /// `top` is the folder that is searched; both are from the root.
    pub(crate) fn has(&self, path: &Path, top: &Path) -> bool {
        if self.is_about_names {
            return path.file_name().is_some_and(|name| self.matcher.is_match(name));
        }
        let from_top = path.strip_prefix(top).unwrap_or(path);
        self.matcher.is_match(path) || self.matcher.is_match(from_top)
    }
}
