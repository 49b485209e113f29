//! The outline of a file as bytes.

use super::numbers::{Front, put, put_text};
use crate::lines::Lines;
use crate::outline::{Definition, Language, Outline, Reference, SymbolKind};

pub(super) fn encode(outline: &Outline) -> Vec<u8> {
    let mut bytes = vec![outline.language as u8];
    put(&mut bytes, outline.definitions.len() as u64);
    for definition in &outline.definitions {
        put_text(&mut bytes, &definition.name);
        bytes.push(definition.kind as u8);
        put_lines(&mut bytes, definition.lines);
        put_lines(&mut bytes, definition.signature);
        put(
            &mut bytes,
            definition.parent.map_or(0, |parent| u64::from(parent) + 1),
        );
    }
    put(&mut bytes, outline.references.len() as u64);
    for reference in &outline.references {
        put_text(&mut bytes, &reference.name);
        put(&mut bytes, reference.count.into());
    }
    bytes
}

/// Decodes an outline; `None` if it is invalid.
pub(super) fn decode(bytes: &[u8]) -> Option<Outline> {
    let mut front = Front(bytes);
    let [number] = front.array()?;
    let language = Language::from_number(number)?;
    let mut definitions = Vec::new();
    for _ in 0..front.number()? {
        definitions.push(Definition {
            name: front.text()?.to_owned(),
            kind: take_kind(&mut front)?,
            lines: take_lines(&mut front)?,
            signature: take_lines(&mut front)?,
            parent: front.small()?.checked_sub(1),
        });
    }
    let mut references = Vec::new();
    for _ in 0..front.number()? {
        references.push(Reference {
            name: front.text()?.to_owned(),
            count: front.small()?,
        });
    }
    front.is_empty().then_some(Outline {
        language,
        definitions,
        references,
    })
}

fn take_kind(front: &mut Front<'_>) -> Option<SymbolKind> {
    let [number] = front.array()?;
    SymbolKind::from_number(number)
}

fn put_lines(bytes: &mut Vec<u8>, lines: Lines) {
    put(bytes, lines.first().into());
    put(bytes, (lines.last() - lines.first()).into());
}

fn take_lines(front: &mut Front<'_>) -> Option<Lines> {
    let first = front.small()?;
    Lines::new(first, first.checked_add(front.small()?)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn languages() -> Vec<Language> {
        (0..=u8::MAX).filter_map(Language::from_number).collect()
    }

    fn kinds() -> Vec<SymbolKind> {
        (0..=u8::MAX).filter_map(SymbolKind::from_number).collect()
    }

    fn lines() -> impl Strategy<Value = Lines> {
        (1..1_000_000_u32, 0..5_000_u32).prop_map(|(first, more)| Lines::new(first, first + more).unwrap())
    }

    fn outlines() -> impl Strategy<Value = Outline> {
        let kinds = prop::sample::select(kinds());
        let definition = ("[a-z_]{0,12}", kinds, lines(), lines(), any::<Option<u16>>());
        let definition = definition.prop_map(|(name, kind, lines, signature, parent)| Definition {
            name,
            kind,
            lines,
            signature,
            parent: parent.map(u32::from),
        });
        let reference = ("\\PC{0,12}", any::<u32>()).prop_map(|(name, count)| Reference { name, count });
        let parts = (
            prop::sample::select(languages()),
            prop::collection::vec(definition, 0..8),
            prop::collection::vec(reference, 0..8),
        );
        parts.prop_map(|(language, definitions, references)| Outline {
            language,
            definitions,
            references,
        })
    }

    proptest! {
        #[test]
        fn an_outline_comes_back_as_it_was(outline in outlines()) {
            prop_assert_eq!(decode(&encode(&outline)), Some(outline));
        }

        #[test]
        fn broken_bytes_are_no_panic(outline in outlines(), at in any::<prop::sample::Index>(), value: u8) {
            let mut bytes = encode(&outline);
            let at = at.index(bytes.len());
            prop_assert_eq!(decode(&bytes[..at]), None);
            bytes[at] = value;
            drop(decode(&bytes));
        }
    }
}
