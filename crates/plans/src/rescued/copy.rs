//! Copying a file, a symlink or a directory without changing its type.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

use crate::tree::{SparseFile, copy_all};
use crate::{RelPath, Tree, TreeError};

/// The maximum depth of a copied directory. The longest possible system path has about two thousand names.
const DEPTH: usize = 2048;

#[derive(Debug)]
pub(crate) enum Source {
    At(PathBuf),
    Open(File),
}

impl Source {
    /// Copies it to a free path. It is on disk when this returns.
    pub(super) fn copy_to(self, to: &Path) -> io::Result<()> {
        match self {
            Self::At(from) => copy(&from, to, DEPTH),
            Self::Open(file) => copy_file(file, to),
        }
    }
}

fn copy(from: &Path, to: &Path, depth: usize) -> io::Result<()> {
    let about = fs::symlink_metadata(from)?;
    let kind = about.file_type();
    if kind.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if kind.is_file() {
        let mut open = OpenOptions::new();
        open.read(true)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        return copy_file(open.open(from)?, to);
    }
    if kind.is_dir() {
        if depth == 0 {
            return Err(io::Error::other("the directory is nested too deeply"));
        }
        fs::create_dir(to)?;
        for below in fs::read_dir(from)? {
            let name = below?.file_name();
            copy(&from.join(&name), &to.join(&name), depth - 1)?;
        }
        fs::set_permissions(to, fs::Permissions::from_mode(about.mode() & 0o7777))?;
        return File::open(to)?.sync_all();
    }
    let node = if kind.is_fifo() {
        FileType::Fifo
    } else if kind.is_socket() {
        FileType::Socket
    } else {
        // Making a device takes privileges that few users have. It has no content, so only the record is
        // kept.
        return Ok(());
    };
    mknodat(CWD, to, node, Mode::from_raw_mode(about.mode() & 0o777), 0)?;
    Ok(())
}

fn copy_file(mut from: File, to: &Path) -> io::Result<()> {
    let mode = from.metadata()?.mode() & 0o777;
    from.rewind()?;
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to)?;
    let mut sparse = SparseFile::new(&made);
    copy_all(&from, &mut sparse)?;
    sparse.finish()?;
    made.set_permissions(fs::Permissions::from_mode(mode))?;
    made.sync_all()
}

/// Copies a system path into a tree, to a free path. Follows no symlinks.
pub(crate) fn copy_in(from: &Path, tree: &Tree, to: &RelPath) -> Result<(), TreeError> {
    copy_below(from, tree, to, DEPTH)
}

fn copy_below(from: &Path, tree: &Tree, to: &RelPath, depth: usize) -> Result<(), TreeError> {
    let failed = |source: io::Error| TreeError::Source {
        path: to.to_string(),
        source,
    };
    let about = fs::symlink_metadata(from).map_err(failed)?;
    let kind = about.file_type();
    if kind.is_symlink() {
        use std::os::unix::ffi::OsStrExt;
        let target = fs::read_link(from).map_err(failed)?;
        let target = crate::entry::LinkTarget(target.as_os_str().as_bytes().into());
        return tree.symlink(to, &target);
    }
    if kind.is_file() {
        let file = File::open(from).map_err(failed)?;
        let (made, _) = tree.write_new(to, about.mode(), |to| copy_all(&file, to))?;
        return made.sync_all().map_err(failed);
    }
    if !kind.is_dir() || depth == 0 {
        return Err(TreeError::NotAFile { path: to.to_string() });
    }
    tree.make_directory(to)?;
    for below in fs::read_dir(from).map_err(failed)? {
        let name = below.map_err(failed)?.file_name();
        let bad = |_| failed(io::Error::other("a name in it cannot be part of a path"));
        copy_below(&from.join(&name), tree, &to.join(&name).map_err(bad)?, depth - 1)?;
    }
    tree.set_mode(to, about.mode())
}
