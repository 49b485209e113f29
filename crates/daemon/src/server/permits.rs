//! How many connections and streams may be open at once.
//!
//! File descriptors are the scarce resource. A connection holds one of its listener's permits until its request is
//! answered. If the answer is a stream, it returns that permit and holds one of the permits for streams instead. So there
//! is always room for requests, however many streams are open, and clients on TCP can't lock the owner out of the socket.

use crate::options::StreamLimit;

/// How many connections each listener has at once, not counting streams: several for every agent that one machine can
/// handle. Beyond that, the one that has been idle longest is closed (`connections.rs`); if all are busy, further ones
/// wait in the kernel's backlog.
pub(super) const MAX_CONNECTIONS: usize = 256;

const CONNECTIONS_OF_BOTH_LISTENERS: usize = 2 * MAX_CONNECTIONS;

/// The most streams, whatever the system allows. Each takes some kilobytes.
const MOST_STREAMS: usize = 16_384;

/// The fewest streams, even if descriptors may run out then.
const FEWEST_STREAMS: usize = 64;

/// One in this many descriptors is reserved for everything else: the log, pipes of children, files of sandboxes.
const FOR_THE_REST: u64 = 4;

/// How many streams may be open at once if the system allows `open_files` descriptors. Further ones are refused.
pub(crate) fn stream_permits(limit: StreamLimit, open_files: Option<u64>) -> usize {
    if let StreamLimit::AtMost(permits) = limit {
        return permits;
    }
    let Some(open_files) = open_files else {
        return MOST_STREAMS;
    };
    let ours = usize::try_from(open_files - open_files / FOR_THE_REST).unwrap_or(usize::MAX);
    ours.saturating_sub(CONNECTIONS_OF_BOTH_LISTENERS)
        .clamp(FEWEST_STREAMS, MOST_STREAMS)
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
            let permits = stream_permits(StreamLimit::ByDescriptors, open_files);
            assert_eq!(permits, expected, "{open_files:?}");
            assert_eq!(stream_permits(StreamLimit::AtMost(7), open_files), 7);
        }
    }
}
