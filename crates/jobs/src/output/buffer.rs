//! Collects the output of an attempt, and decides what to write next. Pure: no log, no clock, no task.

use std::mem;
use std::time::{Duration, Instant};

use eventlog::Sequence;
use protocol::{JobChannel, JobProgress};

use super::characters;
use super::ending::Ending;
use super::item::OutputSummary;
use super::lines::{LinePart, Lines};

/// The size limit for one event of output. A reader holds whole events, so they stay small.
pub(super) const EVENT_BYTES: usize = 64 * 1024;
/// Progress is written at most this often. The latest one is never omitted.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest text of a progress. It is in the head, which is written with every piece.
const PROGRESS_TEXT_BYTES: usize = 1024;

/// An event to write.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Draft {
    /// A piece of output, or a note.
    Piece(JobChannel, Vec<u8>),
    Progress(JobProgress),
}

/// When to write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Due {
    Now,
    /// Not before this time.
    At(Instant),
    /// There is nothing to write.
    Never,
}

/// What is written in one commit.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Batch {
    /// The events to append.
    pub(super) drafts: Vec<Draft>,
    pub(super) summary: OutputSummary,
}

/// Whether there will be more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum BufferState {
    Open,
    Finished,
}

#[derive(Debug)]
pub(super) struct OutputBuffer {
    limit_bytes: u64,
    summary: OutputSummary,
    stdout: ChannelState,
    stderr: ChannelState,
    /// The events of the next commit.
    drafts: Vec<Draft>,
    /// The output after the limit.
    overflow: Option<Overflow>,
    /// Progress that is in the head, but not in an event yet.
    unwritten_progress: Option<JobProgress>,
    /// When an event last had progress.
    progress_written_at: Option<Instant>,
    /// Whether the head differs from what was written.
    is_changed: bool,
    written_at: Option<Instant>,
    life: BufferState,
}

/// What is held back of a channel.
#[derive(Debug, Default)]
struct ChannelState {
    lines: Lines,
    /// The first bytes of an incomplete character.
    part: Vec<u8>,
}

/// The output after the limit.
#[derive(Debug, Default)]
struct Overflow {
    bytes: u64,
    ending: Ending,
}

impl OutputBuffer {
    /// Creates the buffer of an attempt that follows this output.
    pub(super) fn new(attempt: u32, limit_bytes: u64, before: OutputSummary) -> Self {
        let mut buffer = Self {
            limit_bytes,
            summary: before,
            stdout: ChannelState::default(),
            stderr: ChannelState::default(),
            drafts: Vec::new(),
            overflow: None,
            unwritten_progress: None,
            progress_written_at: None,
            is_changed: false,
            written_at: None,
            life: BufferState::Open,
        };
        if attempt > 1 {
            // The progress of the last attempt says nothing about this one.
            buffer.summary.progress = None;
            buffer.note(format!("attempt {attempt}"));
        }
        buffer
    }

    pub(super) fn take(&mut self, channel: JobChannel, bytes: &[u8]) {
        let Some(channel_state) = self.channel_state(channel) else {
            return self.drafts.push(Draft::Piece(channel, bytes.to_vec()));
        };
        let ChannelState { mut lines, mut part } = mem::take(channel_state);
        lines.take(bytes, |said| self.accept(channel, &mut part, said));
        if let Some(channel_state) = self.channel_state(channel) {
            *channel_state = ChannelState { lines, part };
        }
    }

    pub(super) fn progress(&mut self, mut progress: JobProgress) {
        if progress.text.len() > PROGRESS_TEXT_BYTES {
            let end = characters::whole(&progress.text.as_bytes()[..PROGRESS_TEXT_BYTES]);
            progress.text.truncate(end);
        }
        if self.summary.progress.as_ref() != Some(&progress) {
            self.summary.progress = Some(progress.clone());
            self.unwritten_progress = Some(progress);
            self.is_changed = true;
        }
    }

    /// Ends the output: adds what was held back, and the end of what exceeded the limit.
    pub(super) fn finish(&mut self) {
        self.life = BufferState::Finished;
        for channel in [JobChannel::Stdout, JobChannel::Stderr] {
            let ChannelState { mut lines, mut part } =
                self.channel_state(channel).map(mem::take).unwrap_or_default();
            lines.finish(|said| self.accept(channel, &mut part, said));
            self.keep(channel, &part);
        }
        let Some(Overflow { bytes, ending }) = self.overflow.take() else {
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

    /// When to write.
    pub(super) fn due(&self, now: Instant) -> Due {
        if !self.drafts.is_empty() {
            return Due::Now;
        }
        if !self.is_changed {
            return Due::Never;
        }
        match self.written_at.map(|written_at| written_at + PAUSE) {
            Some(at) if now < at && self.life == BufferState::Open => Due::At(at),
            _ => Due::Now,
        }
    }

    pub(super) fn batch(&mut self, now: Instant) -> Batch {
        let mut drafts = mem::take(&mut self.drafts);
        let may_tell = self
            .progress_written_at
            .is_none_or(|progress_written_at| now >= progress_written_at + PAUSE);
        if (may_tell || self.life == BufferState::Finished)
            && let Some(progress) = self.unwritten_progress.take()
        {
            drafts.push(Draft::Progress(progress));
            self.progress_written_at = Some(now);
        }
        self.is_changed = self.unwritten_progress.is_some();
        self.written_at = Some(now);
        Batch {
            drafts,
            summary: self.summary.clone(),
        }
    }

    /// Records that a batch was written, and that the stream is now at this position.
    pub(super) fn wrote(&mut self, last_sequence: Sequence) {
        self.summary.last_sequence = last_sequence;
    }

    /// How many events there are to write.
    pub(super) fn drafts(&self) -> usize {
        self.drafts.len()
    }

    /// The summary of the output, written or not.
    pub(super) fn summary(&self) -> &OutputSummary {
        &self.summary
    }

    fn channel_state(&mut self, channel: JobChannel) -> Option<&mut ChannelState> {
        match channel {
            JobChannel::Stdout => Some(&mut self.stdout),
            JobChannel::Stderr => Some(&mut self.stderr),
            JobChannel::Note => None,
        }
    }

    fn accept(&mut self, channel: JobChannel, part: &mut Vec<u8>, said: LinePart<'_>) {
        let text = match said {
            LinePart::Progress(progress) => return self.progress(progress),
            LinePart::Text(text) => text,
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

    /// Adds output that ends with a complete character, within the limit.
    fn keep(&mut self, channel: JobChannel, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        let kept_bytes = self.summary.bytes - self.summary.cut_bytes;
        self.summary.bytes += text.len() as u64;
        self.is_changed = true;
        let fits = match &self.overflow {
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
        if self.overflow.is_none() {
            let limit = size(self.limit_bytes);
            self.note(format!(
                "output beyond {limit} is not kept; the end of it will follow"
            ));
        }
        self.summary.cut_bytes += rest.len() as u64;
        let overflow = self.overflow.get_or_insert_default();
        overflow.bytes += rest.len() as u64;
        overflow.ending.push(channel, rest);
    }

    /// Adds output to the next events. Consecutive output of one channel becomes one event.
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

/// An exact size, for users.
fn size(bytes: u64) -> String {
    const KIB: u64 = 1024;
    const MIB: u64 = 1024 * KIB;
    match bytes {
        1.. if bytes.is_multiple_of(MIB) => format!("{} MiB", bytes / MIB),
        1.. if bytes.is_multiple_of(KIB) => format!("{} KiB", bytes / KIB),
        _ => format!("{bytes} bytes"),
    }
}
