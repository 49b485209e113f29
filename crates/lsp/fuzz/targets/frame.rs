//! Any bytes in any chunking: the same frames, no panic, bounded memory.

#![no_main]

use libfuzzer_sys::fuzz_target;
use lsp::{Decoder, Frame, FrameLimits};

const LIMITS: FrameLimits = FrameLimits {
    header_lines: 8,
    header_bytes: 256,
    body_bytes: 4096,
    skipped_bytes: 1_000_000,
};

/// One read, and both ends of a skipped body.
const MOST_BYTES: usize = LIMITS.body_bytes + 64 * 1024 + 4 * 1024 + 2 * 4 * 1024;

fn decode(bytes: &[u8], piece: usize) -> (Vec<Frame>, bool) {
    let mut decoder = Decoder::new(LIMITS);
    let mut frames = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let taken = decoder.feed(&rest[..piece.min(rest.len())]);
        assert!(taken > 0);
        rest = &rest[taken..];
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(_) => return (frames, true),
            }
            assert!(decoder.allocated_bytes() <= MOST_BYTES);
        }
        assert!(decoder.allocated_bytes() <= MOST_BYTES);
    }
    (frames, false)
}

fuzz_target!(|input: (u8, &[u8])| {
    let (piece, bytes) = input;
    assert_eq!(decode(bytes, usize::from(piece).max(1)), decode(bytes, usize::MAX));
});
