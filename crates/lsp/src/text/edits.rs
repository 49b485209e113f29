//! Applying a server's edits.

use serde::{Deserialize, Serialize};

use super::{LineIndex, PositionEncoding, WireRange};

/// A replacement of a range, in the protocol's form.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TextEdit {
    pub range: WireRange,
    pub new_text: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum EditError {
    #[error("two edits overlap: {} and {}", show(first), show(second))]
    Overlap { first: WireRange, second: WireRange },
    #[error("the range of an edit ends before it begins: {}", show(range))]
    Inverted { range: WireRange },
}

fn show(range: &WireRange) -> String {
    let WireRange { start, end } = range;
    format!(
        "{}:{}-{}:{}",
        start.line, start.character, end.line, end.character
    )
}

/// The text after all edits. Each edit refers to positions in the original text, in any order. Several insertions at
/// one position appear in the order given, and before a replacement that begins there.
pub fn apply_edits(
    text: &LineIndex,
    edits: &[TextEdit],
    encoding: PositionEncoding,
) -> Result<String, EditError> {
    let mut placed = Vec::with_capacity(edits.len());
    for edit in edits {
        if edit.range.end < edit.range.start {
            return Err(EditError::Inverted { range: edit.range });
        }
        placed.push((text.offsets_of_wire(edit.range, encoding), edit));
    }
    // The sort is stable, so that insertions at one position keep their order.
    placed.sort_by_key(|(offsets, _)| (offsets.start, offsets.end));
    for pair in placed.windows(2) {
        if pair[0].0.end > pair[1].0.start {
            return Err(EditError::Overlap {
                first: pair[0].1.range,
                second: pair[1].1.range,
            });
        }
    }
    let old = text.text();
    let mut new = String::with_capacity(old.len());
    let mut done = 0;
    for (offsets, edit) in placed {
        new.push_str(&old[done..offsets.start]);
        new.push_str(&edit.new_text);
        done = offsets.end;
    }
    new.push_str(&old[done..]);
    Ok(new)
}
