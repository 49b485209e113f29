//! Edits of a workspace: the changes, and the result as a diff. Nothing is changed here.

use protocol::FileEdit;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    drafts::Drafts,
    error::QueryError,
    limits::bounded,
    reader::{NamedFile, Reader},
};
use crate::text::{LineIndex, TextEdit, apply_edits};

/// An edit that a server proposes.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Edit {
    /// The changes, to be made in this order.
    pub files: Vec<FileEdit>,
    /// All of them as a unified diff. It ends in `…` if it was too long.
    pub diff: String,
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
    },
    Delete {
        uri: String,
    },
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireOptions {
    overwrite: bool,
    ignore_if_exists: bool,
}

/// `WorkspaceEdit | null`. `documentChanges` wins over `changes`.
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
                builder.edit(builder.reader.name(&uri), edits)?;
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
    let (_, named) = reader.document()?;
    let mut builder = Builder::new(reader);
    builder.edit(named, edits)?;
    Ok(builder.finish())
}

struct Builder<'r, 'a> {
    reader: &'r mut Reader<'a>,
    drafts: Drafts,
    files: Vec<FileEdit>,
    edits: usize,
}

impl<'r, 'a> Builder<'r, 'a> {
    fn new(reader: &'r mut Reader<'a>) -> Self {
        Self {
            reader,
            drafts: Drafts::default(),
            files: Vec::new(),
            edits: 0,
        }
    }

    fn document_change(&mut self, value: Value, place: impl FnOnce() -> String) -> Result<(), QueryError> {
        if value.get("kind").is_none() {
            let edit: WireDocumentEdit = self.reader.parse(value, place)?;
            return self.edit(self.reader.name(&edit.text_document.uri), edit.edits);
        }
        let operation: WireFileOperation = self.reader.parse(value, place)?;
        self.count(1)?;
        match operation {
            WireFileOperation::Create { uri, options } => {
                let named = self.reader.name(&uri);
                let keep_existing = options.ignore_if_exists && !options.overwrite;
                self.drafts.create(self.reader, &named, keep_existing)?;
                self.files.push(FileEdit::Create { path: named.shown });
            }
            WireFileOperation::Rename { old_uri, new_uri } => {
                let (from, to) = (self.reader.name(&old_uri), self.reader.name(&new_uri));
                self.drafts.rename(self.reader, &from, &to)?;
                self.files.push(FileEdit::Rename {
                    path: from.shown,
                    new_path: to.shown,
                });
            }
            WireFileOperation::Delete { uri } => {
                let named = self.reader.name(&uri);
                self.drafts.delete(self.reader, &named)?;
                self.files.push(FileEdit::Delete { path: named.shown });
            }
        }
        Ok(())
    }

    fn edit(&mut self, named: NamedFile, edits: Vec<TextEdit>) -> Result<(), QueryError> {
        self.count(edits.len())?;
        if edits.is_empty() {
            return Ok(());
        }
        let before = self.drafts.text(self.reader, &named)?;
        let encoding = self.reader.around.encoding;
        let after = apply_edits(&before, &edits, encoding).map_err(|problem| QueryError::BadEdit {
            server: self.reader.around.server.to_owned(),
            place: named.shown.clone(),
            problem,
        })?;
        let replacements = edits.into_iter().map(|edit| protocol::TextEdit {
            range: self.reader.range(&before, edit.range),
            new_text: edit.new_text,
        });
        let mut replacements: Vec<protocol::TextEdit> = replacements.collect();
        replacements.sort_by_key(|replacement| replacement.range);
        self.drafts.write(self.reader, &named, LineIndex::new(after))?;
        self.files.push(FileEdit::Edit {
            path: named.shown,
            edits: replacements,
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
            files: self.files,
            diff: bounded(self.drafts.diff(), self.reader.limits().diff_bytes),
        }
    }
}
