//! Handles the stream of a turn, and updates the editor.

use std::io::{self, ErrorKind};

use protocol::TurnResync;

use super::open::Open;
use super::serve::{Site, note};
use super::updates::{Answered, TurnUpdates, Voice, chunk};
use crate::commands::session::follow::{Listener, TurnMessage};

/// What to report of the turn's past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Earlier {
    Told,
    /// The editor knows it; it is only processed.
    Known,
}

pub(super) struct Ear<'a> {
    pub(super) site: &'a Site,
    pub(super) open: &'a Open,
    pub(super) updates: &'a mut TurnUpdates,
    /// The last event that existed at the beginning. Everything after it is new.
    pub(super) goal: u64,
    pub(super) earlier: Earlier,
    pub(super) replay: ReplayEnds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplayEnds {
    WhenLive,
    Later,
}

impl Ear<'_> {
    /// Tells the editor if the question was answered elsewhere while it was asking.
    fn tell_answer(&self, answered: &Answered) -> io::Result<()> {
        let (outbox, id) = (&self.site.outbox, &self.open.id);
        if !self.site.questions.withdraw(outbox, id, answered.permission)? {
            return Ok(());
        }
        let who = if answered.by.is_empty() {
            "Nobody answered in time, so it was denied.".to_owned()
        } else {
            let answer = match answered.answer {
                protocol::PermissionAnswer::Allow => "yes",
                protocol::PermissionAnswer::AllowAlways => "yes, always in this session",
                protocol::PermissionAnswer::Deny => "no",
            };
            format!("Answered elsewhere by {}: {answer}.", answered.by)
        };
        let message = format!("{}-answer", answered.permission);
        outbox.update(id, &chunk(Voice::Thought, &message, &format!("{who}\n")))
    }
}

impl Listener for Ear<'_> {
    fn hear(&mut self, said: &TurnMessage) -> io::Result<()> {
        let garbled = |error| io::Error::new(ErrorKind::InvalidData, error);
        match said {
            TurnMessage::Event(event) => {
                let event = serde_json::from_value(event.clone()).map_err(garbled)?;
                self.updates.event(&event);
            }
            TurnMessage::Resync(resync) => {
                let resync: TurnResync = serde_json::from_value(resync.clone()).map_err(garbled)?;
                self.updates.catch_up(&resync);
            }
            TurnMessage::End(_) => {}
        }
        if self.earlier == Earlier::Known && self.updates.heard() <= self.goal {
            // The editor already has it.
            drop(self.updates.take());
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.open.is_closed() {
            return Err(ErrorKind::BrokenPipe.into());
        }
        for update in self.updates.take() {
            self.site.outbox.update(&self.open.id, &update)?;
        }
        for answered in self.updates.take_answered() {
            self.tell_answer(&answered)?;
        }
        if self.replay == ReplayEnds::WhenLive && self.updates.heard() >= self.goal {
            self.open.replayed();
        }
        for question in self.updates.open_questions(self.goal) {
            self.site
                .questions
                .ask(&self.site.outbox, &self.open.id, question)?;
        }
        Ok(())
    }

    fn note(&mut self, text: &str) {
        note(text);
    }
}
