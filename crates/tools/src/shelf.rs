//! Pictures that were shown, kept under names made of their bytes: the journal knows the name, a
//! request to a model takes the bytes from here.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use locum_kernel::Picture;
use locum_runtime::wire::Album;
use sha2::{Digest as _, Sha256};

use crate::own;

const PREFIX: &str = "picture:";

#[derive(Clone, Debug)]
pub struct Shelf {
    folder: PathBuf,
}

impl Shelf {
    #[must_use]
    pub fn new(data: &Path) -> Shelf {
        Shelf { folder: data.join("pictures") }
    }

    /// On disk and synced when this returns: an entry that names it may follow.
    pub fn keep(&self, media_type: &str, bytes: &[u8]) -> io::Result<Picture> {
        let mut name = String::new();
        for byte in Sha256::digest(bytes) {
            let _ = write!(name, "{byte:02x}");
        }
        let place = self.folder.join(&name);
        if !place.exists() {
            // Whoever comes second puts the same bytes in the same place.
            own::replace(&place, bytes)?;
        }
        let handle = format!("{PREFIX}{name}");
        Ok(Picture { handle, media_type: media_type.to_owned() })
    }
}

impl Album for Shelf {
    fn bytes(&self, handle: &str) -> Option<Vec<u8>> {
        let name = handle.strip_prefix(PREFIX)?;
        let is_ours = name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_ours { fs::read(self.folder.join(name)).ok() } else { None }
    }
}
