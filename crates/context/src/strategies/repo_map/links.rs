//! The links of a file, and their weights.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::rc::Rc;

use super::super::names::{NameIndex, Names, Node};
use crate::index::Key;
use crate::outline::{Language, Outline, SymbolKind};
use crate::path::TreePath;
use crate::query::parts_of;

/// The most names of a file that are followed, those with the highest weight.
const NAMES_LIMIT: usize = 128;
/// A name that more files define means nothing for any of them.
const DEFINERS_LIMIT: usize = 24;
/// If only a few of them are near, it is relevant to those. Beyond this many, they aren't examined.
const LOOK_LIMIT: usize = 256;
/// The weight of a name that only files elsewhere in the tree define. Often it belongs to a library, and is theirs by
/// coincidence.
const ELSEWHERE: f64 = 0.3;
const NAME_LEAST_BYTES: usize = 3;

/// A link from one file to another, by a name.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Link {
    pub(super) to: Node,
    pub(super) name: Rc<str>,
    /// The weights of all links of a file add up to 1.
    pub(super) weight: f64,
}

/// A cache of which files define which name. The same names are requested again and again.
#[derive(Default)]
pub(super) struct Definers<'names> {
    known: HashMap<Rc<str>, Rc<[Definer<'names>]>>,
}

struct Definer<'names> {
    node: Node,
    directory: &'names str,
    family: Language,
}

impl<'names> Definers<'names> {
    fn of<I: NameIndex>(
        &mut self,
        names: &'names Names<'_, I>,
        name: &str,
    ) -> io::Result<(Rc<str>, Rc<[Definer<'names>]>)> {
        if let Some((name, nodes)) = self.known.get_key_value(name) {
            return Ok((Rc::clone(name), Rc::clone(nodes)));
        }
        let key = Key::defined(name);
        let nodes = match names.count(key)? {
            0 => Vec::new(),
            count if count > LOOK_LIMIT => Vec::new(),
            _ => names.with(key)?,
        };
        let nodes = nodes.into_iter().filter_map(|node| {
            let path = names.path(node)?;
            Some(Definer {
                node,
                directory: directory(path),
                family: family(Language::of(path, "")?),
            })
        });
        let (name, nodes): (Rc<str>, Rc<[_]>) = (name.into(), nodes.collect());
        self.known.insert(Rc::clone(&name), Rc::clone(&nodes));
        Ok((name, nodes))
    }

    /// The links of a file, in the order of the names.
    pub(super) fn links<I: NameIndex>(
        &mut self,
        names: &'names Names<'_, I>,
        from: Node,
        outline: &Outline,
    ) -> io::Result<Vec<Link>> {
        let Some(path) = names.path(from) else {
            return Ok(Vec::new());
        };
        let family = family(outline.language);
        let mut links = Vec::new();
        let mut total = 0.0;
        for (name, weight) in telling(outline) {
            let (name, nodes) = self.of(names, name)?;
            let near = near(directory(path), family, &nodes, from);
            let sum: u32 = near.iter().map(|(_, share)| share).sum();
            let elsewhere = path.as_str().contains('/') && near.iter().all(|(_, share)| *share == 1);
            let weight = if elsewhere { weight * ELSEWHERE } else { weight };
            // The fewer files define it, the more it means for them.
            let weight = weight / (near.len() as f64).sqrt().max(1.0);
            if sum > 0 {
                total += weight;
            }
            links.extend(near.into_iter().map(|(to, share)| Link {
                to,
                name: Rc::clone(&name),
                weight: weight * f64::from(share) / f64::from(sum),
            }));
        }
        for link in &mut links {
            link.weight /= total;
        }
        Ok(links)
    }
}

/// The names of a file that are worth following, in their order, and their weights.
fn telling(outline: &Outline) -> Vec<(&str, f64)> {
    let is_own = |kind| kind != SymbolKind::Implementation;
    let own: BTreeSet<&str> = outline
        .definitions
        .iter()
        .filter(|definition| is_own(definition.kind))
        .map(|definition| definition.name.as_str())
        .collect();
    let others = outline.references.iter();
    let others = others.filter(|reference| !own.contains(reference.name.as_str()));
    let mut telling: Vec<(&str, f64)> = others
        .filter_map(|reference| {
            let weight = weight_of(&reference.name)?;
            Some((
                reference.name.as_str(),
                weight * f64::from(reference.count).sqrt(),
            ))
        })
        .collect();
    if telling.len() > NAMES_LIMIT {
        telling.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(other.0)));
        telling.truncate(NAMES_LIMIT);
        telling.sort_by(|one, other| one.0.cmp(other.0));
    }
    telling
}

/// The weight of a name. Long and specific ones weigh most.
fn weight_of(name: &str) -> Option<f64> {
    if name.len() < NAME_LEAST_BYTES {
        return None;
    }
    let mut weight = 1.0;
    if name.starts_with('_') {
        weight *= 0.1;
    }
    if name.len() <= 4 {
        weight *= 0.3;
    }
    if name.len() >= 8 && parts_of(name).len() > 1 {
        weight *= 3.0;
    }
    Some(weight)
}

/// The files that a name in a file may refer to: those in the same language, with a higher weight the nearer they are.
fn near(from_directory: &str, family: Language, definers: &[Definer<'_>], from: Node) -> Vec<(Node, u32)> {
    let others = definers
        .iter()
        .filter(|other| other.node != from && other.family == family);
    let mut found: Vec<(Node, u32)> = others
        .map(|other| (other.node, shared_directories(from_directory, other.directory)))
        .collect();
    if found.len() > DEFINERS_LIMIT {
        let nearest = found.iter().map(|(_, shared)| *shared).max().unwrap_or(0);
        found.retain(|(_, shared)| *shared == nearest);
        if nearest == 0 || found.len() > DEFINERS_LIMIT {
            return Vec::new();
        }
    }
    for (_, share) in &mut found {
        *share = (1 + *share).pow(2);
    }
    found
}

/// The directory of a file; empty for the root.
fn directory(path: &TreePath) -> &str {
    path.as_str().rsplit_once('/').map_or("", |(above, _)| above)
}

fn shared_directories(one: &str, other: &str) -> u32 {
    if one.is_empty() || other.is_empty() {
        return 0;
    }
    let pairs = one.split('/').zip(other.split('/'));
    let shared = pairs.take_while(|(one, other)| one == other).count();
    u32::try_from(shared).unwrap_or(u32::MAX).min(1000)
}

fn family(language: Language) -> Language {
    match language {
        Language::TypeScript | Language::Tsx => Language::JavaScript,
        Language::Cpp => Language::C,
        other => other,
    }
}
