//! User configuration: the user's own file, and the `.lsp.json` of a repository.
//!
//! Both are read in the same two formats and become patches over the built-in definitions, the user's first. A
//! repository's file can name a program to run, so it counts only if the user has trusted exactly this content. A
//! [`ConfigNote`] reports what can't be used, and everything else still works.

mod error;
mod file;
mod flat;
mod merge;
mod own;
mod patch;
mod trust;

pub use error::{ConfigError, ConfigNote};
pub use trust::{ConfigHash, Trust};

pub(crate) use file::{Read, read_repository, read_user};
pub(crate) use merge::{Configuration, Layer, Merged};

use own::OwnFormat;

pub(crate) fn parse(path: &std::path::Path, text: &str) -> Result<Configuration, ConfigError> {
    if flat::is_flat(path, text)? {
        return flat::parse(path, text);
    }
    Ok(error::typed::<OwnFormat>(path, text)?.into())
}
