//! The end of an output that exceeded the limit.

use std::collections::VecDeque;

use protocol::JobChannel;

use super::characters;

/// How much of the end is kept: enough for the last screens of a build.
const ENDING_BYTES: usize = 64 * 1024;
/// How many pieces it may have, so that it fits into one commit. There are only more if the channels alternate
/// with less than an average line each; then less is kept.
const ENDING_PIECES: usize = 900;
/// A piece is extended up to this size, so that little has to be moved when the oldest bytes are dropped.
const PIECE_BYTES: usize = 8 * 1024;

/// The last bytes of an output, with their channels.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// Oldest first.
    pieces: VecDeque<(JobChannel, Vec<u8>)>,
    bytes: usize,
}

impl Ending {
    /// Adds bytes, and drops the oldest.
    pub(super) fn push(&mut self, channel: JobChannel, bytes: &[u8]) {
        let mut bytes = bytes;
        if let Some(excess) = bytes.len().checked_sub(ENDING_BYTES) {
            // Nothing before these bytes is kept, or there would be a gap.
            *self = Self::default();
            bytes = &bytes[characters::next_start(bytes, excess)..];
        }
        self.bytes += bytes.len();
        match self.pieces.back_mut() {
            Some((last, piece)) if *last == channel && piece.len() + bytes.len() <= PIECE_BYTES => {
                piece.extend_from_slice(bytes);
            }
            _ => self.pieces.push_back((channel, bytes.to_vec())),
        }
        self.forget_oldest();
    }

    /// How much is kept.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// The pieces, oldest first.
    pub(super) fn into_pieces(self) -> impl Iterator<Item = (JobChannel, Vec<u8>)> {
        self.pieces.into_iter()
    }

    fn forget_oldest(&mut self) {
        loop {
            let excess = self.bytes.saturating_sub(ENDING_BYTES);
            let is_many = self.pieces.len() > ENDING_PIECES;
            let forgotten = match self.pieces.front_mut() {
                Some((_, oldest)) if !is_many && excess < oldest.len() => {
                    if excess > 0 {
                        let rest = characters::next_start(oldest, excess);
                        self.bytes -= oldest.drain(..rest).len();
                    }
                    return;
                }
                _ => self.pieces.pop_front(),
            };
            match forgotten {
                Some((_, piece)) => self.bytes -= piece.len(),
                None => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remembered(ending: Ending) -> (u64, Vec<(JobChannel, String)>) {
        let bytes = ending.bytes();
        let pieces = ending
            .into_pieces()
            .map(|(channel, piece)| (channel, String::from_utf8(piece).unwrap()));
        (bytes, pieces.collect())
    }

    #[test]
    fn the_last_bytes_are_remembered_exactly() {
        let text: Vec<u8> = (0..ENDING_BYTES * 3)
            .map(|number| b'a' + (number % 23) as u8)
            .collect();
        for size in [1, 7, 1000, 8192, 10_000, ENDING_BYTES, ENDING_BYTES * 3] {
            let mut ending = Ending::default();
            text.chunks(size)
                .for_each(|chunk| ending.push(JobChannel::Stdout, chunk));
            let (bytes, pieces) = remembered(ending);
            let joined: String = pieces.iter().map(|(_, piece)| piece.as_str()).collect();
            assert_eq!(bytes, ENDING_BYTES as u64, "by {size}");
            assert_eq!(joined.as_bytes(), &text[text.len() - ENDING_BYTES..], "by {size}");
        }
    }

    #[test]
    fn a_character_is_not_cut_and_the_channels_stay_apart() {
        let mut ending = Ending::default();
        ending.push(JobChannel::Stdout, "€".repeat(1000).as_bytes());
        ending.push(JobChannel::Stderr, &vec![b'x'; ENDING_BYTES - 10]);
        let expected = vec![
            (JobChannel::Stdout, "€€€".to_owned()),
            (JobChannel::Stderr, "x".repeat(ENDING_BYTES - 10)),
        ];
        assert_eq!(remembered(ending), (ENDING_BYTES as u64 - 1, expected));
    }

    #[test]
    fn there_is_no_gap_before_a_long_piece_that_begins_within_a_character() {
        let mut ending = Ending::default();
        ending.push(JobChannel::Stdout, b"a");
        ending.push(JobChannel::Stdout, "€".repeat(ENDING_BYTES).as_bytes());
        let expected = vec![(JobChannel::Stdout, "€".repeat(ENDING_BYTES / 3))];
        assert_eq!(remembered(ending), (ENDING_BYTES as u64 - 1, expected));
    }

    #[test]
    fn the_pieces_are_bounded_too() {
        let mut ending = Ending::default();
        for number in 0..ENDING_PIECES * 2 {
            let channel = if number % 2 == 0 {
                JobChannel::Stdout
            } else {
                JobChannel::Stderr
            };
            ending.push(channel, b"x");
        }
        let (bytes, pieces) = remembered(ending);
        assert_eq!((bytes, pieces.len()), (ENDING_PIECES as u64, ENDING_PIECES));
    }
}
