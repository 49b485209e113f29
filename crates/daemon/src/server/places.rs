//! How many connections and streams there is room for.
//!
//! What is short is descriptors. A connection has a place among those of its listener while it asks and is answered. One
//! whose answer is a stream gives that place back, and has one of the places for streams instead: so however many readers
//! there are, there is room for requests, and nobody on TCP can keep the owner away from the socket.

use crate::options::StreamLimit;

/// How many connections each listener has at once, besides those whose answer is a stream: several for every agent that
/// one machine can bear. When there are more, the one that has waited longest for its peer gives way (`seats.rs`); if all
/// are being answered, further ones wait in the backlog of the kernel until one ends.
pub(super) const CONNECTIONS: usize = 256;

/// How many connections both listeners have.
const OF_BOTH: usize = 2 * CONNECTIONS;

/// How many streams there are at most, whatever the system allows. Each takes some kilobytes.
const MOST_STREAMS: usize = 16_384;

/// How many streams there are at least, even if descriptors may run out then.
const FEWEST_STREAMS: usize = 64;

/// What part of the descriptors is for everything else: the log, pipes of children, files of sandboxes.
const FOR_THE_REST: u64 = 4;

/// How many streams may be open at once, on a system that allows so many descriptors; further ones are refused.
pub(crate) fn stream_places(limit: StreamLimit, open_files: Option<u64>) -> usize {
    if let StreamLimit::AtMost(places) = limit {
        return places;
    }
    let Some(open_files) = open_files else {
        return MOST_STREAMS;
    };
    let ours = usize::try_from(open_files - open_files / FOR_THE_REST).unwrap_or(usize::MAX);
    ours.saturating_sub(OF_BOTH).clamp(FEWEST_STREAMS, MOST_STREAMS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_follow_from_descriptors() {
        for (open_files, expected) in [
            (Some(0), FEWEST_STREAMS),
            (Some(256), FEWEST_STREAMS),
            (Some(1024), 256),
            (Some(4096), 2560),
            (Some(20_000), 14_488),
            (Some(1 << 20), MOST_STREAMS),
            (Some(u64::MAX), MOST_STREAMS),
            (None, MOST_STREAMS),
        ] {
            let places = stream_places(StreamLimit::ByDescriptors, open_files);
            assert_eq!(places, expected, "{open_files:?}");
            assert_eq!(stream_places(StreamLimit::AtMost(7), open_files), 7);
        }
    }
}
