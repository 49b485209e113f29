//! Where rescued content is kept.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use protocol::RescuedId;

use super::copy::Source;
use super::{Rescued, RescuedList, RescuedRecord};

/// The name of the content in the directory of a piece.
const CONTENT: &str = "content";
const RECORD: &str = "record.json";
/// The suffix of an unfinished piece.
const PART: &str = ".part";

/// Where rescued content is kept. Everything here blocks.
#[derive(Clone, Debug)]
pub(crate) struct Shelf {
    directory: PathBuf,
}

/// The result of keeping a piece.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Shelved {
    New(Rescued),
    /// It was here already: an earlier attempt was interrupted after keeping it.
    Known(Rescued),
}

impl Shelved {
    pub(crate) fn into_rescued(self) -> Rescued {
        let (Self::New(rescued) | Self::Known(rescued)) = self;
        rescued
    }
}

impl Shelf {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Everything that is kept, newest first.
    pub(crate) fn list(&self) -> io::Result<RescuedList> {
        let mut list = RescuedList::default();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let name = entry.file_name();
            // Others are unfinished, or from a version that kept files without a record.
            let Some(Ok(id)) = name.to_str().map(str::parse::<RescuedId>) else {
                continue;
            };
            match self.read(id) {
                Ok(Some(rescued)) => list.rescued.push(rescued),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(path = %entry.path().display(), %error, "a record of rescued content cannot be read");
                    list.unreadable.push(entry.path());
                }
            }
        }
        list.rescued.sort_by_key(|rescued| std::cmp::Reverse(rescued.id));
        list.unreadable.sort();
        Ok(list)
    }

    /// One piece; `None` if it isn't here.
    pub(crate) fn read(&self, id: RescuedId) -> io::Result<Option<Rescued>> {
        let place = self.directory.join(id.to_string());
        let record: RescuedRecord = match fs::read(place.join(RECORD)) {
            Ok(text) => serde_json::from_slice(&text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !place.exists() => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(Rescued {
            id,
            record,
            at: place.join(CONTENT),
        }))
    }

    /// Keeps a piece. When this returns, it is complete and on disk, or not here at all. `known` is what was
    /// here when the caller began.
    pub(crate) fn put(
        &self,
        known: &[Rescued],
        record: RescuedRecord,
        source: Source,
    ) -> io::Result<Shelved> {
        let is_known = |known: &&Rescued| {
            let known = &known.record;
            (&known.landing, &known.name, &known.entry) == (&record.landing, &record.name, &record.entry)
        };
        if let Some(known) = known.iter().find(is_known) {
            return Ok(Shelved::Known(known.clone()));
        }
        let id = RescuedId::generate();
        let part = self.directory.join(format!("{id}{PART}"));
        DirBuilder::new().mode(0o700).create(&part)?;
        let made = fill(&part, &record, source)
            .and_then(|()| fs::rename(&part, self.directory.join(id.to_string())))
            .and_then(|()| File::open(&self.directory)?.sync_all());
        if let Err(error) = made {
            if let Err(left) = remove(&part) {
                tracing::warn!(path = %part.display(), error = %left, "an unfinished copy stays behind");
            }
            return Err(error);
        }
        Ok(Shelved::New(Rescued {
            id,
            at: self.directory.join(id.to_string()).join(CONTENT),
            record,
        }))
    }

    /// Removes a piece for good. The record is removed last, so that a piece is still listed after an interrupted
    /// removal.
    pub(crate) fn remove(&self, id: RescuedId) -> io::Result<()> {
        let place = self.directory.join(id.to_string());
        remove(&place.join(CONTENT))?;
        remove(&place)
    }

    /// Removes copies that were never finished. Their originals are still there.
    pub(crate) fn sweep(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().ends_with(PART) {
                remove(&entry.path())?;
            }
        }
        Ok(())
    }
}

fn fill(place: &Path, record: &RescuedRecord, source: Source) -> io::Result<()> {
    source.copy_to(&place.join(CONTENT))?;
    let mut file = File::create_new(place.join(RECORD))?;
    file.write_all(&serde_json::to_vec(record)?)?;
    file.sync_all()?;
    File::open(place)?.sync_all()
}

fn remove(path: &Path) -> io::Result<()> {
    let is_directory = match fs::symlink_metadata(path) {
        Ok(about) => about.is_dir(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    match is_directory {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt, symlink};

    use protocol::WorkspaceId;

    use super::*;
    use crate::plan::Attempt;
    use crate::rescued::{RescueReason, RescuedKind};

    fn record(name: &str, kind: RescuedKind) -> RescuedRecord {
        RescuedRecord {
            workspace: WorkspaceId::generate(),
            root: "/w".to_owned(),
            what: Attempt::Apply,
            landing: "landing_1".to_owned(),
            name: name.to_owned(),
            plans: Vec::new(),
            path: "a/b".parse().unwrap(),
            kind,
            entry: None,
            why: RescueReason::NotPutBack,
            since: eventlog::UnixMs(1),
        }
    }

    #[test]
    fn everything_is_kept_as_what_it_is_listed_once_and_removed() {
        let directory = tempfile::tempdir().unwrap();
        let (from, kept) = (directory.path().join("from"), directory.path().join("kept"));
        for place in [&from.join("tree/deep"), &kept] {
            fs::create_dir_all(place).unwrap();
        }
        fs::write(from.join("file"), "text").unwrap();
        symlink("nowhere", from.join("link")).unwrap();
        symlink("../file", from.join("tree/deep/link")).unwrap();
        fs::write(from.join("tree/deep/file"), "deep").unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            from.join("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        let shelf = Shelf::new(kept.clone());
        let mut ids = Vec::new();
        for (name, kind) in [
            ("file", RescuedKind::File),
            ("link", RescuedKind::Symlink),
            ("tree", RescuedKind::Directory),
            ("fifo", RescuedKind::Special),
        ] {
            let record = record(name, kind);
            let Shelved::New(rescued) = shelf
                .put(&[], record.clone(), Source::At(from.join(name)))
                .unwrap()
            else {
                panic!("it is new");
            };
            // Again, as after a kill.
            let known = shelf.list().unwrap().rescued;
            let again = shelf.put(&known, record, Source::At(from.join(name))).unwrap();
            assert_eq!(again, Shelved::Known(rescued.clone()));
            ids.push(rescued);
        }
        assert_eq!(fs::read_to_string(&ids[0].at).unwrap(), "text");
        assert_eq!(fs::read_link(&ids[1].at).unwrap(), Path::new("nowhere"));
        assert_eq!(fs::read_to_string(ids[2].at.join("deep/file")).unwrap(), "deep");
        assert_eq!(
            fs::read_link(ids[2].at.join("deep/link")).unwrap(),
            Path::new("../file")
        );
        assert!(fs::symlink_metadata(&ids[3].at).unwrap().file_type().is_fifo());
        fs::create_dir(kept.join("rescued_x.part")).unwrap();
        shelf.sweep().unwrap();
        assert!(!kept.join("rescued_x.part").exists());
        let damaged = kept.join(ids[3].id.to_string());
        fs::write(damaged.join(RECORD), "{").unwrap();
        let list = shelf.list().unwrap();
        assert_eq!((list.rescued.len(), list.unreadable), (3, vec![damaged]));
        for rescued in &ids {
            shelf.remove(rescued.id).unwrap();
        }
        assert_eq!(shelf.list().unwrap(), RescuedList::default());
        assert_eq!(shelf.read(ids[0].id).unwrap(), None);
    }
}
