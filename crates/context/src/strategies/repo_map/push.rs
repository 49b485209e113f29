//! How much weight arrives where.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::super::names::Node;
use super::links::Link;

/// The fraction of the arriving weight that stays at a file; the rest is passed on. The usual value.
const STAYS: f64 = 0.15;
/// The most files that weight is pushed from. Each of them is read; the rest is far from the start.
pub(super) const PUSHES_LIMIT: usize = 32;
/// Weight below this isn't worth pushing.
const LEAST_WEIGHT: f64 = 1e-4;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Through {
    pub(super) weight: f64,
    /// The file that most of it came from, and how much.
    pub(super) most: Option<(Node, f64)>,
    pub(super) sources: usize,
}

/// Pushes weight from file to file, the heaviest first, until the rest is light or the limit is reached. `links`
/// returns the links of a file; `before` orders files of equal weight, so that the answer is deterministic. Returns the
/// weight that arrived at each file by each of its names.
pub(super) fn push<E>(
    seeds: &[(Node, f64)],
    before: impl Fn(Node, Node) -> std::cmp::Ordering,
    mut links: impl FnMut(Node) -> Result<Vec<Link>, E>,
) -> Result<BTreeMap<(Node, Rc<str>), Through>, E> {
    let mut waiting: BTreeMap<Node, f64> = BTreeMap::new();
    for (node, weight) in seeds {
        *waiting.entry(*node).or_default() += weight;
    }
    let mut through: BTreeMap<(Node, Rc<str>), Through> = BTreeMap::new();
    let mut known: BTreeMap<Node, Rc<[Link]>> = BTreeMap::new();
    for _ in 0..PUSHES_LIMIT {
        let heaviest = waiting.iter().max_by(|(one, weight), (other, other_weight)| {
            let by_weight = weight.total_cmp(other_weight);
            by_weight.then_with(|| before(**other, **one))
        });
        let Some((node, weight)) = heaviest.map(|(node, weight)| (*node, *weight)) else {
            break;
        };
        if weight < LEAST_WEIGHT {
            break;
        }
        waiting.insert(node, 0.0);
        let links = match known.get(&node) {
            Some(links) => Rc::clone(links),
            None => {
                let found: Rc<[Link]> = links(node)?.into();
                known.insert(node, Rc::clone(&found));
                found
            }
        };
        for link in links.iter() {
            let moved = weight * (1.0 - STAYS) * link.weight;
            *waiting.entry(link.to).or_default() += moved;
            let through = through.entry((link.to, Rc::clone(&link.name))).or_default();
            through.add(node, moved);
        }
    }
    Ok(through)
}

impl Through {
    fn add(&mut self, from: Node, weight: f64) {
        self.weight += weight;
        match &mut self.most {
            Some((most, sum)) if *most == from => *sum += weight,
            Some((_, sum)) if *sum >= weight => self.sources += 1,
            _ => {
                self.sources += 1;
                self.most = Some((from, weight));
            }
        }
    }
}
