//! The id of a home: created at the first start, and the same in every later boot.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use protocol::HomeId;

/// The name of the id file in the state directory.
pub(crate) const FILE_NAME: &str = "home_id";

/// An id has 31 characters; a longer file wasn't written by a daemon.
const FILE_LIMIT_BYTES: u64 = 256;

/// Reads the id, or creates it if it's missing. Only the owner of the home may call this.
pub(super) fn load_or_create(path: &Path) -> io::Result<HomeId> {
    match File::open(path) {
        Ok(file) => read(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let id = HomeId::generate();
            replace(path, id).map(|()| id)
        }
        Err(error) => Err(error),
    }
}

/// Whether a state directory has this id.
pub(super) fn is_at(state: &Path, id: HomeId) -> bool {
    let found = File::open(state.join(FILE_NAME)).and_then(read);
    found.is_ok_and(|found| found == id)
}

fn read(file: File) -> io::Result<HomeId> {
    let mut text = String::new();
    file.take(FILE_LIMIT_BYTES).read_to_string(&mut text)?;
    text.trim()
        .parse()
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Writes an id to a temporary file and renames it, so that readers never see a partial id. It is on disk before
/// anything uses it.
pub(super) fn replace(path: &Path, id: HomeId) -> io::Result<()> {
    let unfinished = path.with_extension("new");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&unfinished)?;
    file.write_all(format!("{id}\n").as_bytes())?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    if let Some(directory) = path.parent() {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_made_once_and_anything_else_in_its_place_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("home_id");
        let made = load_or_create(&path).unwrap();
        assert_eq!(load_or_create(&path).unwrap(), made);
        let names: Vec<_> = fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["home_id"]);

        for content in ["", "home_", "boot_01JCZ8T6V8Y3N5K2M4Q7R9S1TX", "home_x\nhome_y"] {
            fs::write(&path, content).unwrap();
            let error = load_or_create(&path).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{content}");
            assert_eq!(fs::read_to_string(&path).unwrap(), content, "it was touched");
        }
    }
}
