//! The faults that are committed.

use std::{io::Write as _, time::Duration};

use lsp::{MessageId, ResponseError};
use serde_json::{Value, json};

use crate::{
    output::{Output, answer, file_exists, pause},
    script::{Fault, IdPlace, Said},
};

/// What is left to do after a fault.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Afterwards {
    GoOn,
    StopReading,
    CloseInput,
}

/// Whether a fault takes time that others should not have to wait for.
pub(crate) fn takes_time(fault: &Fault) -> bool {
    matches!(fault, Fault::Delay { .. } | Fault::HoldUntilFile { .. })
}

/// What would be answered without the fault; a notification has no answer.
pub(crate) struct Proper {
    pub(crate) id: Option<MessageId>,
    pub(crate) outcome: Result<Value, ResponseError>,
}

impl Proper {
    fn bytes(&self) -> Vec<u8> {
        let id = self.id.as_ref();
        id.map_or_else(Vec::new, |id| answer(id, &self.outcome))
    }
}

/// Commits a fault in place of the answer, or around it.
pub(crate) async fn commit(output: &Output, fault: Fault, proper: Proper) -> Afterwards {
    let wrong = |outcome| Proper {
        id: proper.id.clone(),
        outcome,
    };
    match fault {
        Fault::Exit { code, stderr } => exit(code, &stderr),
        Fault::Abort => std::process::abort(),
        Fault::Silence => {}
        Fault::Delay { ms } => {
            pause(Duration::from_millis(ms)).await;
            output.write(&proper.bytes()).await;
        }
        Fault::HoldUntilFile { path } => {
            file_exists(&path).await;
            output.write(&proper.bytes()).await;
        }
        Fault::Error { code, message } => {
            let error = ResponseError::new(code, message);
            output.write(&wrong(Err(error)).bytes()).await;
        }
        Fault::Result { result } => output.write(&wrong(Ok(result)).bytes()).await,
        Fault::AnswerTwice => {
            output.write(&proper.bytes()).await;
            output.write(&proper.bytes()).await;
        }
        Fault::UnknownIds { count } => {
            for _ in 0..count {
                output.answer(&MessageId::Number(-1), &Ok(Value::Null)).await;
            }
            output.write(&proper.bytes()).await;
        }
        Fault::BrokenJson => output.write(b"Content-Length: 7\r\n\r\n{\"id\":}").await,
        Fault::ContentLength { value } => {
            output
                .write(format!("Content-Length: {value}\r\n\r\n{{}}").as_bytes())
                .await;
        }
        Fault::MissingLength => output.write(b"Content-Type: text/plain\r\n\r\n{}").await,
        Fault::EndlessHeader { bytes } => {
            output.write(b"Content-Length: ").await;
            output.write(&vec![b' '; bytes]).await;
        }
        Fault::Garbage { text } => output.write(text.as_bytes()).await,
        Fault::CloseStdout => output.close().await,
        Fault::CloseStdin => {
            output.write(&proper.bytes()).await;
            return Afterwards::CloseInput;
        }
        Fault::StopReading => {
            output.write(&proper.bytes()).await;
            return Afterwards::StopReading;
        }
        Fault::StopWriting => output.fall_silent().await,
        Fault::Oversized { bytes, id } => {
            let message = oversized(proper.id.as_ref(), bytes, id);
            output.write(&message).await;
        }
        Fault::Drip { bytes, every_ms } => {
            output
                .drip(&proper.bytes(), bytes, Duration::from_millis(every_ms))
                .await;
        }
        Fault::HalfMessage => {
            let message = proper.bytes();
            output.write(&message[..message.len() / 2]).await;
        }
        Fault::Flood {
            messages,
            bytes,
            kind,
        } => {
            for number in 0..messages {
                let said = Said {
                    method: "fault/flood".to_owned(),
                    params: json!({"number": number, "filling": "x".repeat(bytes)}),
                    kind,
                };
                output.say(&said).await;
            }
            output.write(&proper.bytes()).await;
        }
    }
    Afterwards::GoOn
}

/// Ends the process, with a last word.
pub(crate) fn exit(code: i32, stderr: &str) -> ! {
    // A standard error that nobody reads is no reason to live.
    drop(std::io::stderr().write_all(stderr.as_bytes()));
    std::process::exit(code)
}

fn oversized(id: Option<&MessageId>, bytes: usize, place: IdPlace) -> Vec<u8> {
    let id = id.map_or("null".to_owned(), |id| json!(id).to_string());
    let (start, end) = match place {
        IdPlace::First => (
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":""#),
            r#""}"#.to_owned(),
        ),
        IdPlace::Last => (
            r#"{"jsonrpc":"2.0","result":""#.to_owned(),
            format!(r#"","id":{id}}}"#),
        ),
        IdPlace::Absent => (r#"{"jsonrpc":"2.0","result":""#.to_owned(), r#""}"#.to_owned()),
    };
    let length = start.len() + bytes + end.len();
    let mut message = format!("Content-Length: {length}\r\n\r\n{start}").into_bytes();
    message.resize(message.len() + bytes, b'x');
    message.extend_from_slice(end.as_bytes());
    message
}
