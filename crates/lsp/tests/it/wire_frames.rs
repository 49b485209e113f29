//! Frames in every chunking, whole and broken, and what they cost.

use bytes::Bytes;
use lsp::{Decoder, Frame, FrameError, FrameLimits, MessageId, Oversized};
use proptest::prelude::*;

use crate::support::framed;

/// What a buffer may have on top of the message that is in it: one read, and both ends of a skipped body.
const SLACK: usize = 64 * 1024 + 4 * 1024 + 2 * 4 * 1024;

/// Decodes all of it in pieces of these sizes, over and over, and watches the memory.
fn decode(limits: FrameLimits, bytes: &[u8], pieces: &[usize]) -> (Vec<Frame>, Option<FrameError>) {
    let mut decoder = Decoder::new(limits);
    let mut frames = Vec::new();
    let mut rest = bytes;
    let mut sizes = pieces.iter().cycle();
    while !rest.is_empty() {
        let size = (*sizes.next().unwrap()).clamp(1, rest.len());
        let taken = decoder.feed(&rest[..size]);
        assert!(taken > 0, "there is always room");
        rest = &rest[taken..];
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(decoder.next_frame(), Err(error.clone()), "an error is final");
                    assert_eq!(decoder.allocated_bytes(), 0);
                    return (frames, Some(error));
                }
            }
            assert_cheap(&decoder, &limits, bytes.len() - rest.len());
        }
        assert_cheap(&decoder, &limits, bytes.len() - rest.len());
    }
    (frames, None)
}

/// The memory is bounded by the limits, and by twice of what has come.
fn assert_cheap(decoder: &Decoder, limits: &FrameLimits, came: usize) {
    let allocated = decoder.allocated_bytes();
    let bound = limits.body_bytes + SLACK;
    assert!(allocated <= bound, "{allocated} bytes against a limit of {bound}");
    assert!(
        allocated <= 2 * came + SLACK,
        "{allocated} bytes for {came} that came"
    );
}

fn body(text: &str) -> Frame {
    Frame::Body(Bytes::copy_from_slice(text.as_bytes()))
}

fn small() -> FrameLimits {
    FrameLimits {
        header_lines: 3,
        header_bytes: 100,
        body_bytes: 50,
        skipped_bytes: 1_000_000,
    }
}

#[test]
fn frames_are_found_in_every_chunking() {
    let cases: &[(&str, &[&str])] = &[
        ("", &[]),
        ("Content-Length: 2\r\n\r\n{}", &["{}"]),
        ("Content-Length: 0\r\n\r\n", &[""]),
        ("Content-Length:2\r\n\r\n{}", &["{}"]),
        ("content-length: \t 2 \r\n\r\n{}", &["{}"]),
        ("CONTENT-LENGTH: 0002\r\n\r\n{}", &["{}"]),
        (
            "Content-Length: 4\r\n\r\n\"é\"Content-Length: 1\r\n\r\n1",
            &["\"é\"", "1"],
        ),
        (
            "Content-Length: 2\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n{}",
            &["{}"],
        ),
        (
            "Content-Type: x;charset=\"UTF8\"\r\nContent-Length: 2\r\n\r\n{}",
            &["{}"],
        ),
        (
            "Content-Type: text/plain\r\nX-Other: : :\r\nContent-Length: 1\r\n\r\n1",
            &["1"],
        ),
        // Not whole yet.
        ("Content-Length: 3\r\n\r\n{}", &[]),
        ("Content-Length: 3\r", &[]),
    ];
    for (bytes, expected) in cases {
        let expected: Vec<_> = expected.iter().map(|text| body(text)).collect();
        for piece in 1..=bytes.len().max(1) {
            let found = decode(small(), bytes.as_bytes(), &[piece]);
            assert_eq!(found, (expected.clone(), None), "{bytes:?} in pieces of {piece}");
        }
    }
}

#[test]
fn broken_frames_are_told_apart() {
    let not_a_header = |line: &str| FrameError::NotAHeader {
        line: line.to_owned(),
    };
    let invalid = |value: &str| FrameError::InvalidLength {
        value: value.to_owned(),
    };
    let absurd = |value: &str| FrameError::AbsurdLength {
        value: value.to_owned(),
        limit: 1_000_000,
    };
    let long_header = format!("X: {}", "x".repeat(200));
    let long_line = format!("{}\r\n", "x".repeat(90));
    let cases: Vec<(&str, FrameError)> = vec![
        ("\r\n", FrameError::MissingLength),
        ("X: 1\r\n\r\n{}", FrameError::MissingLength),
        (
            "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
            FrameError::DuplicateLength,
        ),
        ("Content-Length: -1\r\n\r\n", invalid("-1")),
        ("Content-Length: +1\r\n\r\n", invalid("+1")),
        ("Content-Length: 1 2\r\n\r\n", invalid("1 2")),
        ("Content-Length: \r\n\r\n", invalid("")),
        ("Content-Length: 0x10\r\n\r\n", invalid("0x10")),
        ("Content-Length: 99999999999999\r\n\r\n", absurd("99999999999999")),
        (
            "Content-Length: 18446744073709551616\r\n\r\n",
            absurd("18446744073709551616"),
        ),
        (
            "Content-Type: x; charset=latin1\r\n",
            FrameError::WrongCharset {
                value: "x; charset=latin1".to_owned(),
            },
        ),
        ("Starting up...\r\n", not_a_header("Starting up...")),
        (&long_line, not_a_header(&long_line[..80])),
        (": 1\r\n", not_a_header(":")),
        (" Content-Length: 2\r\n", not_a_header(" ")),
        ("Content Length: 2\r\n", not_a_header("Content Length: 2")),
        // A text without a line end is refused at its first byte, and does not wait for more.
        ("{\"jsonrpc\"", not_a_header("{")),
        (
            "Content-Length: 2\n",
            FrameError::BareLineFeed {
                line: "Content-Length: 2".to_owned(),
            },
        ),
        (
            "X: 1\r\nX: 2\r\nX: 3\r\nX: 4\r\n",
            FrameError::TooManyHeaders { limit: 3 },
        ),
        (&long_header, FrameError::HeadersTooLong { limit: 100 }),
    ];
    for (bytes, expected) in cases {
        let whole = format!("Content-Length: 2\r\n\r\n{{}}{bytes}");
        for piece in 1..=3 {
            let found = decode(small(), whole.as_bytes(), &[piece]);
            let (frames, error) = found;
            assert_eq!(frames, [body("{}")], "{bytes:?}");
            // What is repeated of a line depends on how much of it has come.
            match (&error, &expected) {
                (Some(FrameError::NotAHeader { line }), FrameError::NotAHeader { line: expected }) => {
                    assert!(line.starts_with(expected.as_str()), "{line:?} for {bytes:?}");
                }
                _ => assert_eq!(error, Some(expected.clone()), "{bytes:?} in pieces of {piece}"),
            }
        }
    }
}

#[test]
fn the_limits_are_what_is_still_allowed() {
    let limits = small();
    let lines = "A: 1\r\nB: 2\r\nContent-Length: 50\r\n\r\n";
    let text = "x".repeat(50);
    let at_the_limit = format!("{lines}{text}");
    assert_eq!(
        decode(limits, at_the_limit.as_bytes(), &[7]),
        (vec![body(&text)], None)
    );
    // The headers with their empty line have as many bytes as they may.
    let filling = "x".repeat(100 - "Content-Length: 1\r\nX: \r\n\r\n".len());
    let at_the_limit = format!("Content-Length: 1\r\nX: {filling}\r\n\r\n1");
    assert_eq!(
        decode(limits, at_the_limit.as_bytes(), &[7]),
        (vec![body("1")], None)
    );
    let one_more = format!("Content-Length: 1\r\nX: {filling}x\r\n\r\n1");
    let error = FrameError::HeadersTooLong { limit: 100 };
    assert_eq!(decode(limits, one_more.as_bytes(), &[7]), (vec![], Some(error)));
}

#[test]
fn a_body_over_the_limit_is_skipped_and_the_next_one_found() {
    let long = "x".repeat(30_000);
    let cases = [
        (
            format!(r#"{{"id":1,"result":"{long}"}}"#),
            Some(MessageId::Number(1)),
        ),
        (
            format!(r#"{{"result":"{long}","id":"a"}}"#),
            Some(MessageId::Text("a".to_owned())),
        ),
        (format!(r#"{{"method":"m","params":"{long}"}}"#), None),
        (long, None),
    ];
    for (text, id) in cases {
        let bytes = [framed(&text), framed("{}"), framed(&text)].concat();
        let oversized = Frame::Oversized(Oversized {
            length: text.len() as u64,
            id,
        });
        for piece in [1, 10, 4096, 100_000] {
            let expected = vec![oversized.clone(), body("{}"), oversized.clone()];
            assert_eq!(decode(small(), &bytes, &[piece]), (expected, None));
        }
    }
}

#[test]
fn nothing_is_reserved_for_what_a_header_claims() {
    let mut decoder = Decoder::new(FrameLimits::default());
    let header = format!("Content-Length: {}\r\n\r\n", FrameLimits::default().body_bytes);
    assert_eq!(decoder.feed(header.as_bytes()), header.len());
    assert_eq!(decoder.next_frame(), Ok(None));
    assert!(decoder.is_inside_message());
    // The buffer grows with what comes, and is never more than twice of it.
    let mut came = header.len();
    while came < 1_000_000 {
        came += decoder.feed(&[b'x'; 1000]);
        assert_eq!(decoder.next_frame(), Ok(None));
        assert!(bytes::BufMut::has_remaining_mut(&decoder.room()));
        let allocated = decoder.allocated_bytes();
        assert!(
            allocated <= (2 * came).max(64 * 1024),
            "{allocated} bytes for {came}"
        );
    }
}

#[test]
fn a_large_message_leaves_no_large_buffer_behind() {
    let large = "x".repeat(20_000_000);
    let mut decoder = Decoder::new(FrameLimits::default());
    for _ in 0..3 {
        let bytes = [framed(&large), framed("{}")].concat();
        let mut rest = &bytes[..];
        let mut lengths = Vec::new();
        let mut most = 0;
        while !rest.is_empty() {
            let taken = decoder.feed(rest);
            rest = &rest[taken..];
            most = most.max(decoder.allocated_bytes());
            while let Some(Frame::Body(body)) = decoder.next_frame().unwrap() {
                lengths.push(body.len());
                assert!(decoder.allocated_bytes() <= 64 * 1024);
            }
        }
        assert_eq!(lengths, [large.len(), 2]);
        assert!(most <= large.len() + 64 * 1024, "{most}");
    }
}

#[test]
fn small_messages_share_one_buffer_that_is_used_again() {
    let mut decoder = Decoder::new(FrameLimits::default());
    let message = framed(&"x".repeat(1000));
    let mut addresses = std::collections::BTreeSet::new();
    for _ in 0..10_000 {
        assert_eq!(decoder.feed(&message), message.len());
        let frame = decoder.next_frame().unwrap();
        let Some(Frame::Body(body)) = frame else {
            panic!("{frame:?}")
        };
        addresses.insert(body.as_ptr() as usize);
    }
    // Every place in the buffer is used over and over, as long as nobody keeps a body.
    assert!(addresses.len() <= 64, "{} places", addresses.len());
}

/// A message of any kind, and what is decoded from it.
fn frame() -> impl Strategy<Value = (Vec<u8>, Frame)> {
    let text = prop_oneof![
        4 => prop::collection::vec(any::<char>(), 0..30).prop_map(String::from_iter),
        1 => (0..200_000_usize).prop_map(|length| "y".repeat(length)),
    ];
    let name = prop::sample::select(vec!["Content-Length", "content-length", "CONTENT-LENGTH"]);
    let more = prop::sample::select(vec!["", "X: y\r\n", "Content-Type: a; charset=utf8\r\n"]);
    (text, name, more).prop_map(|(text, name, more)| {
        let bytes = format!("{name}: {}\r\n{more}\r\n{text}", text.len());
        let frame = if text.len() <= LIMITS.body_bytes {
            body(&text)
        } else {
            Frame::Oversized(Oversized {
                length: text.len() as u64,
                id: None,
            })
        };
        (bytes.into_bytes(), frame)
    })
}

const LIMITS: FrameLimits = FrameLimits {
    header_lines: 5,
    header_bytes: 200,
    body_bytes: 100_000,
    skipped_bytes: 1_000_000,
};

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn any_split_of_any_messages_gives_the_same(
        frames in prop::collection::vec(frame(), 0..8),
        pieces in prop::collection::vec(1..5000_usize, 1..20),
    ) {
        let (bytes, expected): (Vec<_>, Vec<_>) = frames.into_iter().unzip();
        prop_assert_eq!(decode(LIMITS, &bytes.concat(), &pieces), (expected, None));
    }

    #[test]
    fn garbage_is_refused_and_costs_little(
        frames in prop::collection::vec(frame(), 0..3),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..5),
        garbage in prop::collection::vec(any::<u8>(), 0..300),
        pieces in prop::collection::vec(1..5000_usize, 1..5),
    ) {
        let mut bytes: Vec<u8> = frames.into_iter().flat_map(|(bytes, _)| bytes).collect();
        bytes.extend_from_slice(&garbage);
        for (index, byte) in damage {
            if !bytes.is_empty() {
                let at = index.index(bytes.len());
                bytes[at] = byte;
            }
        }
        // It does not panic, its memory is watched, and the chunking makes no difference to what is found.
        let (frames, error) = decode(LIMITS, &bytes, &pieces);
        let (in_one, error_in_one) = decode(LIMITS, &bytes, &[bytes.len()]);
        prop_assert_eq!(frames, in_one);
        prop_assert_eq!(error.map(|error| kind(&error)), error_in_one.map(|error| kind(&error)));
    }
}

/// An error without what it repeats of the line, which depends on how much of it had come.
fn kind(error: &FrameError) -> std::mem::Discriminant<FrameError> {
    std::mem::discriminant(error)
}
