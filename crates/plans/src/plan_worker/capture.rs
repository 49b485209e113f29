//! Captures: finding the changes that commands made in a sandbox by scanning it, and recording them.

use std::fs::File;
use std::sync::Arc;

use eventlog::{BlobId, CommitError};
use protocol::{ChangesetId, PlanBranch};

use super::PlanWorker;
use crate::inner::blocking;
use crate::log_contents::{self, Source};
use crate::{Attribution, Base, Change, Entry, LeftOut, PlanError, ReadBounds, Recorded, RelPath, Sandbox};

/// How often the sandbox is scanned again because a file disappeared during a scan.
const LOOKS: usize = 5;
/// How many left-out entries are listed.
const LEFT_OUT_LIMIT: usize = 100;

impl PlanWorker {
    /// Scans the sandbox and records everything that differs from what is known as one changeset, which is then
    /// closed.
    pub(super) async fn capture(
        &mut self,
        by: &Attribution,
    ) -> Result<Option<(ChangesetId, Vec<Recorded>)>, PlanError> {
        let mut tries = 0..LOOKS;
        loop {
            let Some(changes) = self.look_at_sandbox().await? else {
                return Ok(None);
            };
            let recorded = self.record_all(by.clone(), changes).await;
            match recorded {
                // A plan with the same content was just forgotten, and the content with it. Store it again.
                Err(PlanError::Commit(CommitError::BlobMissing(_))) if tries.next().is_some() => {}
                recorded => return recorded.map(Some),
            }
        }
    }

    /// What differs from what is known, with the contents stored in the log. If someone writes at the same moment, the
    /// sandbox is scanned again.
    async fn look_at_sandbox(&mut self) -> Result<Option<Vec<Change>>, PlanError> {
        let bounds = ReadBounds {
            scope: self.inner.captures.begin(self.id),
            max_file_bytes: self.inner.settings.max_file_bytes,
        };
        let looked = self.look_within(&bounds).await;
        self.inner.captures.end(self.id);
        match looked {
            Err(_) if self.inner.captures.is_closed() => Err(PlanError::Closing),
            Err(_) if bounds.scope.is_cancelled() => Err(self.called_off(&bounds)),
            looked => looked,
        }
    }

    fn called_off(&self, bounds: &ReadBounds) -> PlanError {
        let cause = bounds.scope.cause();
        PlanError::CaptureCancelled {
            plan: self.id,
            why: cause.map_or_else(String::new, |cause| cause.to_string()),
        }
    }

    async fn look_within(&mut self, bounds: &ReadBounds) -> Result<Option<Vec<Change>>, PlanError> {
        let sandbox = self.sandbox_if_open()?;
        let mut tries = 0..LOOKS;
        loop {
            let (looked, known, within) = (Arc::clone(&sandbox), self.known().await?, bounds.clone());
            let captured = blocking(move || looked.capture(&known, &within)).await?;
            let captured = captured.map_err(PlanError::io("looking at the sandbox"))?;
            self.say_uncarried(captured.left_out, captured.branches).await?;
            if captured.changes.is_empty() {
                return Ok(None);
            }
            let kept = tokio::select! {
                kept = self.keep_contents(captured.changes) => kept,
                _ = bounds.scope.wait() => return Err(self.called_off(bounds)),
            };
            match kept {
                Err(PlanError::FileRefused { .. }) if tries.next().is_some() => {}
                kept => return kept.map(Some),
            }
        }
    }

    fn sandbox_if_open(&self) -> Result<Arc<dyn Sandbox>, PlanError> {
        match &self.open {
            Some(open) => Ok(Arc::clone(&open.sandbox)),
            None => Err(PlanError::SandboxGone(self.id)),
        }
    }

    /// Records what is in the sandbox but isn't carried, if that has changed.
    async fn say_uncarried(
        &mut self,
        mut left_out: Vec<LeftOut>,
        branches: Vec<PlanBranch>,
    ) -> Result<(), PlanError> {
        left_out.truncate(LEFT_OUT_LIMIT);
        self.change(None, |_, record, now| {
            let mut next = record.clone();
            if next.uncarried != left_out || next.branches != branches {
                next.uncarried.clone_from(&left_out);
                next.branches.clone_from(&branches);
                next.changed_at = now;
            }
            Ok((next, Vec::new()))
        })
        .await?;
        Ok(())
    }

    /// Stores the contents of changes in the log, before and after. A file that has changed again since the scan is
    /// recorded with the content that was stored.
    pub(super) async fn keep_contents(&mut self, mut changes: Vec<Change>) -> Result<Vec<Change>, PlanError> {
        let Some(open) = &self.open else {
            return Err(PlanError::SandboxGone(self.id));
        };
        let sources = sources(&changes, &open.sandbox, &open.base);
        let (slots, sources): (Vec<ContentSlot>, Vec<Content>) = sources.into_iter().unzip();
        let put = log_contents::put_all(&self.inner.log, sources).await?;
        for (slot, (id, put_size)) in slots.into_iter().zip(put) {
            let change = &mut changes[slot.change];
            let entry = match slot.side {
                Side::Before => &mut change.before,
                Side::After => &mut change.after,
            };
            if let Some(Entry::File { hash, size, .. }) = entry {
                (*hash, *size) = (id, put_size);
            }
        }
        // What changed back in between isn't a change.
        changes.retain(|change| change.before != change.after || change.from.is_some());
        Ok(changes)
    }
}

#[derive(Clone, Copy, Debug)]
enum Side {
    Before,
    After,
}

/// A content to store, with its address if that is known.
type Content = (Option<BlobId>, Source);

#[derive(Clone, Copy, Debug)]
struct ContentSlot {
    change: usize,
    side: Side,
}

/// The contents of changes. `before` comes from the base, unless the log has it from an earlier change; `after` comes
/// from the sandbox.
fn sources(changes: &[Change], sandbox: &Arc<dyn Sandbox>, base: &Base) -> Vec<(ContentSlot, Content)> {
    let mut sources = Vec::new();
    for (index, change) in changes.iter().enumerate() {
        let slot = |side| ContentSlot { change: index, side };
        let old_path = change.from.as_ref().unwrap_or(&change.path);
        if let Some(Entry::File { hash, .. }) = &change.before
            && base.manifest.get(old_path).and_then(Entry::content) == Some(*hash)
        {
            sources.push((slot(Side::Before), (Some(*hash), in_base(base, old_path))));
        }
        if change
            .after
            .as_ref()
            .is_some_and(|entry| entry.content().is_some())
        {
            let sandbox = Arc::clone(sandbox);
            let open = move |path: &RelPath| Ok(sandbox.tree().open_file(path));
            let source = Source::of_tree(change.path.clone(), open);
            sources.push((slot(Side::After), (None, source)));
        }
    }
    sources
}

fn in_base(base: &Base, path: &RelPath) -> Source {
    let (file, what) = (base.tree.join(path.as_path()), format!("reading `{path}`"));
    Source::File(Box::new(move || {
        File::open(file).map_err(|source| PlanError::Io { what, source })
    }))
}
