//! Questions with known answers, made from the sources of a crate.
//!
//! Nothing is picked by hand: every item that is defined once and has a comment is a task, and a hash selects some of
//! them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

/// A comment with fewer words says too little to search by.
const FEWEST_WORDS: usize = 5;
/// The keywords before the name of a public item.
const DEFINERS: &[&str] = &["fn", "struct", "enum", "trait"];
/// What may come between `pub` and those.
const QUALIFIERS: &[&str] = &["async", "const", "unsafe"];

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Task {
    pub(crate) query: String,
    /// Where the answer is, relative to the root of the tree.
    pub(crate) files: Vec<String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// The first sentence of the comment, without the name.
    Sentence,
    Name,
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct Defined {
    name: String,
    file: String,
    sentence: String,
}

pub(crate) fn tasks_of(root: &Path, kind: Kind, most: usize) -> Result<Vec<Task>> {
    let mut found: BTreeMap<String, Vec<Defined>> = BTreeMap::new();
    for file in sources(root)? {
        let text = fs::read_to_string(root.join(&file)).unwrap_or_default();
        for defined in defined_in(&file.to_string_lossy(), &text) {
            found.entry(defined.name.clone()).or_default().push(defined);
        }
    }
    let once = found.into_values().filter(|all| all.len() == 1).flatten();
    let mut tasks: Vec<(u64, Task)> = once
        .filter_map(|defined| {
            let chance = hash(&format!("{kind:?} {} {}", defined.file, defined.name));
            let query = query_of(&defined, kind, chance)?;
            let files = vec![defined.file];
            Some((chance, Task { query, files }))
        })
        .collect();
    tasks.sort_by_key(|(chance, _)| *chance);
    tasks.truncate(most);
    Ok(tasks.into_iter().map(|(_, task)| task).collect())
}

/// The question about a definition, if its comment says enough.
fn query_of(defined: &Defined, kind: Kind, chance: u64) -> Option<String> {
    let words = words_of(&defined.name);
    match kind {
        Kind::Sentence => {
            let query = without_name(&defined.sentence, &defined.name);
            (query.split_whitespace().count() >= FEWEST_WORDS).then_some(query)
        }
        // A name of one word is an ordinary word.
        Kind::Name if words.len() < 2 => None,
        Kind::Name if chance.is_multiple_of(2) => Some(words.join(" ")),
        Kind::Name => Some(defined.name.clone()),
    }
}

/// The Rust files below `src`, in order.
fn sources(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut directories = vec![root.join("src")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path.strip_prefix(root)?.to_owned());
            }
        }
    }
    files.sort();
    Ok(files)
}

fn defined_in(file: &str, text: &str) -> Vec<Defined> {
    let mut found = Vec::new();
    let mut comment: Vec<&str> = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(said) = line.strip_prefix("///") {
            comment.push(said.trim());
        } else if line.starts_with("#[") && !comment.is_empty() {
            // An attribute between the comment and its item.
        } else {
            if let Some(name) = public_name(line)
                && !comment.is_empty()
            {
                found.push(Defined {
                    name: name.to_owned(),
                    file: file.to_owned(),
                    sentence: first_sentence(&comment),
                });
            }
            comment.clear();
        }
    }
    found
}

fn public_name(line: &str) -> Option<&str> {
    let mut words = line.strip_prefix("pub ")?.split_whitespace();
    let definer = words.find(|word| !QUALIFIERS.contains(word))?;
    let name = words.next()?;
    let end = name.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let name = &name[..end.unwrap_or(name.len())];
    (DEFINERS.contains(&definer) && !name.is_empty()).then_some(name)
}

fn first_sentence(comment: &[&str]) -> String {
    let lines: Vec<&str> = comment
        .iter()
        .copied()
        .take_while(|line| !line.is_empty())
        .collect();
    let text = lines.join(" ");
    let end = text.find(". ").map_or(text.len(), |end| end + 1);
    text[..end].to_owned()
}

/// A sentence with all occurrences of a name removed.
fn without_name(sentence: &str, name: &str) -> String {
    let (sentence, name) = (sentence.replace(['`', '[', ']'], " "), name.to_lowercase());
    let is_other = |word: &&str| !word.to_lowercase().contains(&name);
    let words: Vec<&str> = sentence.split_whitespace().filter(is_other).collect();
    words.join(" ")
}

fn words_of(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut is_new = true;
    for letter in name.chars() {
        if letter == '_' {
            is_new = true;
            continue;
        }
        if is_new || letter.is_uppercase() {
            words.push(String::new());
        }
        is_new = false;
        if let Some(word) = words.last_mut() {
            word.extend(letter.to_lowercase());
        }
    }
    words
}

pub(super) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_public_and_has_a_comment_is_found() {
        let text = "\
/// Reads a [`Config`] from a file of the disk. And more.
///
/// Details.
#[must_use]
pub async fn read_config(path: &Path) {}
pub fn silent() {}
/// Private.
fn hidden() {}
    /// A method.
    pub fn new<T>() {}
";
        let found = defined_in("a.rs", text);
        let shown: Vec<String> = found
            .iter()
            .map(|one| format!("{}: {}", one.name, one.sentence))
            .collect();
        assert_eq!(
            shown,
            [
                "read_config: Reads a [`Config`] from a file of the disk.",
                "new: A method."
            ]
        );
        let asked = |kind, chance| query_of(&found[0], kind, chance);
        assert_eq!(
            asked(Kind::Sentence, 0).as_deref(),
            Some("Reads a Config from a file of the disk.")
        );
        assert_eq!(asked(Kind::Name, 0).as_deref(), Some("read config"));
        assert_eq!(asked(Kind::Name, 1).as_deref(), Some("read_config"));
        assert_eq!(query_of(&found[1], Kind::Sentence, 0), None);
    }

    #[test]
    fn the_name_is_not_in_the_question() {
        assert_eq!(
            without_name("The `Slot` of [`Slots`] is here", "Slot"),
            "The of is here"
        );
        assert_eq!(words_of("HttpServer"), ["http", "server"]);
    }
}
