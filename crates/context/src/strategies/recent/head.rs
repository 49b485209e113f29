//! The commit that is checked out in a tree. It is read from files, because every question needs it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// How much is read of a file with a single line.
const LINE_LIMIT_BYTES: u64 = 64 * 1024;
/// How much is read of the table of packed branches. In a repository with a larger one, only loose branches are found.
const PACKED_LIMIT_BYTES: u64 = 64 * 1024 * 1024;

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Head {
    None,
    /// A repository without a commit.
    Empty,
    At(String),
    /// Its branches aren't stored as files, so git has to be asked.
    Unknown,
}

/// The commit that is checked out in a tree. It blocks briefly.
pub(super) fn head(root: &Path) -> Head {
    let Some(own) = root.ancestors().find_map(git_directory) else {
        return Head::None;
    };
    let common = match line(&own.join("commondir")) {
        Some(common) => own.join(common),
        None => own.clone(),
    };
    if common.join("reftable").is_dir() {
        return Head::Unknown;
    }
    let Some(head) = line(&own.join("HEAD")) else {
        return Head::None;
    };
    let Some(name) = head.strip_prefix("ref:").map(str::trim) else {
        return commit(&head).map_or(Head::Unknown, Head::At);
    };
    if name.split('/').any(|part| part == "..") || name.starts_with('/') {
        return Head::Unknown;
    }
    let loose = [&own, &common].map(|directory| line(&directory.join(name)));
    let named = loose.into_iter().flatten().find_map(|text| commit(&text));
    match named.or_else(|| packed(&common, name)) {
        Some(commit) => Head::At(commit),
        None => Head::Empty,
    }
}

/// The git directory of a work tree, if the directory is one.
fn git_directory(directory: &Path) -> Option<PathBuf> {
    let dot_git = directory.join(".git");
    let git_directory = if dot_git.is_dir() {
        dot_git
    } else {
        directory.join(line(&dot_git)?.strip_prefix("gitdir:")?.trim())
    };
    git_directory.join("HEAD").is_file().then_some(git_directory)
}

fn packed(common: &Path, name: &str) -> Option<String> {
    let table = read(&common.join("packed-refs"), PACKED_LIMIT_BYTES).ok()?;
    let table = String::from_utf8_lossy(&table);
    let mut rows = table.lines().filter_map(|line| line.split_once(' '));
    rows.find(|(_, row)| *row == name)
        .and_then(|(text, _)| commit(text))
}

fn commit(text: &str) -> Option<String> {
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    (matches!(text.len(), 40 | 64) && is_hex).then(|| text.to_owned())
}

fn line(file: &Path) -> Option<String> {
    let content = read(file, LINE_LIMIT_BYTES).ok()?;
    let text = String::from_utf8(content).ok()?;
    Some(text.lines().next().unwrap_or_default().trim().to_owned())
}

fn read(file: &Path, limit: u64) -> io::Result<Vec<u8>> {
    // Opening anything but a regular file could block the caller.
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut content = Vec::new();
    File::open(file)?.take(limit).read_to_end(&mut content)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_head_is_found_wherever_git_keeps_it() {
        let (one, two) = ("1".repeat(40), "2".repeat(40));
        let branch = "ref: refs/heads/main\n";
        let packed =
            format!("# pack-refs with: peeled\n{two} refs/heads/mai\n{one} refs/heads/main\n^{two}\n");
        let cases: &[(&[(&str, &str)], Head)] = &[
            (&[], Head::None),
            (&[(".git/x", "")], Head::None),
            (&[(".git/HEAD", branch)], Head::Empty),
            (&[(".git/HEAD", "rubbish")], Head::Unknown),
            (&[(".git/HEAD", "ref: ../../x")], Head::Unknown),
            (&[(".git/HEAD", branch), (".git/reftable/x", "")], Head::Unknown),
            (&[(".git/HEAD", &one)], Head::At(one.clone())),
            (
                &[(".git/HEAD", branch), (".git/packed-refs", &packed)],
                Head::At(one.clone()),
            ),
            (
                &[
                    (".git/HEAD", branch),
                    (".git/packed-refs", &packed),
                    (".git/refs/heads/main", &two),
                ],
                Head::At(two.clone()),
            ),
            (
                &[
                    (".git", "gitdir: main.git/worktrees/a\n"),
                    ("main.git/worktrees/a/HEAD", branch),
                    ("main.git/worktrees/a/commondir", "../..\n"),
                    ("main.git/refs/heads/main", &two),
                ],
                Head::At(two.clone()),
            ),
            (&[("../.git/HEAD", &two)], Head::At(two.clone())),
        ];
        for (files, expected) in cases {
            let directory = tempfile::tempdir().unwrap();
            let root = directory.path().join("root");
            fs::create_dir(&root).unwrap();
            for (path, content) in *files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, content).unwrap();
            }
            assert_eq!(head(&root), *expected, "{files:?}");
        }
    }
}
