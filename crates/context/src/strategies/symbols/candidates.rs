//! The files worth examining.

use std::collections::HashMap;
use std::io;

use super::super::keyword::{Wishes, factor};
use super::super::names::{NameIndex, Names, Node};
use super::wanted::{Wanted, WantedName, WantedWord};
use crate::index::Key;
use crate::path::TreePath;

/// The most outlines that are read for one question.
const FILES_LIMIT: usize = 256;
/// The most files that are also compared by path.
const COMPARED_LIMIT: usize = 4 * FILES_LIMIT;
/// A word in the names of more files than this means nothing, and its list isn't read.
const COMMON_LIMIT: usize = 20_000;
/// The score of a file that defines a name, one with all its words, one that may begin with it, and one with a word.
const DEFINES: f64 = 10.0;
const HAS_WORDS: f64 = 4.0;
const MAY_BEGIN: f64 = 2.0;
const HAS_WORD: f64 = 3.0;
/// A file of this size is half as promising.
const LARGE_BYTES: f64 = 128.0 * 1024.0;
/// The factor for a file that the question is about, and for one next to it.
const IN_FOCUS: f64 = 1.3;
const NEAR_FOCUS: f64 = 1.1;

/// The rarity of the wanted names and words: from 1, in one file, to nearly 0, in all of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::strategies) struct Rarity {
    pub(super) names: Vec<f64>,
    pub(super) words: Vec<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub(in crate::strategies) struct Candidate {
    pub(in crate::strategies) node: Node,
    pub(in crate::strategies) promise: f64,
    /// The weight of hits in it, from its path alone.
    pub(in crate::strategies) factor: f64,
}

pub(in crate::strategies) fn candidates<I: NameIndex>(
    names: &Names<'_, I>,
    wanted: &Wanted,
    focus: &[TreePath],
    wishes: Wishes,
) -> io::Result<(Vec<Candidate>, Rarity)> {
    let mut promises: HashMap<Node, f64> = HashMap::new();
    let mut rarity = Rarity::default();
    for name in &wanted.names {
        let rare = rarity_of(names.files(), names.count(Key::defined(&name.name))?);
        promise_of_name(names, name, rare, &mut promises)?;
        rarity.names.push(rare);
    }
    for word in &wanted.words {
        let mut files = 0;
        for form in &word.forms {
            files += names.count(Key::part(form))?;
        }
        let rare = rarity_of(names.files(), files);
        promise_of_word(names, word, rare, &mut promises)?;
        rarity.words.push(rare);
    }
    let mut found: Vec<(Node, f64)> = promises.into_iter().collect();
    // By the path as well, so that the same files are cut off each time, whatever their numbers are.
    let order = |one: &(Node, f64), other: &(Node, f64)| {
        let by_promise = other.1.total_cmp(&one.1);
        by_promise.then_with(|| names.path(one.0).cmp(&names.path(other.0)))
    };
    if found.len() > COMPARED_LIMIT {
        found.select_nth_unstable_by(COMPARED_LIMIT, order);
        found.truncate(COMPARED_LIMIT);
    }
    let mut compared: Vec<(Candidate, &TreePath)> = found
        .into_iter()
        .filter_map(|(node, promise)| {
            let path = names.path(node)?;
            let factor = factor(path, wishes) * of_focus(path, focus);
            let candidate = Candidate {
                node,
                promise: promise * factor * of_size(names.bytes(node)),
                factor,
            };
            Some((candidate, path))
        })
        .collect();
    compared.sort_by(|(one, path), (other, other_path)| {
        let by_promise = other.promise.total_cmp(&one.promise);
        by_promise.then_with(|| path.cmp(other_path))
    });
    compared.truncate(FILES_LIMIT);
    let found = compared.into_iter().map(|(candidate, _)| candidate).collect();
    Ok((found, rarity))
}

/// The factor for a file's size. A large one has all words somewhere, but seldom in one name.
fn of_size(bytes: u64) -> f64 {
    1.0 / (1.0 + bytes as f64 / LARGE_BYTES)
}

fn rarity_of(of_files: usize, files: usize) -> f64 {
    let (of_files, files) = (of_files.max(1) as f64, files.max(1) as f64);
    ((1.0 + of_files / files).ln() / (1.0 + of_files).ln()).min(1.0)
}

fn promise_of_name<I: NameIndex>(
    names: &Names<'_, I>,
    name: &WantedName,
    rare: f64,
    promises: &mut HashMap<Node, f64>,
) -> io::Result<()> {
    let defining = names.with(Key::defined(&name.name))?;
    for node in &defining {
        *promises.entry(*node).or_default() += DEFINES * (0.5 + 0.5 * rare);
    }
    let with_words = with_all(names, &name.parts)?;
    for node in &with_words {
        *promises.entry(*node).or_default() += HAS_WORDS * (0.5 + 0.5 * rare);
    }
    if with_words.is_empty() && name.parts.len() > 1 {
        // The question has only the beginning of the name.
        let first = &name.parts[..name.parts.len() - 1];
        for node in with_all(names, first)? {
            *promises.entry(node).or_default() += MAY_BEGIN;
        }
    }
    Ok(())
}

fn with_all<I: NameIndex>(names: &Names<'_, I>, words: &[String]) -> io::Result<Vec<Node>> {
    let mut counted = Vec::new();
    for word in words {
        counted.push((names.count(Key::part(word))?, word));
    }
    // The rarest first, so that the intersection is small from the beginning.
    counted.sort_unstable();
    counted.dedup();
    let mut left: Option<Vec<Node>> = None;
    for (count, word) in counted {
        match &mut left {
            Some(nodes) if nodes.is_empty() => break,
            _ if count > COMMON_LIMIT => {}
            None => left = Some(names.with(Key::part(word))?),
            Some(nodes) => {
                let mut others = names.with(Key::part(word))?;
                others.sort_unstable();
                nodes.retain(|node| others.binary_search(node).is_ok());
            }
        }
    }
    Ok(left.unwrap_or_default())
}

fn promise_of_word<I: NameIndex>(
    names: &Names<'_, I>,
    word: &WantedWord,
    rare: f64,
    promises: &mut HashMap<Node, f64>,
) -> io::Result<()> {
    let mut nodes = Vec::new();
    for form in &word.forms {
        if names.count(Key::part(form))? <= COMMON_LIMIT {
            nodes.extend(names.with(Key::part(form))?);
        }
    }
    nodes.sort_unstable();
    nodes.dedup();
    for node in nodes {
        *promises.entry(node).or_default() += HAS_WORD * rare;
    }
    Ok(())
}

fn of_focus(path: &TreePath, focus: &[TreePath]) -> f64 {
    let directory = |path: &TreePath| path.as_str().rsplit_once('/').map(|(above, _)| above.to_owned());
    if focus.contains(path) {
        IN_FOCUS
    } else if focus.iter().any(|other| directory(other) == directory(path)) {
        NEAR_FOCUS
    } else {
        1.0
    }
}
