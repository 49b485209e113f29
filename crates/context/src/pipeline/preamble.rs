//! Preamble: the line that tells where a piece is from.

use std::fmt;

use super::unit::{Form, Unit};
use crate::answer::Depth;

pub(super) trait Preamble: fmt::Debug + Send + Sync {
    /// A piece as a model gets it. It begins with the line that tells where it is from, and ends with an empty
    /// line.
    fn render(&self, unit: &Unit, form: &Form, text: &str) -> String;
}

/// A heading: `## src/config.rs:12-40 (function parse_config)`.
///
/// Tokenizers never merge the end of a line with a `#`. So a piece has as many tokens among others as alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heading;

impl Preamble for Heading {
    fn render(&self, unit: &Unit, form: &Form, text: &str) -> String {
        let place = format!("## {}:{}", unit.source.path, form.lines);
        match unit.symbol() {
            // The name is all that is shown, and needn't be there twice.
            Some(symbol) if form.depth != Depth::Name => format!("{place} ({symbol})\n{text}\n\n"),
            _ => format!("{place}\n{text}\n\n"),
        }
    }
}
