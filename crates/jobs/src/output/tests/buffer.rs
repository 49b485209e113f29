//! The decisions about output, without a log.

use std::time::{Duration, Instant};

use proptest::collection;
use proptest::prelude::*;
use protocol::JobChannel::{self, Note, Stderr, Stdout};
use protocol::JobProgress;

use super::engines::progress;
use crate::output::OutputSummary;
use crate::output::buffer::{Batch, Draft, Due, EVENT_BYTES, OutputBuffer};

const UNLIMITED: u64 = u64::MAX;
/// Stands for a text that is too long to print when a test fails.
const LONG: &str = "<long>";

fn piece(channel: JobChannel, text: &str) -> Draft {
    Draft::Piece(channel, text.as_bytes().to_vec())
}

fn summary(bytes: u64, cut_bytes: u64, progress: Option<JobProgress>) -> OutputSummary {
    OutputSummary {
        bytes,
        cut_bytes,
        progress,
        ..OutputSummary::default()
    }
}

/// What is written for some pieces if everything is written at the end.
fn written(limit_bytes: u64, pieces: &[(JobChannel, &str)]) -> Batch {
    let mut buffer = OutputBuffer::new(1, limit_bytes, OutputSummary::default());
    for (channel, text) in pieces {
        buffer.take(*channel, text.as_bytes());
    }
    buffer.finish();
    buffer.batch(Instant::now())
}

#[test]
fn pieces_become_events_in_the_order_of_their_arrival() {
    let batch = written(
        UNLIMITED,
        &[
            (Stdout, "a"),
            (Stdout, "b\n"),
            (Stderr, "c"),
            (Note, "n"),
            (Note, "m"),
            (Stdout, "d"),
        ],
    );
    let drafts = vec![
        piece(Stdout, "ab\n"),
        piece(Stderr, "c"),
        piece(Note, "n"),
        piece(Note, "m"),
        piece(Stdout, "d"),
    ];
    let summary = summary(5, 0, None);
    assert_eq!(batch, Batch { drafts, summary });
}

#[test]
fn a_character_in_two_pieces_is_held_back_until_it_is_whole() {
    let mut buffer = OutputBuffer::new(1, UNLIMITED, OutputSummary::default());
    let now = Instant::now();
    let mut drafts = Vec::new();
    for byte in "ß€".bytes() {
        buffer.take(Stdout, &[byte]);
        buffer.take(Stderr, b".");
        drafts.push(buffer.batch(now).drafts);
    }
    let dot = || piece(Stderr, ".");
    let expected = [
        vec![dot()],
        vec![piece(Stdout, "ß"), dot()],
        vec![dot()],
        vec![dot()],
        vec![piece(Stdout, "€"), dot()],
    ];
    assert_eq!(drafts, expected);
    buffer.take(Stdout, b"\xE2\x82");
    assert_eq!((buffer.due(now), buffer.batch(now).drafts), (Due::Never, vec![]));
    buffer.finish();
    let rest = Draft::Piece(Stdout, b"\xE2\x82".to_vec());
    assert_eq!(
        buffer.batch(now).drafts,
        [rest],
        "at the end it is given out as it is"
    );
}

#[test]
fn events_are_small_and_cut_between_characters() {
    let text = format!("a{}", "€".repeat(50_000));
    let batch = written(UNLIMITED, &[(Stdout, &text)]);
    let sizes: Vec<usize> = batch
        .drafts
        .iter()
        .map(|draft| match draft {
            Draft::Piece(Stdout, bytes) => str::from_utf8(bytes).unwrap().len(),
            other => panic!("unexpected: {other:?}"),
        })
        .collect();
    // One more byte would fit into the second event, but no whole character.
    assert_eq!(
        sizes,
        [EVENT_BYTES, EVENT_BYTES - 1, 150_001 - 2 * EVENT_BYTES + 1]
    );
}

#[test]
fn the_first_bytes_are_kept_exactly_and_then_the_end() {
    let cap = |limit: &str| {
        piece(
            Note,
            &format!("output beyond {limit} is not kept; the end of it will follow"),
        )
    };
    let (first, long) = ("f".repeat(10), "x".repeat(70_000));
    let end = |bytes: usize| piece(Stdout, &"x".repeat(bytes));
    type Case<'a> = (u64, Vec<(JobChannel, &'a str)>, Vec<Draft>, OutputSummary);
    let cases: Vec<Case<'_>> = vec![
        (
            10,
            vec![(Stdout, &first)],
            vec![piece(Stdout, &first)],
            summary(10, 0, None),
        ),
        (
            10,
            vec![(Stdout, &first), (Stderr, "e")],
            vec![piece(Stdout, &first), cap("10 bytes"), piece(Stderr, "e")],
            summary(11, 0, None),
        ),
        (
            1024,
            vec![(Stdout, &long)],
            vec![
                end(1024),
                cap("1 KiB"),
                piece(
                    Note,
                    &format!("{} bytes were left out here", 70_000 - 1024 - 65_536),
                ),
                end(65_536),
            ],
            summary(70_000, 70_000 - 1024 - 65_536, None),
        ),
        (
            0,
            vec![(Stdout, "a")],
            vec![cap("0 bytes"), piece(Stdout, "a")],
            summary(1, 0, None),
        ),
        // A character that doesn't fit completely isn't kept in part.
        (
            2,
            vec![(Stdout, "a€b")],
            vec![piece(Stdout, "a"), cap("2 bytes"), piece(Stdout, "€b")],
            summary(5, 0, None),
        ),
        // Once something was dropped, everything after it is dropped too, even if it would fit.
        (
            2,
            vec![(Stdout, "a€"), (Stderr, "e")],
            vec![
                piece(Stdout, "a"),
                cap("2 bytes"),
                piece(Stdout, "€"),
                piece(Stderr, "e"),
            ],
            summary(5, 0, None),
        ),
        // Progress lines take up no room.
        (
            2,
            vec![(Stdout, "::progress 1/2\na\n")],
            vec![piece(Stdout, "a\n"), Draft::Progress(progress(1, Some(2), ""))],
            summary(2, 0, Some(progress(1, Some(2), ""))),
        ),
    ];
    for (limit, pieces, drafts, summary) in cases {
        assert_eq!(written(limit, &pieces), Batch { drafts, summary }, "{limit}");
    }
}

#[test]
fn what_is_cut_is_known_before_the_end_too() {
    let mut buffer = OutputBuffer::new(1, 1, OutputSummary::default());
    let now = Instant::now();
    buffer.take(Stdout, b"abc");
    assert_eq!(buffer.batch(now).summary, summary(3, 2, None));
    buffer.take(Stdout, b"d");
    assert_eq!(
        buffer.due(now),
        Due::At(now + Duration::from_millis(100)),
        "the head can wait"
    );
    assert_eq!(buffer.batch(now).summary, summary(4, 3, None));
    buffer.finish();
    assert_eq!(buffer.batch(now).summary, summary(4, 0, None));
}

#[test]
fn a_later_attempt_says_so_and_goes_on_counting() {
    let before = summary(8, 3, Some(progress(1, None, "")));
    let mut buffer = OutputBuffer::new(2, 6, before);
    buffer.take(Stdout, b"xy");
    buffer.finish();
    let drafts = vec![
        piece(Note, "attempt 2"),
        piece(Stdout, "x"),
        piece(
            Note,
            "output beyond 6 bytes is not kept; the end of it will follow",
        ),
        piece(Stdout, "y"),
    ];
    let summary = summary(10, 3, None);
    assert_eq!(buffer.batch(Instant::now()), Batch { drafts, summary });
}

#[test]
fn progress_is_written_ten_times_a_second_and_the_latest_always() {
    let mut buffer = OutputBuffer::new(1, UNLIMITED, OutputSummary::default());
    let start = Instant::now();
    let at = |millis| start + Duration::from_millis(millis);
    let told = |done| Draft::Progress(progress(done, None, ""));
    let say = |buffer: &mut OutputBuffer, done| buffer.progress(progress(done, None, ""));

    say(&mut buffer, 1);
    assert_eq!(buffer.due(at(0)), Due::Now);
    assert_eq!(buffer.batch(at(0)).drafts, [told(1)]);
    assert_eq!(buffer.due(at(0)), Due::Never);
    say(&mut buffer, 1);
    assert_eq!(buffer.due(at(1)), Due::Never, "nothing new was said");

    say(&mut buffer, 2);
    say(&mut buffer, 3);
    assert_eq!(buffer.due(at(10)), Due::At(at(100)));
    buffer.take(Stdout, b"text");
    let batch = buffer.batch(at(20));
    assert_eq!(batch.drafts, [piece(Stdout, "text")]);
    assert_eq!(
        batch.summary.progress,
        Some(progress(3, None, "")),
        "the head has the latest"
    );
    assert_eq!(buffer.due(at(30)), Due::At(at(120)));
    assert_eq!(buffer.due(at(120)), Due::Now);
    assert_eq!(buffer.batch(at(120)).drafts, [told(3)]);

    say(&mut buffer, 4);
    buffer.finish();
    assert_eq!(buffer.due(at(121)), Due::Now);
    assert_eq!(buffer.batch(at(121)).drafts, [told(4)]);
    assert_eq!(buffer.due(at(121)), Due::Never);
}

#[test]
fn a_long_text_of_progress_is_shortened() {
    let mut buffer = OutputBuffer::new(1, UNLIMITED, OutputSummary::default());
    buffer.progress(progress(1, None, &"€".repeat(1000)));
    assert_eq!(
        buffer.summary().progress,
        Some(progress(1, None, &"€".repeat(341)))
    );
}

/// The result of a text that arrives in pieces, with writes after some of them.
fn said(
    text: &[u8],
    cuts: &[(usize, bool)],
    limit_bytes: u64,
) -> (Vec<(JobChannel, Vec<u8>)>, OutputSummary) {
    let mut buffer = OutputBuffer::new(1, limit_bytes, OutputSummary::default());
    let (mut start, mut drafts) = (0, Vec::new());
    let now = Instant::now();
    for &(end, is_written) in cuts {
        buffer.take(Stdout, &text[start..end]);
        start = end;
        if is_written {
            drafts.extend(buffer.batch(now).drafts);
        }
    }
    buffer.take(Stdout, &text[start..]);
    buffer.finish();
    let last = buffer.batch(now);
    drafts.extend(last.drafts);
    let mut pieces: Vec<(JobChannel, Vec<u8>)> = Vec::new();
    for draft in drafts {
        match (draft, pieces.last_mut()) {
            (Draft::Progress(_), _) => {}
            (Draft::Piece(channel, bytes), Some((known, piece))) if *known == channel && channel != Note => {
                assert!(str::from_utf8(&bytes).is_ok());
                piece.extend_from_slice(&bytes);
            }
            (Draft::Piece(channel, bytes), _) => pieces.push((channel, bytes)),
        }
    }
    let kept: usize = pieces
        .iter()
        .filter(|(channel, _)| *channel != Note)
        .map(|(_, piece)| piece.len())
        .sum();
    assert_eq!(kept as u64, last.summary.bytes - last.summary.cut_bytes);
    (pieces, last.summary)
}

proptest! {
    #[test]
    fn any_split_of_any_text_is_written_the_same(
        parts in collection::vec(
            prop_oneof![
                4 => Just("\n".to_owned()),
                4 => Just("::progress ".to_owned()),
                4 => (0..3u64, 0..3u64).prop_map(|(done, total)| format!("{done}/{total}")),
                2 => Just("::".to_owned()),
                4 => "[a-z ß€🦀]{0,6}",
                1 => Just(LONG.to_owned()),
            ],
            0..30,
        ),
        places in collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..12),
        limit_bytes in prop_oneof![Just(UNLIMITED), 0..60u64, 0..100_000u64],
    ) {
        let text = parts.concat().replace(LONG, &"€".repeat(15_000)).into_bytes();
        let place = |(place, is_written): &(prop::sample::Index, bool)| (place.index(text.len() + 1), *is_written);
        let mut cuts: Vec<(usize, bool)> = places.iter().map(place).collect();
        cuts.sort_unstable();
        let is_same = said(&text, &cuts, limit_bytes) == said(&text, &[], limit_bytes);
        prop_assert!(is_same, "it is not the same");
    }
}
