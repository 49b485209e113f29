//! What `.gitattributes` says about merging a file: `merge=union`, `-merge`, `merge=binary`.
//!
//! As in git, a later line overrides an earlier one, a deeper directory's file overrides one above it, and the
//! repository's `info/attributes` overrides them all. The user's own merge driver programs are not run: such a file is
//! merged as text.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bstr::ByteSlice;
use gix_ignore::glob::pattern::Case;
use gix_ignore::glob::{Pattern, wildmatch};

use crate::{MergeDriver, RelPath, Tree};

/// The largest attributes file that is read; git doesn't read larger ones either.
const FILE_LIMIT_BYTES: u64 = 100 * 1024 * 1024;

/// The attributes of a tree. It caches what it has read, so use one per merge.
pub(crate) struct Attributes<'a> {
    tree: &'a Tree,
    /// From the repository, outside the tree.
    info: Vec<Rule>,
    /// Guards the cached rules of each directory; `None` is the root.
    known: Mutex<HashMap<Option<RelPath>, Arc<Vec<Rule>>>>,
}

/// A line that sets the `merge` attribute.
#[derive(Debug)]
struct Rule {
    pattern: Pattern,
    driver: MergeDriver,
}

impl<'a> Attributes<'a> {
    /// Reads the attributes of a tree, and of its repository if the git directory is at the tree's root.
    pub(crate) fn of(tree: &'a Tree) -> Self {
        let info = tree.path().join(".git/info/attributes");
        Self {
            tree,
            info: std::fs::read(info).map_or_else(|_| Vec::new(), |text| rules(&text)),
            known: Mutex::default(), // Guarded as described above.
        }
    }

    pub(crate) fn merge_driver(&self, path: &RelPath) -> MergeDriver {
        if let Some(driver) = last_match(&self.info, path.as_bytes()) {
            return driver;
        }
        let mut directory = path.parent();
        loop {
            let start = directory.as_ref().map_or(0, |above| above.as_bytes().len() + 1);
            let rules = self.rules_in(directory.as_ref());
            if let Some(driver) = last_match(&rules, &path.as_bytes()[start..]) {
                return driver;
            }
            match directory {
                Some(above) => directory = above.parent(),
                None => return MergeDriver::Text,
            }
        }
    }

    fn rules_in(&self, directory: Option<&RelPath>) -> Arc<Vec<Rule>> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(&directory.cloned()) {
            return Arc::clone(found);
        }
        let name = Path::new(".gitattributes");
        let file = match directory {
            Some(directory) => directory.join(name.as_os_str()),
            None => RelPath::from_path(name),
        };
        // Anything that isn't a readable file has no rules, as in git.
        let text = file
            .ok()
            .and_then(|file| self.tree.read(&file, FILE_LIMIT_BYTES).ok());
        let found = Arc::new(text.map_or_else(Vec::new, |text| rules(&text)));
        known().insert(directory.cloned(), Arc::clone(&found));
        found
    }
}

/// The driver from the last line that matches; the path is relative to the file's directory.
fn last_match(rules: &[Rule], path: &[u8]) -> Option<MergeDriver> {
    let name = path.rfind_byte(b'/').map(|slash| slash + 1);
    let matching = rules.iter().rev().find(|rule| {
        rule.pattern.matches_repo_relative_path(
            path.as_bstr(),
            name,
            Some(false),
            Case::Sensitive,
            wildmatch::Mode::NO_MATCH_SLASH_LITERAL,
        )
    });
    matching.map(|rule| rule.driver)
}

/// The lines of a file that set the `merge` attribute. `!merge` unsets it, which means text.
fn rules(text: &[u8]) -> Vec<Rule> {
    let rule = |line: &[u8]| {
        let line = line.trim_ascii();
        // A user-defined macro, or a comment.
        if line.is_empty() || line.starts_with(b"#") || line.starts_with(b"[attr]") {
            return None;
        }
        let (pattern, rest) = split_pattern(line)?;
        let said = |word: &[u8]| match word {
            b"merge" | b"!merge" | b"-binary" | b"!binary" => Some(MergeDriver::Text),
            b"-merge" | b"binary" => Some(MergeDriver::Binary),
            word => match word.strip_prefix(b"merge=")? {
                b"union" => Some(MergeDriver::Union),
                b"binary" => Some(MergeDriver::Binary),
                _ => Some(MergeDriver::Text),
            },
        };
        let words = rest.split(|byte| byte.is_ascii_whitespace());
        Some(Rule {
            driver: words.filter_map(said).next_back()?,
            pattern: Pattern::from_bytes_without_negation(&pattern)?,
        })
    };
    text.split(|byte| *byte == b'\n').filter_map(rule).collect()
}

/// Splits a line into its pattern, which may be quoted, and the rest.
fn split_pattern(line: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let Some(quoted) = line.strip_prefix(b"\"") else {
        let end = line.iter().position(u8::is_ascii_whitespace)?;
        return Some((line[..end].to_vec(), &line[end..]));
    };
    let (mut pattern, mut bytes) = (Vec::new(), quoted.iter().enumerate());
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => return Some((pattern, &quoted[at + 1..])),
            b'\\' => pattern.push(*bytes.next()?.1),
            byte => pattern.push(*byte),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_and_the_deepest_line_counts() {
        use MergeDriver::{Binary, Text, Union};
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        std::fs::create_dir_all(root.join("deep/er")).unwrap();
        std::fs::create_dir_all(root.join(".git/info")).unwrap();
        std::fs::write(
            root.join(".gitattributes"),
            "# merge=union\n*.log merge=union\n*.lock -merge text\n*.png binary\n/top.txt merge=union\n\
             \"a b\" merge=union\n*.own merge=mine\nkept.log !merge\ndeep/*.txt merge=union\n",
        )
        .unwrap();
        std::fs::write(root.join("deep/.gitattributes"), "*.log -merge\nback.log merge\n").unwrap();
        std::fs::write(root.join(".git/info/attributes"), "*.info merge=union\n").unwrap();
        let tree = Tree::open(root).unwrap();
        let attributes = Attributes::of(&tree);
        for (path, expected) in [
            ("x.log", Union),
            ("kept.log", Text),
            ("other/x.log", Union),
            ("deep/x.log", Binary),
            ("deep/er/x.log", Binary),
            ("deep/back.log", Text),
            ("x.lock", Binary),
            ("x.png", Binary),
            ("top.txt", Union),
            ("deep/top.txt", Union),
            ("deep/er/top.txt", Text),
            ("a b", Union),
            ("x.own", Text),
            ("deep/x.info", Union),
            ("plain", Text),
        ] {
            assert_eq!(
                attributes.merge_driver(&path.parse().unwrap()),
                expected,
                "{path}"
            );
        }
    }
}
