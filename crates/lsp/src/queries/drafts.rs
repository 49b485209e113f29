//! Files as they would be after an edit.

use std::{collections::BTreeMap, fmt::Write as _, path::PathBuf};

use super::{
    error::QueryError,
    reader::{NamedFile, Reader},
};
use crate::text::{LineIndex, unified_diff};

/// A file before and after an edit.
#[derive(Debug)]
struct Draft {
    shown: String,
    /// Its current name and text. A directory, or a file that can't be read, has no text.
    before: Option<(String, Option<LineIndex>)>,
    /// The text after the edit; `None` if the file would be deleted.
    after: Option<Option<LineIndex>>,
}

/// All files that an edit touches, by the name they would have.
#[derive(Debug, Default)]
pub(super) struct Drafts {
    files: BTreeMap<PathBuf, Draft>,
    /// Files that were moved away, so that a later change of the edit does not find them.
    moved: Vec<Draft>,
}

impl Drafts {
    /// The text of a file after the edit so far.
    pub(super) fn text(
        &mut self,
        reader: &mut Reader<'_>,
        named: &NamedFile,
    ) -> Result<LineIndex, QueryError> {
        let draft = self.draft(reader, named)?;
        let text = draft.after.clone().flatten();
        text.ok_or_else(|| unreadable(reader, named))
    }

    pub(super) fn write(
        &mut self,
        reader: &mut Reader<'_>,
        named: &NamedFile,
        text: LineIndex,
    ) -> Result<(), QueryError> {
        self.draft(reader, named)?.after = Some(Some(text));
        Ok(())
    }

    pub(super) fn create(
        &mut self,
        reader: &mut Reader<'_>,
        named: &NamedFile,
        keep_existing: bool,
    ) -> Result<(), QueryError> {
        let draft = self.draft(reader, named)?;
        let exists = matches!(draft.after, Some(Some(_)));
        if !(exists && keep_existing) {
            draft.after = Some(Some(LineIndex::new("")));
        }
        Ok(())
    }

    pub(super) fn delete(&mut self, reader: &mut Reader<'_>, named: &NamedFile) -> Result<(), QueryError> {
        self.draft(reader, named)?.after = None;
        Ok(())
    }

    pub(super) fn rename(
        &mut self,
        reader: &mut Reader<'_>,
        from: &NamedFile,
        to: &NamedFile,
    ) -> Result<(), QueryError> {
        let source = self.draft(reader, from)?;
        let (before, after) = (source.before.take(), source.after.take());
        let target = self.draft(reader, to)?;
        // The file that was there before would be overwritten, and is shown as deleted.
        if let Some((shown, Some(text))) = target.before.take() {
            self.moved.push(Draft {
                shown: shown.clone(),
                before: Some((shown, Some(text))),
                after: None,
            });
        }
        let target = self.draft(reader, to)?;
        target.before = before;
        target.after = after;
        Ok(())
    }

    fn draft(&mut self, reader: &mut Reader<'_>, named: &NamedFile) -> Result<&mut Draft, QueryError> {
        let path = named.path.clone().ok_or_else(|| unreadable(reader, named))?;
        let draft = self.files.entry(path).or_insert_with_key(|path| {
            let text = reader.text(path);
            Draft {
                shown: named.shown.clone(),
                before: Some((named.shown.clone(), text.clone())),
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
        let old_path = self.before.as_ref().map(|(path, _)| path);
        let old_text = self.before.as_ref().and_then(|(_, text)| text.as_ref());
        let new_text = self.after.as_ref().and_then(Option::as_ref);
        let renamed = old_path.filter(|path| self.after.is_some() && **path != self.shown);
        let mut line = |text: std::fmt::Arguments<'_>| {
            let written = shown.write_fmt(text);
            debug_assert!(written.is_ok(), "a string takes everything");
        };
        if let Some(old) = renamed {
            line(format_args!("rename from {old}\nrename to {}\n", self.shown));
        }
        match (old_text, new_text) {
            (None, None) if self.after.is_none() && old_path.is_some() => {
                line(format_args!("delete {}\n", self.shown));
            }
            (None, Some(new)) if new.text().is_empty() => line(format_args!("create {}\n", self.shown)),
            (old, new) => {
                let old_name = match (old, old_path) {
                    (Some(_), Some(path)) => format!("a/{path}"),
                    _ => NOWHERE.to_owned(),
                };
                let new_name = match new {
                    Some(_) => format!("b/{}", self.shown),
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

fn unreadable(reader: &Reader<'_>, named: &NamedFile) -> QueryError {
    QueryError::Unreadable {
        server: reader.around.server.to_owned(),
        place: named.shown.clone(),
    }
}
