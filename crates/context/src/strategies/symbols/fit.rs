//! How well a definition fits the question. Pure.

use super::candidates::Rarity;
use super::wanted::{Wanted, WantedName};
use crate::outline::{Definition, Language, Outline, SymbolKind};
use crate::path::TreePath;
use crate::query::parts_of;

/// The name exactly as written.
const EXACT: f64 = 10.0;
/// The same letters, ignoring case.
const SAME_LETTERS: f64 = 9.0;
/// The same words in the same order, in a different spelling.
const SAME_WORDS: f64 = 8.0;
/// All words of the wanted name are in this one, along with others.
const ALL_WORDS: f64 = 4.0;
const BEGINS: f64 = 3.0;
/// A word of the question is in the name.
const WORD: f64 = 3.0;
/// The share of that which counts in a name with many other words.
const WORD_AMONG_MANY: f64 = 0.4;
/// The share of a score that doesn't depend on the rarity of a name.
const COMMON: f64 = 0.4;
/// The shortest prefix that is meaningful.
const BEGINS_LEAST_LETTERS: usize = 3;

/// How well a definition fits; `None` if it doesn't.
pub(super) fn fit(
    wanted: &Wanted,
    rarity: &Rarity,
    path: &TreePath,
    outline: &Outline,
    definition: &Definition,
) -> Option<f64> {
    if !may_fit(wanted, &definition.name) {
        return None;
    }
    let parts = parts_of(&definition.name);
    let names = wanted.names.iter().zip(&rarity.names);
    let by_names: f64 = names
        .filter_map(|(name, rare)| {
            let fit = fit_of_name(name, &definition.name, &parts)?;
            let inside = fit_of_inside(name, path, outline, definition);
            Some(fit * inside * (COMMON + (1.0 - COMMON) * rare))
        })
        .sum();
    let total = by_names + fit_of_words(wanted, rarity, &parts);
    (total > 0.0).then(|| total * of_kind(outline, definition) * of_visibility(outline, definition))
}

/// Whether it is worth a closer check. Cheap.
pub(super) fn may_fit(wanted: &Wanted, name: &str) -> bool {
    let names = wanted.names.iter().filter_map(|wanted| wanted.parts.first());
    // All forms of a word begin with its stem.
    let words = wanted.words.iter().map(|word| &word.stem);
    names.chain(words).any(|part| contains(name, part))
}

/// Whether a text contains another one, ignoring case.
fn contains(text: &str, part: &str) -> bool {
    let (text, part) = (text.as_bytes(), part.as_bytes());
    let first = match part {
        // Case outside ASCII isn't handled here.
        [first, ..] if part.is_ascii() => *first,
        _ => return true,
    };
    let Some(last) = text.len().checked_sub(part.len()) else {
        return false;
    };
    let mut places = memchr::memchr2_iter(first, first.to_ascii_uppercase(), &text[..=last]);
    places.any(|place| text[place..place + part.len()].eq_ignore_ascii_case(part))
}

fn fit_of_name(wanted: &WantedName, name: &str, parts: &[String]) -> Option<f64> {
    if wanted.name == name {
        return Some(EXACT);
    }
    if wanted.name.to_lowercase() == name.to_lowercase() {
        return Some(SAME_LETTERS);
    }
    if wanted.parts == parts {
        return Some(SAME_WORDS);
    }
    if wanted.parts.iter().all(|part| parts.contains(part)) {
        let share = wanted.parts.len() as f64 / parts.len() as f64;
        return Some(ALL_WORDS * (0.5 + 0.5 * share));
    }
    let begins = wanted.name.len() >= BEGINS_LEAST_LETTERS
        && name.to_lowercase().starts_with(&wanted.name.to_lowercase());
    begins.then(|| BEGINS * (0.5 + 0.5 * wanted.name.len() as f64 / name.len() as f64))
}

/// The factor for the enclosing definition, if the question names one.
fn fit_of_inside(wanted: &WantedName, path: &TreePath, outline: &Outline, definition: &Definition) -> f64 {
    let Some(inside) = &wanted.inside else {
        return 1.0;
    };
    let is_it = |name: &str| name.eq_ignore_ascii_case(inside);
    let parent = definition
        .parent
        .and_then(|place| outline.definitions.get(place as usize));
    if parent.is_some_and(|parent| is_it(&parent.name)) {
        return 1.3;
    }
    let stem = path.name().split('.').next().unwrap_or_default();
    let directory = path.as_str().rsplit('/').nth(1).unwrap_or_default();
    if parent.is_none() && (is_it(stem) || is_it(directory)) {
        return 1.15;
    }
    // In some languages, methods are next to their type, which is then mentioned.
    let beside = parent.is_none()
        && matches!(outline.language, Language::Go | Language::Cpp | Language::C)
        && outline.references.iter().any(|reference| is_it(&reference.name));
    if beside { 1.2 } else { 0.5 }
}

/// How well words fit: how many of them are in the name, how rare they are, and how much else the name contains.
fn fit_of_words(wanted: &Wanted, rarity: &Rarity, parts: &[String]) -> f64 {
    if parts.is_empty() {
        return 0.0;
    }
    let mut covered = vec![false; parts.len()];
    let mut sum = 0.0;
    for (word, rare) in wanted.words.iter().zip(&rarity.words) {
        // Another form of a word counts a little less.
        let mut places = parts.iter().enumerate();
        let found = places.find(|(_, part)| word.forms.contains(part));
        if let Some((place, part)) = found {
            covered[place] = true;
            let form = if *part == word.forms[0] { 1.0 } else { 0.85 };
            sum += WORD * form * (COMMON + (1.0 - COMMON) * rare);
        }
    }
    let share = covered.iter().filter(|is| **is).count() as f64 / parts.len() as f64;
    sum * (WORD_AMONG_MANY + (1.0 - WORD_AMONG_MANY) * share * share)
}

fn of_kind(outline: &Outline, definition: &Definition) -> f64 {
    let is_member = || {
        let parent = definition
            .parent
            .and_then(|place| outline.definitions.get(place as usize));
        parent.is_some_and(|parent| {
            matches!(
                parent.kind,
                SymbolKind::Type | SymbolKind::Interface | SymbolKind::Value
            )
        })
    };
    match definition.kind {
        SymbolKind::Type | SymbolKind::Interface => 1.0,
        SymbolKind::Function | SymbolKind::Method => 0.97,
        SymbolKind::Macro => 0.9,
        SymbolKind::Module => 0.75,
        SymbolKind::Value if is_member() => 0.5,
        SymbolKind::Value => 0.7,
        SymbolKind::Implementation => 0.55,
    }
}

/// Private definitions count slightly less, if the name alone shows that they are private.
fn of_visibility(outline: &Outline, definition: &Definition) -> f64 {
    let is_private = match (outline.language, definition.name.chars().next()) {
        (_, Some('_' | '#')) => true,
        (Language::Go, Some(first)) => !first.is_uppercase(),
        _ => false,
    };
    if is_private { 0.85 } else { 1.0 }
}
