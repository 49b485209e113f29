//! Edits of a workspace: what would be done, and how it would look. Nothing is done here.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    drafts::Drafts,
    error::QueryError,
    limits::bounded,
    reader::{Named, Place, Reader},
};
use crate::text::{LineIndex, Range, TextEdit, apply_edits};

/// What a server wants to be changed.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Edit {
    /// The changes, to be made in this order.
    pub changes: Vec<FileChange>,
    /// All of them as a difference, for people. It ends in `…` if it was too long.
    pub diff: String,
}

/// What to do if the file of a change is there already.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IfExists {
    /// Nothing at all must be done.
    Fail,
    Ignore,
    Overwrite,
}

/// What to do if the file of a change is not there.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IfMissing {
    /// Nothing at all must be done.
    Fail,
    Ignore,
}

#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum FileChange {
    Edit {
        #[serde(flatten)]
        place: Place,
        /// The version that the server saw, if it says so.
        version: Option<i32>,
        replacements: Vec<Replacement>,
        #[serde(skip)]
        after: Arc<str>,
    },
    Create {
        #[serde(flatten)]
        place: Place,
        if_exists: IfExists,
    },
    Rename {
        from: Place,
        to: Place,
        if_exists: IfExists,
    },
    /// No file any more.
    Delete {
        #[serde(flatten)]
        place: Place,
        /// What if it is not there.
        if_missing: IfMissing,
    },
}

#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Replacement {
    pub range: Range,
    pub new_text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireWorkspaceEdit {
    changes: Option<Map<String, Value>>,
    document_changes: Option<Vec<Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireDocumentEdit {
    text_document: WireDocument,
    edits: Vec<TextEdit>,
}

#[derive(Deserialize)]
struct WireDocument {
    uri: String,
    version: Option<i32>,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum WireFileOperation {
    Create {
        uri: String,
        #[serde(default)]
        options: WireOptions,
    },
    #[serde(rename_all = "camelCase")]
    Rename {
        old_uri: String,
        new_uri: String,
        #[serde(default)]
        options: WireOptions,
    },
    Delete {
        uri: String,
        #[serde(default)]
        options: WireOptions,
    },
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireOptions {
    overwrite: bool,
    ignore_if_exists: bool,
    ignore_if_not_exists: bool,
}

impl WireOptions {
    fn if_exists(&self) -> IfExists {
        match (self.overwrite, self.ignore_if_exists) {
            (true, _) => IfExists::Overwrite,
            (false, true) => IfExists::Ignore,
            (false, false) => IfExists::Fail,
        }
    }

    fn if_missing(&self) -> IfMissing {
        if self.ignore_if_not_exists {
            IfMissing::Ignore
        } else {
            IfMissing::Fail
        }
    }
}

/// `WorkspaceEdit | null`. Of its two forms the one with an order wins.
pub(super) fn read_workspace(
    reader: &mut Reader<'_>,
    answer: Value,
    place: &str,
) -> Result<Edit, QueryError> {
    if answer.is_null() {
        return Ok(Edit::default());
    }
    let wire: WireWorkspaceEdit = reader.parse(answer, || place.to_owned())?;
    let mut builder = Builder::new(reader);
    match wire {
        WireWorkspaceEdit {
            document_changes: Some(changes),
            ..
        } => {
            for (index, change) in changes.into_iter().enumerate() {
                builder.document_change(change, || format!("{place}.documentChanges[{index}]"))?;
            }
        }
        WireWorkspaceEdit {
            changes: Some(changes),
            ..
        } => {
            for (uri, edits) in changes {
                let edits = builder
                    .reader
                    .parse(edits, || format!("{place}.changes[{uri:?}]"))?;
                builder.edit(&uri, None, edits)?;
            }
        }
        WireWorkspaceEdit { .. } => {}
    }
    Ok(builder.finish())
}

/// `TextEdit[] | null`, for the document that was asked about.
pub(super) fn read_document(reader: &mut Reader<'_>, answer: Value) -> Result<Edit, QueryError> {
    if answer.is_null() {
        return Ok(Edit::default());
    }
    let edits: Vec<TextEdit> = reader.parse(answer, || "result".to_owned())?;
    let (document, named) = reader.document()?;
    let mut builder = Builder::new(reader);
    builder.edit_named(named, Some(document.version), edits)?;
    Ok(builder.finish())
}

/// Puts an edit together, and keeps what the files would be.
struct Builder<'r, 'a> {
    reader: &'r mut Reader<'a>,
    drafts: Drafts,
    changes: Vec<FileChange>,
    edits: usize,
}

impl<'r, 'a> Builder<'r, 'a> {
    fn new(reader: &'r mut Reader<'a>) -> Self {
        Self {
            reader,
            drafts: Drafts::default(),
            changes: Vec::new(),
            edits: 0,
        }
    }

    fn document_change(&mut self, value: Value, place: impl FnOnce() -> String) -> Result<(), QueryError> {
        if value.get("kind").is_none() {
            let edit: WireDocumentEdit = self.reader.parse(value, place)?;
            return self.edit(&edit.text_document.uri, edit.text_document.version, edit.edits);
        }
        let operation: WireFileOperation = self.reader.parse(value, place)?;
        self.count(1)?;
        match operation {
            WireFileOperation::Create { uri, options } => {
                let (named, if_exists) = (self.reader.name(&uri), options.if_exists());
                self.drafts.create(self.reader, &named, if_exists)?;
                self.changes.push(FileChange::Create {
                    place: named.place,
                    if_exists,
                });
            }
            WireFileOperation::Rename {
                old_uri,
                new_uri,
                options,
            } => {
                let (from, to) = (self.reader.name(&old_uri), self.reader.name(&new_uri));
                self.drafts.rename(self.reader, &from, &to)?;
                self.changes.push(FileChange::Rename {
                    from: from.place,
                    to: to.place,
                    if_exists: options.if_exists(),
                });
            }
            WireFileOperation::Delete { uri, options } => {
                let named = self.reader.name(&uri);
                self.drafts.delete(self.reader, &named)?;
                self.changes.push(FileChange::Delete {
                    place: named.place,
                    if_missing: options.if_missing(),
                });
            }
        }
        Ok(())
    }

    fn edit(&mut self, uri: &str, version: Option<i32>, edits: Vec<TextEdit>) -> Result<(), QueryError> {
        let named = self.reader.name(uri);
        self.edit_named(named, version, edits)
    }

    fn edit_named(
        &mut self,
        named: Named,
        version: Option<i32>,
        edits: Vec<TextEdit>,
    ) -> Result<(), QueryError> {
        self.count(edits.len())?;
        if edits.is_empty() {
            return Ok(());
        }
        let before = self.drafts.text(self.reader, &named)?;
        let encoding = self.reader.around.encoding;
        let after = apply_edits(&before, &edits, encoding).map_err(|problem| QueryError::BadEdit {
            server: self.reader.around.server.to_owned(),
            place: named.place.path.clone(),
            problem,
        })?;
        let mut replacements: Vec<Replacement> = edits
            .into_iter()
            .map(|edit| Replacement {
                range: self.reader.range(&before, edit.range),
                new_text: edit.new_text,
            })
            .collect();
        replacements.sort_by_key(|replacement| replacement.range);
        let after: Arc<str> = after.into();
        self.drafts
            .write(self.reader, &named, LineIndex::new(Arc::clone(&after)))?;
        self.changes.push(FileChange::Edit {
            place: named.place,
            version,
            replacements,
            after,
        });
        Ok(())
    }

    fn count(&mut self, more: usize) -> Result<(), QueryError> {
        self.edits += more;
        let limit = self.reader.limits().edits;
        if self.edits > limit {
            return Err(QueryError::TooManyEdits {
                server: self.reader.around.server.to_owned(),
                edits: self.edits,
                limit,
            });
        }
        Ok(())
    }

    fn finish(self) -> Edit {
        Edit {
            changes: self.changes,
            diff: bounded(self.drafts.diff(), self.reader.limits().diff_bytes),
        }
    }
}
