//! The files worth examining if there is no index: one pass over all texts, and an outline of those that match.

use std::sync::{Arc, Mutex, PoisonError};

use regex::bytes::{Regex, RegexBuilder};

use super::super::keyword::Time;
use super::fit::may_fit;
use super::wanted::Wanted;
use crate::outline::{Language, Outline, outline};
use crate::path::TreePath;
use crate::strategy::StrategyError;
use crate::view::{View, text_of};

/// The most files that are kept. They are compared afterwards, and no answer has room for more.
const FOUND_LIMIT: usize = 4096;
/// The percentage of the time after which the search stops with what it has.
const WALK_PERCENT: u32 = 80;
/// Keywords before the name of a definition in most languages.
const KEYWORDS: &str = "fn|def|class|struct|enum|union|trait|interface|type|func|function|mod|namespace|macro_rules!|\
    const|static|record|impl";

/// The matching files, and how many files there are in total.
#[derive(Debug, Default)]
pub(super) struct Walked {
    pub(super) files: Vec<(TreePath, Arc<Outline>)>,
    pub(super) of_files: usize,
}

pub(super) fn walk(view: &dyn View, wanted: &Wanted, time: Time<'_>) -> Result<Walked, StrategyError> {
    let pattern = pattern(wanted)?;
    // Guards the results so far; the threads of the walk add to them one file at a time.
    let walked = Mutex::new(Walked::default());
    // Guards unused buffers; there are as many as threads in the walk.
    let idle: Mutex<Vec<Vec<u8>>> = Mutex::default();
    let done = view.walk(time.scope, &|path| {
        if time.is_over(WALK_PERCENT) {
            return false;
        }
        if !Language::is_known(&path) {
            return true;
        }
        let buffer = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut bytes = buffer.unwrap_or_default();
        let is_worth_it = view.read_into(&path, &mut bytes).is_ok() && pattern.is_match(&bytes);
        let found = is_worth_it
            .then(|| outline(&path, &text_of(&bytes), time.scope))
            .flatten();
        idle.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
        let fits = |found: &Outline| {
            let mut definitions = found.definitions.iter();
            definitions.any(|definition| may_fit(wanted, &definition.name))
        };
        let found = found.filter(fits);
        let mut walked = walked.lock().unwrap_or_else(PoisonError::into_inner);
        walked.of_files += 1;
        walked.files.extend(found.map(|found| (path, Arc::new(found))));
        walked.files.len() < FOUND_LIMIT
    });
    done.map_err(|error| StrategyError::Failed(error.to_string()))?;
    Ok(walked.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// What a text must contain to be worth an outline: a name in any of its spellings, or, if there are only words, one of
/// them in the name of a definition.
fn pattern(wanted: &Wanted) -> Result<Regex, StrategyError> {
    let joined = |texts: Vec<String>| texts.join("|");
    let pattern = if wanted.names.is_empty() {
        let forms = wanted.words.iter().flat_map(|word| &word.forms);
        let forms = joined(forms.map(|form| regex::escape(form)).collect());
        format!(r"(?:{KEYWORDS})\s+(?:\([^)\n]*\)\s*)?\w*(?:{forms})")
    } else {
        let names = wanted.names.iter().map(|name| {
            let parts: Vec<String> = name.parts.iter().map(|part| regex::escape(part)).collect();
            parts.join("[_-]?")
        });
        joined(names.collect())
    };
    let pattern = RegexBuilder::new(&pattern).case_insensitive(true).build();
    pattern.map_err(|error| StrategyError::Failed(error.to_string()))
}
