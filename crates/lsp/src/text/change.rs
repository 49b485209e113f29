//! What changed between two versions of a text, as one range.

use serde::Serialize;

use super::{LineIndex, PositionEncoding, WirePosition, WireRange};

/// One change of a text, as `textDocument/didChange` carries it.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct ContentChange {
    /// The replaced range; without it, the whole text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<WireRange>,
    pub text: String,
}

impl ContentChange {
    pub fn full(text: &str) -> Self {
        Self {
            range: None,
            text: text.to_owned(),
        }
    }
}

/// The shortest single range to replace to turn the old text into the new one. Equal texts yield an empty change,
/// because a server may still need to learn of a new version.
///
/// The range neither begins nor ends inside a character, nor inside a `\r\n`, for which the
/// protocol has no position.
pub fn smallest_change(old: &LineIndex, new: &str, encoding: PositionEncoding) -> ContentChange {
    let before: &str = old.text();
    if before == new {
        let nowhere = WirePosition::default();
        return ContentChange {
            range: Some(WireRange {
                start: nowhere,
                end: nowhere,
            }),
            text: String::new(),
        };
    }
    let prefix = common_prefix(before, new);
    let suffix = common_suffix(&before[prefix..], &new[prefix..]);
    let end = before.len() - suffix;
    ContentChange {
        range: Some(WireRange {
            start: old.wire_at(prefix, encoding),
            end: old.wire_at(end, encoding),
        }),
        text: new[prefix..new.len() - suffix].to_owned(),
    }
}

/// How many bytes at the beginning are the same, up to an offset where both can be cut.
fn common_prefix(before: &str, new: &str) -> usize {
    let same = before
        .bytes()
        .zip(new.bytes())
        .take_while(|(left, right)| left == right)
        .count();
    let boundary = before.floor_char_boundary(same);
    if inside_line_break(before, boundary) {
        boundary - 1
    } else {
        boundary
    }
}

fn common_suffix(before: &str, new: &str) -> usize {
    let same = before
        .bytes()
        .rev()
        .zip(new.bytes().rev())
        .take_while(|(left, right)| left == right)
        .count();
    let boundary = before.ceil_char_boundary(before.len() - same);
    let cut = if inside_line_break(before, boundary) {
        boundary + 1
    } else {
        boundary
    };
    before.len() - cut
}

fn inside_line_break(text: &str, offset: usize) -> bool {
    offset > 0 && text.as_bytes()[offset - 1] == b'\r' && text.as_bytes().get(offset) == Some(&b'\n')
}
