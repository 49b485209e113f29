//! A piece of a file that may be shown, on its way through the steps.

use std::sync::Arc;

use super::source::Source;
use super::widen::is_type;
use crate::answer::{Depth, ScorePart};
use crate::lines::Lines;

/// A piece of a file that may be shown. Those of one file don't overlap.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) source: Arc<Source>,
    pub(super) lines: Lines,
    pub(super) shape: Shape,
    /// The most of it that should be shown.
    pub(super) depth: Depth,
    pub(super) hits: Vec<Lines>,
    /// Which strategies found it, in order, each once.
    pub(super) found: Vec<UnitSource>,
    /// How well it fits, and why; see `score.rs`.
    pub(super) score: f64,
    pub(super) parts: Vec<ScorePart>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Shape {
    /// A definition: its index in the outline.
    Definition(usize),
    Window,
    File,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct UnitSource {
    /// The index of the strategy among those that ran.
    pub(super) strategy: usize,
    /// The rank in that strategy's list, from 1.
    pub(super) rank: usize,
    pub(super) why: String,
}

impl Unit {
    /// Its kind and name: `function parse_config`, `method Config.parse`.
    pub(super) fn symbol(&self) -> Option<String> {
        let Shape::Definition(place) = self.shape else {
            return None;
        };
        let definition = self.source.definition(place)?;
        let (kind, name) = (definition.kind.name(), &definition.name);
        let parent = definition.parent;
        let owner = parent.and_then(|parent| self.source.definition(parent as usize));
        Some(match owner.filter(|owner| is_type(owner)) {
            Some(owner) => format!("{kind} {}.{name}", owner.name),
            None => format!("{kind} {name}"),
        })
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Form {
    pub(super) depth: Depth,
    pub(super) lines: Lines,
    pub(super) shown: Shown,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Shown {
    Lines(Vec<Lines>),
    Names(String),
}

impl Form {
    /// The text, without the end of the last line.
    pub(super) fn text(&self, source: &Source) -> String {
        match &self.shown {
            Shown::Names(names) => names.clone(),
            Shown::Lines(lines) => {
                let mut text = String::new();
                lines.iter().for_each(|lines| source.add(*lines, &mut text));
                text.pop();
                text
            }
        }
    }
}

/// A unit in the form in which it is shown.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) unit: Unit,
    pub(super) form: Form,
    pub(super) text: String,
    /// As a model gets it: the line that says where it is from, the text, and an empty line.
    pub(super) rendered: String,
    pub(super) tokens: usize,
}
