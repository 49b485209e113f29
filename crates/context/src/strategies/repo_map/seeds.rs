//! Where the walk starts.

use std::collections::BTreeMap;
use std::io;

use super::super::keyword::Wishes;
use super::super::names::{NameIndex, Names, Node};
use super::super::symbols::{candidates, wanted_of};
use crate::path::TreePath;
use crate::query::{Query, TermKind};

/// The most files that a walk starts from, unless the question names them.
const SEEDS_LIMIT: usize = 12;
/// The score of a file that is named like what the question asks for. Defining it scores 10.
const NAMED_LIKE: f64 = 5.0;
/// The score of a file that the question names.
const NAMED: f64 = 20.0;
/// Names of files that are known by the name of their directory.
const BY_DIRECTORY: [&str; 6] = ["mod", "index", "__init__", "main", "lib", "init"];

/// Where the walk starts: at the files that the question is about, or at those that define its names or are named like
/// them. The weights add up to 1.
pub(super) fn seeds<I: NameIndex>(
    names: &Names<'_, I>,
    query: &Query,
    focus: &[TreePath],
) -> io::Result<Vec<(Node, f64)>> {
    let mut seeds: BTreeMap<Node, f64> = BTreeMap::new();
    for node in focus.iter().filter_map(|path| names.node(path)) {
        seeds.insert(node, 1.0);
    }
    if seeds.is_empty() {
        let wanted = wanted_of(query);
        let (found, _) = candidates(names, &wanted, focus, Wishes::of(query))?;
        for candidate in found.iter().take(2 * SEEDS_LIMIT) {
            seeds.insert(candidate.node, candidate.promise);
        }
        for (node, weight) in named_like(names, query) {
            *seeds.entry(node).or_default() += weight;
        }
    }
    let mut seeds: Vec<(Node, f64)> = seeds.into_iter().collect();
    seeds.sort_by(|one, other| {
        let by_weight = other.1.total_cmp(&one.1);
        by_weight.then_with(|| names.path(one.0).cmp(&names.path(other.0)))
    });
    if focus.is_empty() {
        seeds.truncate(SEEDS_LIMIT);
    }
    let sum: f64 = seeds.iter().map(|(_, weight)| weight).sum();
    for (_, weight) in &mut seeds {
        *weight /= sum;
    }
    Ok(seeds)
}

/// Files that a question names, or that are named like something in it.
fn named_like<I: NameIndex>(names: &Names<'_, I>, query: &Query) -> Vec<(Node, f64)> {
    let mut found = Vec::new();
    let mut stems: Vec<&str> = Vec::new();
    for term in &query.terms {
        if term.kind == TermKind::Path {
            let path = TreePath::new(term.place().0).ok();
            let node = path.and_then(|path| names.node(&path));
            found.extend(node.map(|node| (node, NAMED)));
        } else {
            stems.push(&term.text);
        }
    }
    names.each(&mut |node, path| {
        let stem = stem_of_path(path);
        if stems.iter().any(|wanted| same_letters(wanted, stem)) {
            found.push((node, NAMED_LIKE));
        }
    });
    found
}

/// The name that a file is known by: its own without the extension, or that of its directory.
fn stem_of_path(path: &TreePath) -> &str {
    let stem = path.name().split('.').next().unwrap_or_default();
    let directory = path.as_str().rsplit('/').nth(1);
    match directory {
        Some(directory) if BY_DIRECTORY.contains(&stem) => directory,
        _ => stem,
    }
}

/// Whether two names have the same letters, however their words are joined.
fn same_letters(one: &str, other: &str) -> bool {
    let letters = |text: &'_ str| {
        let letters = text.bytes().filter(|byte| !matches!(byte, b'_' | b'-'));
        letters.map(|byte| byte.to_ascii_lowercase()).collect::<Vec<u8>>()
    };
    // Most names differ in their first letter.
    let first = |text: &str| text.bytes().next().map(|byte| byte.to_ascii_lowercase());
    !other.is_empty() && first(one) == first(other) && letters(one) == letters(other)
}
