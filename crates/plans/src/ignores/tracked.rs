//! The files that git tracks, which are never ignored.

use std::io;

use bstr::ByteSlice;
use gix_index::File;
use rustix::io::Errno;

use super::git_settings::git;
use super::repository::Repository;
use crate::stat_cache::StatKey;

pub(super) enum Tracked {
    Index(Box<File>),
    /// A sorted list from git, for an index that we can't read.
    Listed(Vec<Vec<u8>>),
}

/// The stat data of a repository's index; `None` if there is no index.
pub(super) fn index_key(repository: &Repository) -> io::Result<Option<StatKey>> {
    match rustix::fs::stat(repository.git_directory.join("index")) {
        Ok(stat) => Ok(Some(StatKey::of(&stat))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Tracked {
    /// Reads the index of a repository. A repository without one tracks nothing.
    pub(super) fn read(repository: &Repository) -> io::Result<Self> {
        let index = repository.git_directory.join("index");
        if !index.exists() {
            return Ok(Self::Listed(Vec::new()));
        }
        // Checking the hash at the end of the file isn't worth the time here: git checks it, and writes the
        // file by rename.
        let options = gix_index::decode::Options::default();
        if let Ok(file) = File::at(&index, gix_index::hash::Kind::Sha1, true, options) {
            return Ok(Self::Index(Box::new(file)));
        }
        let listed = git(&repository.root, &["ls-files", "--cached", "-z"]).ok_or_else(|| {
            io::Error::other(format!("{} cannot be read, by us or by git", index.display()))
        })?;
        let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        let mut paths: Vec<Vec<u8>> = paths.map(<[u8]>::to_vec).collect();
        paths.sort();
        Ok(Self::Listed(paths))
    }

    pub(super) fn contains(&self, path: &[u8]) -> bool {
        match self {
            Self::Index(file) => file.entry_by_path(path.as_bstr()).is_some(),
            Self::Listed(paths) => paths.binary_search_by(|other| other.as_slice().cmp(path)).is_ok(),
        }
    }

    pub(super) fn has_below(&self, directory: &[u8]) -> bool {
        let begin = [directory, b"/"].concat();
        match self {
            Self::Index(file) => file.prefixed_entries(begin.as_bstr()).is_some(),
            Self::Listed(paths) => {
                let first = paths.partition_point(|path| *path < begin);
                paths.get(first).is_some_and(|path| path.starts_with(&begin))
            }
        }
    }
}
