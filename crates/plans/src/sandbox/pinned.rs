//! Keeping the objects that a private git directory borrows.
//!
//! A sandbox reads objects from the user's repository. If you delete a branch there and run `git gc --prune=now`, git
//! inside the sandbox would point at missing objects. So as long as the sandbox exists, refs below `refs/tidelock` in
//! the user's repository point to the same objects as its branches, and git keeps them.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::contract::SandboxSpec;
use super::repository::{Repository, as_commit, is_absence};

/// The directory of our refs, below `refs`.
pub(super) const REFS: &str = "tidelock";
/// The file beside a sandbox that records which repository has its refs.
const NOTE: &str = "pinned";
/// The maximum number of refs for one sandbox: HEAD first, then branches, then the rest. Each is a small file, and is
/// made whenever a plan is opened.
const MOST: usize = 256;

/// Makes refs for everything that the copied branches and tags in a private git directory point to.
pub(super) fn pin(repository: &Repository, private: &Path, spec: &SandboxSpec) -> io::Result<()> {
    let mut tips: Vec<String> = repository.head()?.into_iter().collect();
    let mut others = loose(&private.join("refs"))?;
    others.extend(packed(&private.join("packed-refs"))?);
    others.sort_by_key(|(name, _)| !name.starts_with("refs/heads/"));
    tips.extend(others.into_iter().map(|(_, tip)| tip));
    let mut seen = HashSet::new();
    tips.retain(|tip| seen.insert(tip.clone()));
    if tips.is_empty() {
        return Ok(());
    }
    // If a daemon dies before the plan is in the log, nothing else knows about them.
    fs::write(
        spec.directory.join(NOTE),
        repository.common.as_os_str().as_bytes(),
    )?;
    let directory = repository.common.join(name_of(&spec.directory));
    fs::create_dir_all(&directory)?;
    for (number, tip) in tips.iter().take(MOST).enumerate() {
        fs::write(directory.join(number.to_string()), format!("{tip}\n"))?;
    }
    Ok(())
}

/// Removes the refs of a sandbox. If the repository is gone, there are none.
pub(super) fn unpin(spec: &SandboxSpec) -> io::Result<()> {
    let Some(repository) = Repository::of(&spec.workspace)? else {
        return Ok(());
    };
    unpin_in(&repository.common, &name_of(&spec.directory))
}

/// Removes the refs of all sandboxes in the directory of a plan that doesn't exist.
pub(crate) fn unpin_stray(of_plan: &Path) -> io::Result<()> {
    for sandbox in fs::read_dir(of_plan)? {
        let sandbox = sandbox?.path();
        match fs::read(sandbox.join(NOTE)) {
            Ok(common) => unpin_in(Path::new(OsStr::from_bytes(&common)), &name_of(&sandbox))?,
            Err(error) if is_absence(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn unpin_in(common: &Path, name: &Path) -> io::Result<()> {
    let mut directory = common.join(name);
    match fs::remove_dir_all(&directory) {
        Err(error) if !is_absence(&error) => return Err(error),
        _ => {}
    }
    // The plan may have another sandbox, and other plans have theirs; then the directories stay. Git itself
    // removes those that it has emptied by packing.
    while directory.pop() && !directory.ends_with("refs") {
        match fs::remove_dir(&directory) {
            Err(error) if !is_absence(&error) => break,
            _ => {}
        }
    }
    unpack(common, name)
}

/// The refs of a sandbox, named after its directory: the plan's directory, and a number in it.
fn name_of(sandbox: &Path) -> PathBuf {
    let number = sandbox.file_name().unwrap_or_default();
    let plan = sandbox.parent().and_then(Path::file_name).unwrap_or_default();
    Path::new("refs").join(REFS).join(plan).join(number)
}

/// Removes refs from the file that `git gc` packs them into, as git does it: holding the lock file allows replacing the
/// file.
fn unpack(common: &Path, name: &Path) -> io::Result<()> {
    let file = common.join("packed-refs");
    let ours = format!(" {}/", name.display());
    let has_ours = |text: &[u8]| text.windows(ours.len()).any(|part| part == ours.as_bytes());
    let is_packed = match fs::read(&file) {
        Ok(text) => has_ours(&text),
        Err(error) if is_absence(&error) => false,
        Err(error) => return Err(error),
    };
    if !is_packed {
        return Ok(());
    }
    let lock = common.join("packed-refs.lock");
    let mut new = fs::OpenOptions::new().write(true).create_new(true).open(&lock)?;
    let replaced = fs::read(&file).and_then(|text| {
        let (mut kept, mut drops) = (Vec::new(), false);
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            // A peeled tag is in the line after it.
            drops = has_ours(line) || drops && line.starts_with(b"^");
            if !drops {
                kept.extend_from_slice(line);
            }
        }
        new.write_all(&kept)?;
        new.sync_all()?;
        fs::rename(&lock, &file)
    });
    if replaced.is_err() {
        fs::remove_file(&lock)?;
    }
    replaced
}

/// The loose refs and their targets. Symbolic refs get theirs from the ref they name.
fn loose(directory: &Path) -> io::Result<Vec<(String, String)>> {
    let (mut found, mut pending) = (Vec::new(), vec![(directory.to_owned(), "refs".to_owned())]);
    while let Some((directory, name)) = pending.pop() {
        for item in fs::read_dir(&directory)? {
            let item = item?;
            let name = format!("{name}/{}", item.file_name().to_string_lossy());
            if item.file_type()?.is_dir() {
                pending.push((item.path(), name));
            } else if let Some(tip) = as_commit(&fs::read(item.path())?) {
                found.push((name, tip));
            }
        }
    }
    Ok(found)
}

/// The packed refs, except ours.
fn packed(file: &Path) -> io::Result<Vec<(String, String)>> {
    let text = match fs::read(file) {
        Ok(text) => text,
        Err(error) if is_absence(&error) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let text = String::from_utf8_lossy(&text);
    let refs = text.lines().filter_map(|line| {
        let (tip, name) = line.split_once(' ')?;
        let is_ours = name.starts_with("refs/tidelock/");
        let tip = as_commit(tip.as_bytes()).filter(|_| !is_ours)?;
        Some((name.to_owned(), tip))
    });
    Ok(refs.collect())
}
