//! Any body: a message or an error, no panic. What is read as an answer can be written and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use lsp::{Decoder, Frame, FrameLimits, Message, encode_response};

fuzz_target!(|body: &[u8]| {
    let Ok(Message::Response { id: Some(id), outcome }) = Message::parse(body) else {
        return;
    };
    let Ok(bytes) = encode_response(&id, outcome.as_ref().copied()) else {
        return;
    };
    let mut decoder = Decoder::new(FrameLimits::default());
    assert_eq!(decoder.feed(&bytes), bytes.len());
    let Ok(Some(Frame::Body(again))) = decoder.next_frame() else {
        panic!("what was encoded is one frame");
    };
    let Ok(Message::Response { id: read, outcome: same }) = Message::parse(&again) else {
        panic!("what was encoded is an answer");
    };
    assert_eq!(read, Some(id));
    let text = |outcome: Result<&serde_json::value::RawValue, lsp::ResponseError>| outcome.map(|raw| raw.get().to_owned());
    assert_eq!(text(same), text(outcome));
});
