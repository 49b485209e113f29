//! From bytes to messages and back, next to a copy of the bytes and the `lsp-server` crate.

use std::hint::black_box;
use std::io::BufReader;
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use lsp::{Decoder, Frame, FrameLimits, Message, MessageId};
use serde_json::{Value, json};

use crate::report::{Bar, Table};
use crate::statistics::nanoseconds;
use crate::turns::{LongContender, Rounds, in_long_turns};

const ROUNDS: Rounds = Rounds {
    counted: 31,
    warm_up: 2,
};
/// How often the stream is read or written in a turn.
const PASSES: usize = 4;
/// The most that a read from a pipe returns.
const READ_BYTES: usize = 64 * 1024;
/// How many items the results of the messages have, from an answer of a hundred bytes to one of 400 KB.
const ITEMS: [(usize, usize); 4] = [(1, 256), (16, 64), (256, 8), (4096, 1)];

const MIB: f64 = 1024.0 * 1024.0;

pub(crate) fn measure() -> Result<Table> {
    let mut table = Table::of_ratios(
        "The framing of messages",
        "A stream of 329 answers, from a hundred bytes to 400 KB, in pieces of 64 KiB, as a pipe brings them. Our decoder \
         gives out bodies, and then messages whose results stay the text that came; `lsp-server` reads all of a message \
         into values, so ours is measured that way too. Both write answers from values. A copy of the bytes is the limit.",
    );
    let answers = answers();
    let stream = encode(&answers)?;
    let mebibytes = stream.len() as f64 * PASSES as f64 / MIB;
    let peer_messages = answers.iter().map(|(id, result)| {
        let id = i32::try_from(*id)?;
        Ok(lsp_server::Message::from(lsp_server::Response::new_ok(
            id.into(),
            result,
        )))
    });
    let peer_messages = peer_messages.collect::<Result<Vec<_>>>()?;
    let count = answers.len();
    let contenders = [
        contender("memcpy", mebibytes, || {
            copy(&stream);
            Ok(())
        }),
        contender("bodies", mebibytes, || decode(&stream, count, |_| Ok(()))),
        contender("messages", mebibytes, || {
            decode(&stream, count, |body| {
                black_box(Message::parse(body)?);
                Ok(())
            })
        }),
        contender("values", mebibytes, || decode(&stream, count, read_value)),
        contender("lsp-server", mebibytes, || peer_decode(&stream, count)),
        contender("written", mebibytes, || {
            black_box(encode(&answers)?);
            Ok(())
        }),
        contender("lsp-server", mebibytes, || {
            peer_encode(&peer_messages, stream.len())
        }),
    ];
    let measured = in_long_turns(ROUNDS, contenders)?;
    let [
        [copied],
        [bodies],
        [messages],
        [values],
        [peer_read],
        [written],
        [peer_written],
    ] = measured;
    table.compare_throughput("bodies", &bodies, &copied, Bar::None);
    table.compare_throughput("messages", &messages, &peer_read, Bar::Faster);
    table.compare_throughput("messages with values", &values, &peer_read, Bar::NoSlower);
    table.compare_throughput("written from values", &written, &peer_written, Bar::NoSlower);
    Ok(table)
}

fn contender<'a>(
    name: &'static str,
    mebibytes: f64,
    mut pass: impl FnMut() -> Result<()> + 'a,
) -> LongContender<'a, 1> {
    LongContender::new(name, move |_: &Path| {
        let began = Instant::now();
        for _ in 0..PASSES {
            pass()?;
        }
        Ok([nanoseconds(began.elapsed()) / mebibytes])
    })
}

fn answers() -> Vec<(i64, Value)> {
    let item = |number: usize| {
        json!({
            "uri": "file:///home/somebody/project/src/language/parser.rs",
            "range": {"start": {"line": number, "character": 4}, "end": {"line": number, "character": 17}},
        })
    };
    let sizes = ITEMS
        .iter()
        .flat_map(|(items, times)| std::iter::repeat_n(*items, *times));
    let results = sizes.map(|items| (0..items).map(item).collect::<Value>());
    (1..).zip(results).collect()
}

fn encode(answers: &[(i64, Value)]) -> Result<Vec<u8>> {
    let mut stream = Vec::new();
    for (id, result) in answers {
        stream.extend_from_slice(&lsp::encode_response(&MessageId::Number(*id), Ok(result))?);
    }
    Ok(stream)
}

fn copy(stream: &[u8]) {
    let mut buffer = vec![0; READ_BYTES];
    for piece in stream.chunks(READ_BYTES) {
        buffer[..piece.len()].copy_from_slice(piece);
        black_box(&mut buffer);
    }
}

fn decode(stream: &[u8], expected: usize, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let mut decoder = Decoder::new(FrameLimits::default());
    let mut count = 0;
    for mut piece in stream.chunks(READ_BYTES) {
        while !piece.is_empty() {
            piece = &piece[decoder.feed(piece)..];
            while let Some(frame) = decoder.next_frame()? {
                let Frame::Body(body) = frame else {
                    bail!("a body was too long");
                };
                take(black_box(&body))?;
                count += 1;
            }
        }
    }
    ensure!(count == expected, "{count} messages of {expected}");
    Ok(())
}

fn read_value(body: &[u8]) -> Result<()> {
    let Message::Response { outcome, .. } = Message::parse(body)? else {
        bail!("not an answer");
    };
    let value: Value = serde_json::from_str(outcome?.get())?;
    black_box(value);
    Ok(())
}

fn peer_decode(stream: &[u8], expected: usize) -> Result<()> {
    let mut reader = BufReader::with_capacity(READ_BYTES, stream);
    let mut count = 0;
    while let Some(message) = lsp_server::Message::read(&mut reader)? {
        black_box(message);
        count += 1;
    }
    ensure!(count == expected, "{count} messages of {expected}");
    Ok(())
}

fn peer_encode(messages: &[lsp_server::Message], expected: usize) -> Result<()> {
    let mut stream = Vec::new();
    for message in messages {
        message.write(&mut stream)?;
    }
    ensure!(stream.len() == expected, "{} bytes of {expected}", stream.len());
    black_box(stream);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_codecs_read_and_write_the_same_stream() {
        let answers = answers();
        assert_eq!(answers.len(), 329);
        let stream = encode(&answers).unwrap();
        decode(&stream, answers.len(), read_value).unwrap();
        peer_decode(&stream, answers.len()).unwrap();
        assert!(decode(&stream[..stream.len() - 1], answers.len(), read_value).is_err());
    }
}
