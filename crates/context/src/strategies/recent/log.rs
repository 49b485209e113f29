//! Parses git's output about commits. Pure; accepts any bytes.

use std::collections::HashMap;

use super::history::{Commit, History};
use crate::path::TreePath;

/// The marker that git writes before the subject of a commit. No file name begins like this.
pub(super) const MARK: char = '\u{1}';
/// A commit that touches more files has little to do with each.
const FILES_LIMIT: usize = 200;
/// The most characters of a subject.
const SUBJECT_LIMIT_CHARS: usize = 200;

/// Reads commits: for each the marker, its subject, and the names of files, each followed by a NUL. A truncated last
/// commit is dropped.
pub(super) fn read(bytes: &[u8], is_whole: Whole) -> History {
    let mut history = History::default();
    let mut numbers: HashMap<TreePath, u32> = HashMap::new();
    let mut pieces: Vec<&[u8]> = bytes.split(|byte| *byte == 0).collect();
    // After the last NUL there is nothing, or a truncated name.
    pieces.pop();
    for piece in pieces {
        let text = String::from_utf8_lossy(piece);
        if let Some(subject) = text.strip_prefix(MARK) {
            let subject = subject.chars().take(SUBJECT_LIMIT_CHARS).collect();
            history.commits.push(Commit::new(subject));
            continue;
        }
        // The first name of a commit is on its own line.
        let name = text.strip_prefix('\n').unwrap_or(&text);
        let (Some(commit), Ok(path)) = (history.commits.last_mut(), TreePath::new(name)) else {
            continue;
        };
        if commit.files.len() > FILES_LIMIT {
            continue;
        }
        let next = u32::try_from(history.files.len()).unwrap_or(u32::MAX);
        let number = *numbers.entry(path.clone()).or_insert(next);
        if number == next {
            history.files.push(path);
        }
        commit.files.push(number);
    }
    if is_whole != Whole::Yes {
        history.commits.pop();
    }
    for commit in &mut history.commits {
        if commit.files.len() > FILES_LIMIT {
            commit.files.clear();
        }
    }
    history
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Whole {
    Yes,
    /// As much as is kept, but not all.
    Enough,
    /// There was no time for the rest.
    No,
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert, proptest};

    use super::*;

    fn history(files: &[&str], commits: &[(&str, &[u32])]) -> History {
        History {
            files: files.iter().map(|path| TreePath::new(path).unwrap()).collect(),
            commits: commits
                .iter()
                .map(|(subject, files)| Commit {
                    files: files.to_vec(),
                    ..Commit::new((*subject).to_owned())
                })
                .collect(),
        }
    }

    #[test]
    fn commits_are_read_with_their_files() {
        let text = b"\x01one: more\0\na.rs\0d/b.rs\0\x01nothing\0\x01two\0\nd/b.rs\0/bad\0c\0";
        let files = ["a.rs", "d/b.rs", "c"];
        let whole = history(
            &files,
            &[("one: more", &[0, 1]), ("nothing", &[]), ("two", &[1, 2])],
        );
        assert_eq!(read(text, Whole::Yes), whole);
        let cut = history(&["a.rs", "d/b.rs"], &[("one: more", &[0, 1]), ("nothing", &[])]);
        assert_eq!(read(&text[..text.len() - 8], Whole::No), cut);
        assert_eq!(read(b"", Whole::Yes), History::default());
        assert_eq!(read(b"a.rs\0", Whole::Yes), History::default());
    }

    #[test]
    fn a_commit_of_everything_touches_nothing() {
        let names = |count: usize| (0..count).map(|n| format!("f{n}\0")).collect::<String>();
        for (count, kept) in [
            (FILES_LIMIT, FILES_LIMIT),
            (FILES_LIMIT + 1, 0),
            (FILES_LIMIT + 50, 0),
        ] {
            let text = format!("\u{1}all\0\n{}", names(count));
            assert_eq!(
                read(text.as_bytes(), Whole::Yes).commits[0].files.len(),
                kept,
                "{count}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in vec(any::<u8>(), 0..300)) {
            let history = read(&bytes, Whole::Yes);
            let known = u32::try_from(history.files.len()).unwrap();
            prop_assert!(history.commits.iter().flat_map(|commit| &commit.files).all(|file| *file < known));
        }
    }
}
