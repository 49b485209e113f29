//! The steps of the strategy, in order.

use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use kernel::{Deadline, Scope};

use super::super::keyword::{Time, Wishes, factor};
use super::super::names::{NameIndex, Names, Node};
use super::links::Definers;
use super::push::{Through, push};
use super::seeds::seeds;
use crate::answer::Depth;
use crate::outline::{Outline, SymbolKind};
use crate::path::TreePath;
use crate::strategy::{Ask, Hit, StrategyError};

/// The most names that are looked up in the files that define them, and the most such files.
const NAMES_LIMIT: usize = 256;
const FILES_LIMIT: usize = 64;
/// The most definitions of one name in one file.
const SAME_NAME_LIMIT: usize = 3;
/// The total weight of the outline of a file in focus, relative to the weight of the file.
const OWN_SHARE: f64 = 0.3;
/// The percentage of the time after which the search stops with what it has.
const PUSH_PERCENT: u32 = 70;

pub(in crate::strategies) fn look<I: NameIndex>(
    ask: &Ask,
    index: Option<&I>,
    scope: &Scope,
    deadline: Deadline,
) -> Result<Vec<Hit>, StrategyError> {
    let not_applicable = |why: &str| Err(StrategyError::NotApplicable(why.to_owned()));
    let Some(index) = index else {
        return not_applicable("there is no index yet");
    };
    let time = Time::new(scope, &deadline);
    let names = Names::indexed(index, &ask.searched, time);
    let failed = |error: io::Error| StrategyError::Failed(error.to_string());
    let seeds = seeds(&names, &ask.query, &ask.focus).map_err(failed)?;
    if seeds.is_empty() {
        return not_applicable("no file to start from");
    }
    let mut map = Map {
        names,
        outlines: BTreeMap::new(),
        wishes: Wishes::of(&ask.query),
    };
    let mut definers = Definers::default();
    let order = |one, other| map.names.path(one).cmp(&map.names.path(other));
    let mut outlines = BTreeMap::new();
    let through = push(&seeds, order, |node| {
        if scope.is_cancelled() {
            return Err(StrategyError::Cancelled);
        }
        if time.is_used(PUSH_PERCENT) {
            return Ok(Vec::new());
        }
        let Some(outline) = map.names.outline(node).map_err(failed)? else {
            return Ok(Vec::new());
        };
        let links = definers.links(&map.names, node, &outline).map_err(failed)?;
        outlines.insert(node, outline);
        Ok(links)
    })?;
    map.outlines = outlines;
    let mut hits = map.linked(through).map_err(failed)?;
    if !ask.focus.is_empty() {
        hits.extend(map.own(&seeds).map_err(failed)?);
    }
    if scope.is_cancelled() {
        return Err(StrategyError::Cancelled);
    }
    Ok(best(hits, ask.most_hits))
}

struct Map<'from, I> {
    names: Names<'from, I>,
    outlines: BTreeMap<Node, Arc<Outline>>,
    wishes: Wishes,
}

impl<I: NameIndex> Map<'_, I> {
    fn outline(&mut self, node: Node) -> io::Result<Option<Arc<Outline>>> {
        if let Some(outline) = self.outlines.get(&node) {
            return Ok(Some(Arc::clone(outline)));
        }
        let outline = self.names.outline(node)?;
        if let Some(outline) = &outline {
            self.outlines.insert(node, Arc::clone(outline));
        }
        Ok(outline)
    }

    fn linked(&mut self, through: BTreeMap<(Node, Rc<str>), Through>) -> io::Result<Vec<Hit>> {
        let mut through: Vec<_> = through.into_iter().collect();
        through.sort_by(|((node, name), came), ((other, other_name), other_came)| {
            let by_weight = other_came.weight.total_cmp(&came.weight);
            by_weight
                .then_with(|| self.names.path(*node).cmp(&self.names.path(*other)))
                .then_with(|| name.cmp(other_name))
        });
        through.truncate(NAMES_LIMIT);
        let mut files: Vec<Node> = Vec::new();
        let mut hits = Vec::new();
        for ((node, name), came) in through {
            if !files.contains(&node) {
                if files.len() == FILES_LIMIT {
                    continue;
                }
                files.push(node);
            }
            let (Some(outline), Some(path)) = (self.outline(node)?, self.names.path(node).cloned()) else {
                continue;
            };
            let same = outline.definitions.iter().filter(|definition| {
                *definition.name == *name && definition.kind != SymbolKind::Implementation
            });
            let same: Vec<_> = same.take(SAME_NAME_LIMIT).collect();
            let factor = factor(&path, self.wishes);
            hits.extend(same.iter().map(|definition| Hit {
                path: path.clone(),
                lines: Some(definition.lines),
                score: came.weight * factor / same.len() as f64,
                why: self.why(&came),
                depth: Depth::Signature,
            }));
        }
        Ok(hits)
    }

    fn why(&self, came: &Through) -> String {
        let most = came.most.and_then(|(node, _)| self.names.path(node));
        let most = most.map_or("", TreePath::as_str);
        match came.sources {
            0 | 1 => format!("used by {most}"),
            sources => format!("used by {most} and {} more", sources - 1),
        }
    }

    fn own(&mut self, seeds: &[(Node, f64)]) -> io::Result<Vec<Hit>> {
        let mut hits = Vec::new();
        for (node, weight) in seeds {
            let (Some(outline), Some(path)) = (self.outline(*node)?, self.names.path(*node).cloned()) else {
                continue;
            };
            let shown = outline
                .definitions
                .iter()
                .filter(|one| one.kind != SymbolKind::Value);
            let shown: Vec<_> = shown.collect();
            hits.extend(shown.iter().map(|definition| Hit {
                path: path.clone(),
                lines: Some(definition.lines),
                score: OWN_SHARE * weight / shown.len() as f64,
                why: "its file is in focus".to_owned(),
                depth: Depth::Signature,
            }));
        }
        Ok(hits)
    }
}

fn best(mut hits: Vec<Hit>, most: usize) -> Vec<Hit> {
    hits.sort_by(|one, other| {
        let by_place = one
            .path
            .cmp(&other.path)
            .then_with(|| one.lines.cmp(&other.lines));
        by_place.then_with(|| other.score.total_cmp(&one.score))
    });
    hits.dedup_by(|later, first| {
        let same = later.path == first.path && later.lines == first.lines;
        if same {
            first.score += later.score;
        }
        same
    });
    hits.sort_by(|one, other| {
        let by_score = other.score.total_cmp(&one.score);
        by_score
            .then_with(|| one.path.cmp(&other.path))
            .then_with(|| one.lines.cmp(&other.lines))
    });
    hits.truncate(most);
    hits
}
