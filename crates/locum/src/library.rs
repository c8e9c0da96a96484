//! The definitions there are, from everywhere this program looks. What comes with a folder is among
//! them only if the folder is trusted.

use std::env;
use std::path::{self, Path, PathBuf};

use locum_definitions::{Found, Library, Places};
use locum_tools::Place;

use crate::config::Config;
use crate::trust::Trust;

/// Folders of recipes, in the order they are looked at.
const PATHS: [&str; 2] = ["LOCUM_RECIPE_PATH", "GOOSE_RECIPE_PATH"];

/// The folders that are looked in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shelves {
    /// Where the work is, trusted or not.
    pub(crate) workspace: PathBuf,
    is_trusted: bool,
    home: Option<PathBuf>,
    config_dir: Option<PathBuf>,
    extra: Vec<PathBuf>,
}

impl Shelves {
    pub(crate) fn of(place: &Place, settings: &Config, trust: &Trust) -> Shelves {
        Shelves { is_trusted: trust.root().is_some(), ..Shelves::trusting(place, settings) }
    }

    /// As if the workspace were trusted: where things are is no secret of its.
    pub(crate) fn trusting(place: &Place, settings: &Config) -> Shelves {
        Shelves {
            workspace: place.workspace.clone(),
            is_trusted: true,
            home: place.home.clone(),
            config_dir: place.config.as_deref().and_then(Path::parent).map(Path::to_owned),
            extra: recipe_folders(settings),
        }
    }

    /// The same with another workspace.
    pub(crate) fn around(self, workspace: &Path) -> Shelves {
        Shelves { workspace: workspace.to_owned(), ..self }
    }

    pub(crate) fn places(&self) -> Places<'_> {
        Places {
            workspace: Some(self.workspace.as_path()).filter(|_| self.is_trusted),
            home: self.home.as_deref(),
            config_dir: self.config_dir.as_deref(),
            extra: &self.extra,
        }
    }

    pub(crate) fn scan(&self) -> Library {
        Library::scan(&self.places())
    }
}

pub(crate) fn library(place: &Place, settings: &Config, trust: &Trust) -> Library {
    Shelves::of(place, settings, trust).scan()
}

/// Folders of recipes that the person named.
pub(crate) fn recipe_folders(settings: &Config) -> Vec<PathBuf> {
    let listed = PATHS.into_iter().filter_map(env::var_os);
    let listed: Vec<PathBuf> =
        listed.flat_map(|list| env::split_paths(&list).collect::<Vec<_>>()).collect();
    let named = listed.into_iter().filter(|folder| !folder.as_os_str().is_empty());
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in named.chain(settings.recipes.iter().cloned()) {
        let folder = path::absolute(&folder).unwrap_or(folder);
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

/// Whether it can be used as things are: some skills wait until they are named in `enable`.
pub(crate) fn is_on(found: &Found, settings: &Config) -> bool {
    !found.opt_in || settings.enable.iter().any(|name| name.eq_ignore_ascii_case(&found.name))
}
