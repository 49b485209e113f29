//! What files would be after an edit.

use std::{collections::BTreeMap, fmt::Write as _, path::PathBuf};

use super::{
    edits::IfExists,
    error::QueryError,
    reader::{Named, Place, Reader},
};
use crate::text::{LineIndex, unified_diff};

/// A file as it is and as it would be.
#[derive(Debug)]
struct Draft {
    place: Place,
    /// What it is now, perhaps under another name. A directory, or a file that cannot be read, has no text.
    before: Option<(Place, Option<LineIndex>)>,
    /// What it would be; `None` if it would be gone.
    after: Option<Option<LineIndex>>,
}

/// All files that an edit touches, by the name that they would have.
#[derive(Debug, Default)]
pub(super) struct Drafts {
    files: BTreeMap<PathBuf, Draft>,
    /// What is no longer where it was, so that a later change of the edit does not find it there.
    moved: Vec<Draft>,
}

impl Drafts {
    /// The text of a file after what the edit has done so far.
    pub(super) fn text(&mut self, reader: &mut Reader<'_>, named: &Named) -> Result<LineIndex, QueryError> {
        let draft = self.draft(reader, named)?;
        let text = draft.after.clone().flatten();
        text.ok_or_else(|| unreadable(reader, named))
    }

    pub(super) fn write(
        &mut self,
        reader: &mut Reader<'_>,
        named: &Named,
        text: LineIndex,
    ) -> Result<(), QueryError> {
        self.draft(reader, named)?.after = Some(Some(text));
        Ok(())
    }

    pub(super) fn create(
        &mut self,
        reader: &mut Reader<'_>,
        named: &Named,
        if_exists: IfExists,
    ) -> Result<(), QueryError> {
        let draft = self.draft(reader, named)?;
        let exists = matches!(draft.after, Some(Some(_)));
        if !(exists && if_exists == IfExists::Ignore) {
            draft.after = Some(Some(LineIndex::new("")));
        }
        Ok(())
    }

    pub(super) fn delete(&mut self, reader: &mut Reader<'_>, named: &Named) -> Result<(), QueryError> {
        self.draft(reader, named)?.after = None;
        Ok(())
    }

    pub(super) fn rename(
        &mut self,
        reader: &mut Reader<'_>,
        from: &Named,
        to: &Named,
    ) -> Result<(), QueryError> {
        let source = self.draft(reader, from)?;
        let (before, after) = (source.before.take(), source.after.take());
        let target = self.draft(reader, to)?;
        // What was there before would be overwritten, and is shown as gone.
        if let Some((place, Some(text))) = target.before.take() {
            self.moved.push(Draft {
                place: place.clone(),
                before: Some((place, Some(text))),
                after: None,
            });
        }
        let target = self.draft(reader, to)?;
        target.before = before;
        target.after = after;
        Ok(())
    }

    fn draft(&mut self, reader: &mut Reader<'_>, named: &Named) -> Result<&mut Draft, QueryError> {
        let path = named.path.clone().ok_or_else(|| unreadable(reader, named))?;
        let draft = self.files.entry(path).or_insert_with_key(|path| {
            let text = reader.text(path);
            Draft {
                place: named.place.clone(),
                before: Some((named.place.clone(), text.clone())),
                after: Some(text),
            }
        });
        Ok(draft)
    }

    pub(super) fn diff(&self) -> String {
        let mut shown = String::new();
        for draft in self.files.values().chain(&self.moved) {
            draft.show(&mut shown);
        }
        shown
    }
}

impl Draft {
    fn show(&self, shown: &mut String) {
        const NOWHERE: &str = "/dev/null";
        let old_place = self.before.as_ref().map(|(place, _)| place);
        let old_text = self.before.as_ref().and_then(|(_, text)| text.as_ref());
        let new_text = self.after.as_ref().and_then(Option::as_ref);
        let renamed = old_place.filter(|place| self.after.is_some() && **place != self.place);
        let mut line = |text: std::fmt::Arguments<'_>| {
            let written = shown.write_fmt(text);
            debug_assert!(written.is_ok(), "a string takes everything");
        };
        if let Some(old) = renamed {
            line(format_args!(
                "rename from {}\nrename to {}\n",
                old.path, self.place.path
            ));
        }
        match (old_text, new_text) {
            (None, None) if self.after.is_none() && old_place.is_some() => {
                line(format_args!("delete {}\n", self.place.path));
            }
            (None, Some(new)) if new.text().is_empty() => line(format_args!("create {}\n", self.place.path)),
            (old, new) => {
                let old_name = match (old, old_place) {
                    (Some(_), Some(place)) => format!("a/{}", place.path),
                    _ => NOWHERE.to_owned(),
                };
                let new_name = match new {
                    Some(_) => format!("b/{}", self.place.path),
                    None => NOWHERE.to_owned(),
                };
                let text =
                    |side: Option<&LineIndex>| side.map_or_else(String::new, |side| side.text().to_string());
                line(format_args!(
                    "{}",
                    unified_diff(&old_name, &new_name, &text(old), &text(new))
                ));
            }
        }
    }
}

fn unreadable(reader: &Reader<'_>, named: &Named) -> QueryError {
    QueryError::Unreadable {
        server: reader.around.server.to_owned(),
        place: named.place.path.clone(),
    }
}
