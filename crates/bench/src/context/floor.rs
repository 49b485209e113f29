//! What people and agents do without us: they search for the words of the question with `rg`, and read its output
//! until they have enough. Once in its own order, by path, and once starting with the files that contain most of the
//! words.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use context::Tokenizer;

/// Lines before and after a match.
const AROUND: &str = "2";
/// A shorter word is on every line.
const SHORTEST_WORD: usize = 3;
/// More files than any budget has room for.
const MOST_FILES: usize = 50;
/// Words that no one would search for.
const STOP_WORDS: &[&str] = &[
    "about", "after", "all", "also", "and", "any", "are", "because", "been", "before", "being", "both",
    "but", "can", "could", "did", "does", "doing", "each", "for", "from", "had", "has", "have", "her",
    "here", "his", "how", "if", "into", "its", "itself", "just", "may", "might", "more", "most", "must",
    "not", "now", "off", "only", "other", "our", "out", "over", "own", "same", "she", "should", "some",
    "such", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those",
    "through", "too", "under", "until", "very", "was", "were", "what", "when", "where", "which", "while",
    "who", "whom", "why", "will", "with", "would", "you", "your",
];

/// The order in which the files are read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Order {
    Path,
    Words,
}

pub(super) fn files(
    ripgrep: &Path,
    root: &Path,
    query: &str,
    order: Order,
    budget: (usize, &Tokenizer),
) -> Result<BTreeSet<String>> {
    let words = words_of(query);
    if words.is_empty() {
        return Ok(BTreeSet::new());
    }
    let paths = match order {
        Order::Path => vec![PathBuf::from(".")],
        Order::Words => best(ripgrep, root, &words)?,
    };
    if paths.is_empty() {
        return Ok(BTreeSet::new());
    }
    let mut arguments = vec![
        "--heading",
        "--with-filename",
        "--line-number",
        "--context",
        AROUND,
    ];
    arguments.extend(match order {
        Order::Path => ["--sort", "path"],
        // `rg` searches files in the order they are given.
        Order::Words => ["--threads", "1"],
    });
    let printed = search(ripgrep, root, &arguments, words.iter(), &paths)?;
    Ok(packed(&printed, budget))
}

fn words_of(query: &str) -> BTreeSet<String> {
    query
        .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .map(str::to_lowercase)
        .filter(|word| word.len() >= SHORTEST_WORD && !STOP_WORDS.contains(&word.as_str()))
        .collect()
}

/// The files that contain most of the words, by path if they contain equally many.
fn best(ripgrep: &Path, root: &Path, words: &BTreeSet<String>) -> Result<Vec<PathBuf>> {
    let mut held: BTreeMap<String, usize> = BTreeMap::new();
    for word in words {
        let found = search(
            ripgrep,
            root,
            &["--files-with-matches"],
            [word],
            &[PathBuf::from(".")],
        )?;
        for file in found.lines() {
            *held.entry(file.to_owned()).or_default() += 1;
        }
    }
    let mut ranked: Vec<(String, usize)> = held.into_iter().collect();
    ranked.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    ranked.truncate(MOST_FILES);
    Ok(ranked.into_iter().map(|(file, _)| file.into()).collect())
}

/// What `rg` prints for some words.
fn search<'words>(
    ripgrep: &Path,
    root: &Path,
    arguments: &[&str],
    words: impl IntoIterator<Item = &'words String>,
    paths: &[PathBuf],
) -> Result<String> {
    let mut command = Command::new(ripgrep);
    command
        .current_dir(root)
        .args(["--ignore-case", "--fixed-strings", "--color", "never"])
        .args(arguments);
    for word in words {
        command.args(["-e", word]);
    }
    let output = command.arg("--").args(paths).stdin(Stdio::null()).output();
    let output = output.context("ripgrep does not run")?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The files that are at least partly printed before the budget is used up.
fn packed(printed: &str, (budget_tokens, tokenizer): (usize, &Tokenizer)) -> BTreeSet<String> {
    let mut shown = BTreeSet::new();
    let mut left = budget_tokens;
    let mut file = "";
    for line in printed.lines() {
        let tokens = tokenizer.count(line) + 1;
        if tokens > left {
            break;
        }
        left -= tokens;
        let is_text = line.starts_with(|first: char| first.is_ascii_digit()) || line == "--";
        if line.is_empty() {
            file = "";
        } else if file.is_empty() {
            file = line.strip_prefix("./").unwrap_or(line);
        } else if is_text {
            shown.insert(file.to_owned());
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use context::{Tokenizer, TokenizerName};

    use super::{packed, words_of};

    #[test]
    fn a_search_is_for_words_that_say_something() {
        let words: Vec<String> = words_of("Where is the retry_policy of THE Client, and is it ok?")
            .into_iter()
            .collect();
        assert_eq!(words, ["client", "retry_policy"]);
    }

    #[test]
    fn files_are_read_until_the_budget_is_used_up() {
        let tokenizer = Tokenizer::load(TokenizerName::O200k).unwrap();
        let printed = "./a.rs\n1-one\n2:two\n--\n9:two\n\n./b/c.rs\n3:two\n";
        let all = tokenizer.count(printed) + 10;
        let first = tokenizer.count("./a.rs") + tokenizer.count("1-one") + 2;
        for (budget, expected) in [(all, vec!["a.rs", "b/c.rs"]), (first, vec!["a.rs"]), (2, vec![])] {
            let shown: Vec<String> = packed(printed, (budget, tokenizer)).into_iter().collect();
            assert_eq!(shown, expected, "{budget}");
        }
    }
}
