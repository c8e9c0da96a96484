//! How the program shows itself, as typed: before or after any command.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};

#[derive(Debug, Default, Args)]
pub(crate) struct Face {
    /// Plain lines, no live tree [env: `LOCUM_PLAIN`, `ACCESSIBLE`]
    #[arg(long, global = true, overrides_with = "plain")]
    pub(crate) plain: bool,
    /// Nothing outside ASCII, but for what agents and people wrote [env: `LOCUM_ASCII`]
    #[arg(long, global = true, overrides_with = "ascii")]
    pub(crate) ascii: bool,
    /// When to colour [env: `NO_COLOR`, `CLICOLOR_FORCE`] [default: auto]
    #[arg(long, global = true, value_enum, value_name = "WHEN", overrides_with = "color")]
    pub(crate) color: Option<When>,
    /// Append what is done to this file, one line each; never what was said [env: `LOCUM_LOG`]
    #[arg(long, global = true, value_name = "FILE", overrides_with = "log")]
    pub(crate) log: Option<PathBuf>,
    /// Tell what is done, and every cause of an error, on standard error; -vv tells more
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// On a terminal that can
    Auto,
    Always,
    Never,
}

impl Face {
    /// What can be read of flags that as a whole make no sense: the complaint about them is to
    /// look as asked for as well.
    pub(crate) fn guessed(typed: &[String]) -> Face {
        let has = |word: &str| typed.iter().any(|typed| typed == word);
        let pairs = typed.iter().zip(typed.iter().skip(1));
        let apart = pairs.filter(|(flag, _)| *flag == "--color").map(|(_, when)| when.as_str());
        let joined = typed.iter().filter_map(|word| word.strip_prefix("--color="));
        let color = joined.chain(apart).find_map(|when| When::from_str(when, false).ok());
        Face { plain: has("--plain"), ascii: has("--ascii"), color, ..Face::default() }
    }
}
