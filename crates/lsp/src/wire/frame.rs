//! From bytes to bodies.
//!
//! Invariants:
//!
//! 1. Memory follows what has arrived, never what a header claims: the buffer at most doubles when it is full, and
//!    never grows beyond the body that is being read.
//! 2. A body is cut out of the buffer, not copied. A large allocation goes back to the system once the body has been
//!    dropped; otherwise the buffer is reused.
//! 3. A body over the limit is skipped piece by piece. Only its two ends are kept, for the id of what it answers.
//! 4. After an error, nothing more is decoded: there is no way to find the next message again.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut, buf::Limit};

use super::{
    header::{FrameError, Head, HeaderReader},
    message::MessageId,
    oversized::Skipped,
};

/// How much is read at once: what a pipe holds by default.
const READ_BYTES: usize = 64 * 1024;

/// With less room than this, a read isn't worth the system call.
const LEAST_ROOM: usize = 4 * 1024;

/// The most that a peer may send.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FrameLimits {
    pub header_lines: usize,
    /// Bytes of all headers of one message.
    pub header_bytes: usize,
    /// Bytes of a body. A longer one is skipped, and only the request that it answers fails.
    pub body_bytes: usize,
    /// Bytes of a body that is worth skipping. A longer one isn't a message but a broken or hostile header.
    pub skipped_bytes: u64,
}

impl Default for FrameLimits {
    fn default() -> Self {
        Self {
            header_lines: 32,
            header_bytes: 8 * 1024,
            body_bytes: 64 * 1024 * 1024,
            skipped_bytes: 4 * 1024 * 1024 * 1024,
        }
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Frame {
    Body(Bytes),
    /// A body over the limit, which has been skipped.
    Oversized(Oversized),
}

/// A body that was too long to keep.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Oversized {
    pub length: u64,
    /// The request that it answers, if it is an answer and the id was near one of its ends.
    pub id: Option<MessageId>,
}

/// Takes bytes in pieces of any size and returns whole bodies.
#[derive(Debug)]
pub struct Decoder {
    limits: FrameLimits,
    buffer: BytesMut,
    /// The size of the allocation behind the buffer. The buffer itself only knows its remaining part.
    allocated: usize,
    place: FramePosition,
}

#[derive(Debug)]
enum FramePosition {
    Header(HeaderReader),
    Body { length: usize },
    Skipping(Skipped),
    Broken(FrameError),
}

impl Decoder {
    /// A decoder at the beginning of a connection. It takes no memory until bytes come.
    pub fn new(limits: FrameLimits) -> Self {
        Self {
            limits,
            buffer: BytesMut::new(),
            allocated: 0,
            place: FramePosition::Header(HeaderReader::default()),
        }
    }

    /// Takes as many bytes as there is room for, at least one, and returns how many. Ask for frames in between.
    pub fn feed(&mut self, bytes: &[u8]) -> usize {
        let mut room = self.room();
        let taken = room.remaining_mut().min(bytes.len());
        room.put_slice(&bytes[..taken]);
        taken
    }

    /// Where to read the next bytes to. There is always room.
    pub fn room(&mut self) -> Limit<&mut BytesMut> {
        self.make_room();
        let spare = self.buffer.capacity() - self.buffer.len();
        let wanted = match self.place {
            // Nothing is read beyond a large body, so that nothing has to be copied when its memory is
            // released.
            FramePosition::Body { length } if length > READ_BYTES => {
                length.saturating_sub(self.buffer.len()).max(1)
            }
            _ => spare,
        };
        (&mut self.buffer).limit(spare.min(wanted))
    }

    /// The next frame, if it is complete. Call it until it returns `None` before you feed more bytes.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        self.advance().inspect_err(|error| {
            self.place = FramePosition::Broken(error.clone());
            self.set_buffer(BytesMut::new());
        })
    }

    /// Whether a message has begun and isn't complete yet.
    pub fn is_inside_message(&self) -> bool {
        match &self.place {
            FramePosition::Header(_) => !self.buffer.is_empty(),
            FramePosition::Body { .. } | FramePosition::Skipping(_) => true,
            FramePosition::Broken(_) => false,
        }
    }

    /// How many bytes of memory it holds; returned bodies that are still in use aren't counted.
    pub fn allocated_bytes(&self) -> usize {
        let kept = match &self.place {
            FramePosition::Skipping(skipped) => skipped.allocated_bytes(),
            _ => 0,
        };
        self.allocated + kept
    }

    fn advance(&mut self) -> Result<Option<Frame>, FrameError> {
        loop {
            match &mut self.place {
                FramePosition::Header(header) => {
                    let Some(head) = header.read(&self.buffer, &self.limits)? else {
                        return Ok(None);
                    };
                    self.enter_body(&head);
                }
                FramePosition::Body { length } => {
                    let length = *length;
                    if self.buffer.len() < length {
                        return Ok(None);
                    }
                    let body = self.buffer.split_to(length).freeze();
                    self.place = FramePosition::Header(HeaderReader::default());
                    self.give_back();
                    return Ok(Some(Frame::Body(body)));
                }
                FramePosition::Skipping(skipped) => {
                    let taken = skipped.take(&self.buffer);
                    self.buffer.advance(taken);
                    if !skipped.is_over() {
                        return Ok(None);
                    }
                    let oversized = Oversized {
                        length: skipped.length(),
                        id: skipped.find_answered_id(),
                    };
                    self.place = FramePosition::Header(HeaderReader::default());
                    return Ok(Some(Frame::Oversized(oversized)));
                }
                FramePosition::Broken(error) => return Err(error.clone()),
            }
        }
    }

    fn enter_body(&mut self, head: &Head) {
        self.buffer.advance(head.header_bytes);
        self.place = match usize::try_from(head.body_bytes) {
            Ok(length) if length <= self.limits.body_bytes => FramePosition::Body { length },
            _ => FramePosition::Skipping(Skipped::new(head.body_bytes)),
        };
    }

    fn make_room(&mut self) {
        let held = self.buffer.len();
        let spare = self.buffer.capacity() - held;
        let most = match self.place {
            FramePosition::Body { length } if length > READ_BYTES => length.max(held + 1),
            _ => READ_BYTES.max(held + LEAST_ROOM),
        };
        if spare >= LEAST_ROOM || (spare > 0 && held + spare >= most) {
            return;
        }
        // The space before the buffer is free again if all bodies that were cut out of it have been dropped.
        if self.allocated <= READ_BYTES && self.buffer.try_reclaim(READ_BYTES.saturating_sub(held).max(1)) {
            return;
        }
        let mut larger = BytesMut::with_capacity(most.min(READ_BYTES.max(2 * held)));
        larger.extend_from_slice(&self.buffer);
        self.set_buffer(larger);
    }

    /// Releases a large buffer (invariant 2).
    fn give_back(&mut self) {
        if self.allocated > READ_BYTES {
            let mut rest = BytesMut::with_capacity(self.buffer.len());
            rest.extend_from_slice(&self.buffer);
            self.set_buffer(rest);
        }
    }

    fn set_buffer(&mut self, buffer: BytesMut) {
        self.allocated = buffer.capacity();
        self.buffer = buffer;
    }
}
