//! What a search in the order of the paths would have shown: every line with a word of the question and the lines around
//! it, file after file, until the budget is used up. It is what `rg -i --sort path -C 2 'word|word'` prints.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use context::Tokenizer;

/// Lines before and after a match.
const AROUND: usize = 2;
/// A shorter word is in every line.
const SHORTEST_WORD: usize = 3;

/// The files that would have been shown.
pub(super) fn files(
    root: &Path,
    query: &str,
    budget_tokens: usize,
    tokenizer: &Tokenizer,
) -> Result<BTreeSet<String>> {
    let words: BTreeSet<String> = query
        .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter(|word| word.len() >= SHORTEST_WORD)
        .map(str::to_lowercase)
        .collect();
    let mut shown = BTreeSet::new();
    let mut left = budget_tokens;
    for file in all_files(root)? {
        let Ok(text) = std::fs::read_to_string(root.join(&file)) else {
            continue;
        };
        let found = excerpt(&text, &words);
        if found.is_empty() {
            continue;
        }
        let name = file.to_string_lossy().into_owned();
        for line in std::iter::once(name.as_str()).chain(found) {
            let tokens = tokenizer.count(line) + 1;
            if tokens > left {
                return Ok(shown);
            }
            left -= tokens;
            shown.insert(name.clone());
        }
    }
    Ok(shown)
}

/// The lines with one of the words, and those around them.
fn excerpt<'a>(text: &'a str, words: &BTreeSet<String>) -> Vec<&'a str> {
    let lines: Vec<&str> = text.lines().collect();
    let mut wanted = BTreeSet::new();
    for (number, line) in lines.iter().enumerate() {
        let small = line.to_lowercase();
        if words.iter().any(|word| small.contains(word)) {
            wanted.extend(number.saturating_sub(AROUND)..=(number + AROUND).min(lines.len() - 1));
        }
    }
    wanted.into_iter().map(|number| lines[number]).collect()
}

/// All files that are not hidden, in the order of their paths.
fn all_files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            if entry.file_type()?.is_dir() {
                directories.push(entry.path());
            } else {
                files.push(entry.path().strip_prefix(root)?.to_owned());
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::excerpt;

    #[test]
    fn lines_around_a_match_are_shown_once() {
        let words = ["two".to_owned(), "six".to_owned()].into();
        let lines = "one\nTwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n";
        assert_eq!(
            excerpt(lines, &words).join(" "),
            "one Two three four five six seven eight"
        );
        assert!(excerpt("", &words).is_empty());
    }
}
