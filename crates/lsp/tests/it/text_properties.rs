//! What holds for every text.

use std::path::PathBuf;

use lsp::{
    LineIndex, PositionEncoding, TextEdit, WirePosition, WireRange, apply_edits, path_of_uri,
    smallest_change, uri_of_path,
};
use proptest::prelude::*;

/// Texts out of the characters that things go wrong with.
fn text() -> impl Strategy<Value = String> {
    let character = prop::sample::select(vec!['a', 'b', 'ä', '€', '😀', '😁', '\n', '\r', '\u{301}']);
    prop::collection::vec(character, 0..24).prop_map(String::from_iter)
}

fn encoding() -> impl Strategy<Value = PositionEncoding> {
    prop::sample::select(PositionEncoding::OFFERED.to_vec())
}

/// Whether an offset lies between the halves of a line break.
fn splits_line_break(text: &str, offset: usize) -> bool {
    text[..offset].ends_with('\r') && text[offset..].starts_with('\n')
}

proptest! {
    #[test]
    fn offsets_go_there_and_back(text in text(), encoding in encoding()) {
        let index = LineIndex::new(text.as_str());
        for offset in (0..=text.len()).filter(|offset| text.is_char_boundary(*offset)) {
            if splits_line_break(&text, offset) {
                continue;
            }
            prop_assert_eq!(index.offset_of_wire(index.wire_at(offset, encoding), encoding), offset);
            prop_assert_eq!(index.offset_of(index.position_at(offset)), Ok(offset));
        }
    }

    #[test]
    fn any_position_of_a_server_is_a_place_in_the_text(
        text in text(),
        encoding in encoding(),
        line in 0u32..30,
        character in 0u32..40,
    ) {
        let index = LineIndex::new(text.as_str());
        let offset = index.offset_of_wire(WirePosition { line, character }, encoding);
        prop_assert!(text.is_char_boundary(offset));
        prop_assert!(!splits_line_break(&text, offset));
    }

    #[test]
    fn the_smallest_change_makes_the_new_text(old in text(), new in text(), encoding in encoding()) {
        let index = LineIndex::new(old.as_str());
        let change = smallest_change(&index, &new, encoding);
        let edit = TextEdit { range: change.range.unwrap(), new_text: change.text };
        prop_assert_eq!(apply_edits(&index, &[edit], encoding).unwrap(), new);
    }

    #[test]
    fn a_change_in_the_middle_is_no_larger_than_what_was_changed(
        before in text(),
        removed in text(),
        added in text(),
        after in text(),
        encoding in encoding(),
    ) {
        let old = format!("{before}x{removed}y{after}");
        let new = format!("{before}x{added}y{after}");
        let change = smallest_change(&LineIndex::new(old.as_str()), &new, encoding);
        prop_assert!(change.text.len() <= added.len());
    }

    #[test]
    fn edits_make_the_text_that_their_pieces_make(
        pieces in prop::collection::vec((text(), text(), text()), 0..5),
        encoding in encoding(),
    ) {
        // An `x` before and behind each piece keeps line breaks whole.
        let mut old = String::new();
        let mut new = String::new();
        let mut offsets = Vec::new();
        for (kept, removed, added) in &pieces {
            old.push_str(kept);
            old.push('x');
            new.push_str(kept);
            new.push('x');
            offsets.push((old.len()..old.len() + removed.len(), added.clone()));
            old.push_str(removed);
            old.push('x');
            new.push_str(added);
            new.push('x');
        }
        let index = LineIndex::new(old);
        let mut edits: Vec<TextEdit> = offsets
            .into_iter()
            .map(|(offsets, new_text)| TextEdit {
                range: WireRange {
                    start: index.wire_at(offsets.start, encoding),
                    end: index.wire_at(offsets.end, encoding),
                },
                new_text,
            })
            .collect();
        edits.reverse();
        prop_assert_eq!(apply_edits(&index, &edits, encoding).unwrap(), new);
    }

    #[test]
    fn edits_of_a_mad_server_do_no_harm(
        text in text(),
        edits in prop::collection::vec((0u32..9, 0u32..9, 0u32..9, 0u32..9, text()), 0..6),
        encoding in encoding(),
    ) {
        let edits: Vec<TextEdit> = edits
            .into_iter()
            .map(|(line, character, end_line, end_character, new_text)| TextEdit {
                range: WireRange {
                    start: WirePosition { line, character },
                    end: WirePosition { line: end_line, character: end_character },
                },
                new_text,
            })
            .collect();
        let _either = apply_edits(&LineIndex::new(text), &edits, encoding);
    }

    #[test]
    fn paths_go_there_and_back(path in "(/[^/\0]{0,8}){1,4}") {
        let path = PathBuf::from(path);
        prop_assert_eq!(path_of_uri(&uri_of_path(&path).unwrap()).unwrap(), path);
    }
}
