//! One document: its target state, what the server knows, and the step from one to the other.

use std::{sync::Arc, time::Instant};

use kernel::Generation;

use super::{
    message::{DocumentMessage, TextIs},
    state::DocumentSettings,
    sync::{ChangeSync, DocumentSync, OpenClose, SaveSync},
};
use crate::text::{ContentChange, LineIndex, PositionEncoding, smallest_change};

#[derive(Clone, Debug)]
pub(super) struct Version {
    pub(super) number: i32,
    pub(super) text: LineIndex,
}

#[derive(Debug)]
pub(super) struct Document {
    pub(super) uri: Arc<str>,
    pub(super) language: Arc<str>,
    pub(super) leases: usize,
    /// Grows with every use; the smallest is the least recently used.
    pub(super) used: u64,
    pub(super) used_at: Instant,
    /// The version that the server should have; `None` means closed. Never `None` while there are leases.
    pub(super) wanted: Option<Version>,
    /// What the server knows; `None` means closed.
    pub(super) told: Option<Version>,
    /// What was saved since the server was last notified of a save.
    pub(super) saved: Option<Arc<str>>,
    /// Its key in `Book::unsent`, if it is there.
    pub(super) unsent: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Attached {
    pub(super) generation: Generation,
    pub(super) sync: DocumentSync,
    pub(super) encoding: PositionEncoding,
}

impl Document {
    pub(super) fn newest_version(&self) -> i32 {
        let number = |version: &Option<Version>| version.as_ref().map_or(0, |version| version.number);
        number(&self.wanted).max(number(&self.told))
    }

    pub(super) fn idle_at(&self, settings: &DocumentSettings) -> Option<Instant> {
        self.used_at.checked_add(settings.warm_for)
    }

    pub(super) fn differs(&self) -> bool {
        let number = |version: &Option<Version>| version.as_ref().map(|version| version.number);
        number(&self.wanted) != number(&self.told) || self.saved.is_some()
    }

    pub(super) fn tell(&mut self, attached: &Attached) -> Option<DocumentMessage> {
        let open_close = attached.sync.open_close == OpenClose::Told;
        let told = self.told.take();
        match (&self.wanted, told) {
            (None, None) => None,
            (None, Some(_)) => open_close.then_some(DocumentMessage::DidClose),
            (Some(wanted), None) => {
                self.told = Some(wanted.clone());
                open_close.then(|| DocumentMessage::DidOpen {
                    language: Arc::clone(&self.language),
                    version: wanted.number,
                    text: Arc::clone(wanted.text.text()),
                })
            }
            (Some(wanted), Some(told)) if wanted.number != told.number => {
                self.told = Some(wanted.clone());
                let text = wanted.text.text();
                let is_same = Arc::ptr_eq(text, told.text.text());
                let change = match attached.sync.change {
                    ChangeSync::None => return None,
                    ChangeSync::Full => ContentChange::full(text),
                    ChangeSync::Incremental => smallest_change(&told.text, text, attached.encoding),
                };
                Some(DocumentMessage::DidChange {
                    version: wanted.number,
                    change,
                    text: if is_same { TextIs::TheSame } else { TextIs::New },
                })
            }
            (Some(_), Some(told)) => {
                self.told = Some(told);
                let saved = self.saved.take()?;
                let text = (attached.sync.save == SaveSync::WithText).then_some(saved);
                Some(DocumentMessage::DidSave { text })
            }
        }
    }
}
