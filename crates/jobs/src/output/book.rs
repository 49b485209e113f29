//! What an attempt has said, and what of it is to be written next. Pure: no log, no clock, no task.

use std::{
    mem,
    time::{Duration, Instant},
};

use eventlog::Sequence;
use protocol::{JobChannel, JobProgress};

use super::{
    characters,
    ending::Ending,
    item::OutputSummary,
    lines::{Lines, Said},
};

/// The most bytes in one event of output. A reader holds whole events, so they stay small.
pub(super) const EVENT_BYTES: usize = 64 * 1024;
/// Progress is written at most this often, however often it is said; the latest is never left out.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest text of a progress. It stands in the head, which is written with every piece.
const PROGRESS_TEXT_BYTES: usize = 1024;

/// An event to be written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Draft {
    /// A piece of output, or a note.
    Piece(JobChannel, Vec<u8>),
    /// How far the job is.
    Progress(JobProgress),
}

/// When something is to be written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Due {
    /// At once.
    Now,
    /// Not before then.
    At(Instant),
    /// There is nothing to write.
    Never,
}

/// Something that is written in one commit.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Batch {
    /// What to append.
    pub(super) drafts: Vec<Draft>,
    /// What is known of the output then.
    pub(super) summary: OutputSummary,
}

/// Whether there will be more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Life {
    Open,
    Finished,
}

/// What an attempt has said.
#[derive(Debug)]
pub(super) struct Book {
    limit_bytes: u64,
    summary: OutputSummary,
    stdout: Voice,
    stderr: Voice,
    /// What is to be written with the next commit.
    drafts: Vec<Draft>,
    /// What came after as much as is kept.
    beyond: Option<Beyond>,
    /// Progress that the head will have, but that no event has told yet.
    untold: Option<JobProgress>,
    /// When an event last told of progress.
    told_at: Option<Instant>,
    /// Whether the head is no longer as it was written.
    is_changed: bool,
    written_at: Option<Instant>,
    life: Life,
}

/// What is held back of a channel.
#[derive(Debug, Default)]
struct Voice {
    lines: Lines,
    /// The first bytes of a character.
    part: Vec<u8>,
}

/// What came after as much as is kept.
#[derive(Debug, Default)]
struct Beyond {
    bytes: u64,
    ending: Ending,
}

impl Book {
    /// The book of an attempt that comes after such an output.
    pub(super) fn new(attempt: u32, limit_bytes: u64, before: OutputSummary) -> Self {
        let mut book = Self {
            limit_bytes,
            summary: before,
            stdout: Voice::default(),
            stderr: Voice::default(),
            drafts: Vec::new(),
            beyond: None,
            untold: None,
            told_at: None,
            is_changed: false,
            written_at: None,
            life: Life::Open,
        };
        if attempt > 1 {
            // How far the attempt before came says nothing about this one.
            book.summary.progress = None;
            book.note(format!("attempt {attempt}"));
        }
        book
    }

    /// Takes the next bytes of a channel.
    pub(super) fn take(&mut self, channel: JobChannel, bytes: &[u8]) {
        let Some(voice) = self.voice(channel) else {
            return self.drafts.push(Draft::Piece(channel, bytes.to_vec()));
        };
        let Voice { mut lines, mut part } = mem::take(voice);
        lines.take(bytes, |said| self.hear(channel, &mut part, said));
        if let Some(voice) = self.voice(channel) {
            *voice = Voice { lines, part };
        }
    }

    /// Takes how far the job is.
    pub(super) fn progress(&mut self, mut progress: JobProgress) {
        if progress.text.len() > PROGRESS_TEXT_BYTES {
            let end = characters::whole(&progress.text.as_bytes()[..PROGRESS_TEXT_BYTES]);
            progress.text.truncate(end);
        }
        if self.summary.progress.as_ref() != Some(&progress) {
            self.summary.progress = Some(progress.clone());
            self.untold = Some(progress);
            self.is_changed = true;
        }
    }

    /// There will be no more: what was held back is given out, and the end of what was not kept.
    pub(super) fn finish(&mut self) {
        self.life = Life::Finished;
        for channel in [JobChannel::Stdout, JobChannel::Stderr] {
            let Voice { mut lines, mut part } = self.voice(channel).map(mem::take).unwrap_or_default();
            lines.finish(|said| self.hear(channel, &mut part, said));
            self.keep(channel, &part);
        }
        let Some(Beyond { bytes, ending }) = self.beyond.take() else {
            return;
        };
        self.summary.cut_bytes -= ending.bytes();
        let left_out = bytes - ending.bytes();
        if left_out > 0 {
            self.note(format!("{left_out} bytes were left out here"));
        }
        for (channel, piece) in ending.into_pieces() {
            self.draft(channel, &piece);
        }
    }

    /// When something is to be written.
    pub(super) fn due(&self, now: Instant) -> Due {
        if !self.drafts.is_empty() {
            return Due::Now;
        }
        if !self.is_changed {
            return Due::Never;
        }
        match self.written_at.map(|written_at| written_at + PAUSE) {
            Some(at) if now < at && self.life == Life::Open => Due::At(at),
            _ => Due::Now,
        }
    }

    /// What is to be written now.
    pub(super) fn batch(&mut self, now: Instant) -> Batch {
        let mut drafts = mem::take(&mut self.drafts);
        let may_tell = self.told_at.is_none_or(|told_at| now >= told_at + PAUSE);
        if (may_tell || self.life == Life::Finished)
            && let Some(progress) = self.untold.take()
        {
            drafts.push(Draft::Progress(progress));
            self.told_at = Some(now);
        }
        self.is_changed = self.untold.is_some();
        self.written_at = Some(now);
        Batch {
            drafts,
            summary: self.summary.clone(),
        }
    }

    /// A batch was written, and the stream is at this place now.
    pub(super) fn wrote(&mut self, last_sequence: Sequence) {
        self.summary.last_sequence = last_sequence;
    }

    /// How many events are to be written.
    pub(super) fn drafts(&self) -> usize {
        self.drafts.len()
    }

    /// What is known of the output, written or not.
    pub(super) fn summary(&self) -> &OutputSummary {
        &self.summary
    }

    fn voice(&mut self, channel: JobChannel) -> Option<&mut Voice> {
        match channel {
            JobChannel::Stdout => Some(&mut self.stdout),
            JobChannel::Stderr => Some(&mut self.stderr),
            JobChannel::Note => None,
        }
    }

    fn hear(&mut self, channel: JobChannel, part: &mut Vec<u8>, said: Said<'_>) {
        let text = match said {
            Said::Progress(progress) => return self.progress(progress),
            Said::Text(text) => text,
        };
        let mut joined = mem::take(part);
        let text = if joined.is_empty() {
            text
        } else {
            joined.extend_from_slice(text);
            &joined
        };
        let end = characters::whole(text);
        *part = text[end..].to_vec();
        self.keep(channel, &text[..end]);
    }

    /// Takes output that ends with a whole character, and keeps it as far as there is room.
    fn keep(&mut self, channel: JobChannel, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        let kept_bytes = self.summary.bytes - self.summary.cut_bytes;
        self.summary.bytes += text.len() as u64;
        self.is_changed = true;
        let fits = match &self.beyond {
            Some(_) => 0,
            None => {
                let room = usize::try_from(self.limit_bytes.saturating_sub(kept_bytes)).unwrap_or(usize::MAX);
                text.get(..room).map_or(text.len(), characters::whole)
            }
        };
        let (fitting, rest) = text.split_at(fits);
        self.draft(channel, fitting);
        if rest.is_empty() {
            return;
        }
        if self.beyond.is_none() {
            let limit = size(self.limit_bytes);
            self.note(format!(
                "output beyond {limit} is not kept; the end of it will follow"
            ));
        }
        self.summary.cut_bytes += rest.len() as u64;
        let beyond = self.beyond.get_or_insert_default();
        beyond.bytes += rest.len() as u64;
        beyond.ending.push(channel, rest);
    }

    /// Adds output to what is to be written. What comes from one channel in a row becomes one event.
    fn draft(&mut self, channel: JobChannel, mut text: &[u8]) {
        match self.drafts.last_mut() {
            Some(Draft::Piece(last, piece))
                if *last == channel && piece.len() + text.len() <= EVENT_BYTES =>
            {
                return piece.extend_from_slice(text);
            }
            _ => {}
        }
        while !text.is_empty() {
            let end = text.get(..EVENT_BYTES).map_or(text.len(), characters::whole);
            self.drafts.push(Draft::Piece(channel, text[..end].to_vec()));
            text = &text[end..];
        }
    }

    fn note(&mut self, text: String) {
        self.drafts
            .push(Draft::Piece(JobChannel::Note, text.into_bytes()));
    }
}

/// A size for people, exact.
fn size(bytes: u64) -> String {
    const KIB: u64 = 1024;
    const MIB: u64 = 1024 * KIB;
    match bytes {
        1.. if bytes.is_multiple_of(MIB) => format!("{} MiB", bytes / MIB),
        1.. if bytes.is_multiple_of(KIB) => format!("{} KiB", bytes / KIB),
        _ => format!("{bytes} bytes"),
    }
}
