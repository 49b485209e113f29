//! The list of segments of an index. Everything else in its directory is garbage.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

const NAME: &str = "manifest.json";
const LIMIT_BYTES: u64 = 1024 * 1024;
/// The format of this version. An index in another format is rebuilt. Changes to the segments, the keys or
/// the outlines are all changes of the format.
const FORMAT: u32 = 1;

#[derive(Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    format: u32,
    /// The root of the tree, for people who look at the file.
    root: String,
    /// The names of segments. If several have a file, the last one counts.
    pub(super) segments: Vec<String>,
}

impl Manifest {
    pub(super) fn new(root: &Path, segments: Vec<String>) -> Self {
        Self {
            format: FORMAT,
            root: root.to_string_lossy().into_owned(),
            segments,
        }
    }

    /// The manifest of a directory, if there is a valid one.
    pub(super) fn read(directory: &Path) -> Option<Self> {
        let path = directory.join(NAME);
        if path.metadata().ok()?.len() > LIMIT_BYTES {
            return None;
        }
        let manifest: Self = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        let is_name = |name: &String| !name.contains('/') && name.ends_with(".segment");
        (manifest.format == FORMAT && manifest.segments.iter().all(is_name)).then_some(manifest)
    }

    /// Replaces the manifest. If the process is killed, either the old or the new one exists.
    pub(super) fn write(&self, directory: &Path) -> io::Result<()> {
        let mut file = tempfile::Builder::new().prefix("new-").tempfile_in(directory)?;
        file.write_all(&serde_json::to_vec_pretty(self)?)?;
        file.as_file().sync_data()?;
        file.persist(directory.join(NAME)).map_err(|error| error.error)?;
        File::open(directory)?.sync_all()
    }

    pub(super) fn sweep(&self, directory: &Path) -> io::Result<()> {
        let named: BTreeSet<&str> = self.segments.iter().map(String::as_str).collect();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name();
            if name
                .to_str()
                .is_none_or(|name| name != NAME && !named.contains(name))
            {
                // Files that can't be removed now are removed the next time.
                drop(fs::remove_file(entry.path()));
            }
        }
        Ok(())
    }
}
