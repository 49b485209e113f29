//! The client against everything that the fault server can do wrong, over pipes and over a socket.

use std::time::Duration;

use lsp::{
    ClientSettings, Closed, FrameError, FrameLimits, MessageError, ProtocolError, RequestError, ResponseError,
};
use serde_json::{Value, json};

use crate::{
    faults_server::{Real, Start, Transport, after_seconds},
    support::{live, manual_clock, patient, soon, until},
};

/// What becomes of a request that meets a fault.
#[derive(Debug)]
enum Expected {
    /// An answer, and the connection goes on.
    Answer(Value),
    /// A failure, and the connection goes on.
    Failure(RequestError),
    /// The end of the connection.
    End(Closed),
}

fn small_limits() -> ClientSettings {
    let limits = FrameLimits {
        body_bytes: 1_000_000,
        ..FrameLimits::default()
    };
    ClientSettings {
        limits,
        ..ClientSettings::default()
    }
}

fn cases() -> Vec<(&'static str, Value, Expected)> {
    let frame = |error| Expected::End(Closed::Protocol(ProtocolError::Frame(error)));
    let answer = || Expected::Answer(Value::Null);
    let oversized = |id: &str, bytes: u64| {
        let expected = RequestError::Oversized { bytes };
        (
            "fault/oversized",
            json!({"bytes": 2_000_000, "id": id}),
            Expected::Failure(expected),
        )
    };
    let error = ResponseError::new(-32801, "it changed");
    vec![
        ("fault/echo", json!(["é", 1]), Expected::Answer(json!(["é", 1]))),
        (
            "fault/error",
            json!({"code": -32801, "message": "it changed"}),
            Expected::Failure(RequestError::Response(error)),
        ),
        (
            "fault/other",
            Value::Null,
            // What it does not understand ends it.
            Expected::End(Closed::EndOfFile),
        ),
        (
            "unknown",
            Value::Null,
            Expected::Failure(RequestError::Response(ResponseError::method_not_found("unknown"))),
        ),
        ("fault/exit", json!({"code": 3}), Expected::End(Closed::EndOfFile)),
        ("fault/close_stdout", json!({}), Expected::End(Closed::EndOfFile)),
        ("fault/answer_twice", json!({}), answer()),
        ("fault/unknown_ids", json!({"count": 1000}), answer()),
        (
            "fault/unknown_ids",
            json!({"count": 1001}),
            Expected::End(Closed::Protocol(ProtocolError::UnknownIds { count: 1001 })),
        ),
        ("fault/flood", json!({"messages": 3000, "bytes": 1000}), answer()),
        (
            "fault/flood",
            json!({"messages": 500, "bytes": 10, "kind": "request"}),
            answer(),
        ),
        ("fault/drip", json!({"bytes": 7, "every_ms": 1}), answer()),
        oversized(
            "first",
            2_000_000 + r#"{"jsonrpc":"2.0","id":1,"result":""}"#.len() as u64,
        ),
        oversized(
            "last",
            2_000_000 + r#"{"jsonrpc":"2.0","result":"","id":1}"#.len() as u64,
        ),
        (
            "fault/oversized",
            json!({"bytes": 2_000_000, "id": "absent"}),
            Expected::End(Closed::Protocol(ProtocolError::Oversized {
                length: 2_000_000 + r#"{"jsonrpc":"2.0","result":""}"#.len() as u64,
            })),
        ),
        (
            "fault/broken_json",
            json!({}),
            Expected::End(Closed::Protocol(ProtocolError::Message(MessageError::Json {
                problem: "expected value at line 1 column 7".to_owned(),
                excerpt: r#"{"id":}"#.to_owned(),
            }))),
        ),
        (
            "fault/content_length",
            json!({"value": "99999999999999"}),
            frame(FrameError::AbsurdLength {
                value: "99999999999999".to_owned(),
                limit: FrameLimits::default().skipped_bytes,
            }),
        ),
        (
            "fault/content_length",
            json!({"value": "-5"}),
            frame(FrameError::InvalidLength {
                value: "-5".to_owned(),
            }),
        ),
        // The length is too short: the rest of the body is garbage between frames.
        (
            "fault/content_length",
            json!({"value": "1"}),
            Expected::End(Closed::Protocol(ProtocolError::Message(MessageError::Json {
                problem: "EOF while parsing an object at line 1 column 1".to_owned(),
                excerpt: "{".to_owned(),
            }))),
        ),
        (
            "fault/missing_length",
            json!({}),
            frame(FrameError::MissingLength),
        ),
        (
            "fault/endless_header",
            json!({"bytes": 20_000}),
            frame(FrameError::HeadersTooLong { limit: 8192 }),
        ),
        (
            "fault/garbage",
            json!({"text": "Debugger listening\r\n"}),
            frame(FrameError::NotAHeader {
                line: "Debugger listening".to_owned(),
            }),
        ),
    ]
}

async fn check(transport: Transport) {
    for (method, params, expected) in cases() {
        let start = Start {
            transport,
            settings: small_limits(),
            ..Start::default()
        };
        let real = start.run().await;
        let outcome = real.ask(method, &params).await;
        let name = format!("{method} {params} over {transport:?}");
        match expected {
            Expected::Answer(answer) => assert_eq!(outcome, Ok(answer), "{name}"),
            Expected::Failure(error) => assert_eq!(outcome, Err(error), "{name}"),
            Expected::End(closed) => {
                let reason = soon(real.client.closed()).await;
                assert_eq!(*reason, closed, "{name}");
                assert_eq!(outcome, Err(RequestError::Closed { reason }), "{name}");
                soon(real.tasks.finished()).await;
                continue;
            }
        }
        assert!(real.echoes().await, "{name}");
        assert_eq!(real.client.why_closed(), None, "{name}");
    }
}

#[tokio::test]
async fn every_fault_over_pipes_ends_in_a_clear_state() {
    check(Transport::Stdio).await;
}

#[tokio::test]
async fn every_fault_over_a_socket_ends_in_a_clear_state() {
    check(Transport::Tcp).await;
}

#[tokio::test]
async fn a_flood_of_requests_is_answered_one_by_one() {
    let real = Start::default().run().await;
    let flood = json!({"messages": 500, "kind": "request"});
    assert_eq!(real.ask("fault/flood", flood).await, Ok(Value::Null));
    assert!(real.echoes().await);
    let answers = real
        .recorded()
        .into_iter()
        .filter(|message| message.get("result").is_some());
    let ids: Vec<_> = answers
        .map(|message| message["id"].as_str().unwrap().to_owned())
        .collect();
    let expected: Vec<_> = (1..=500).map(|number| format!("fault-{number}")).collect();
    assert_eq!(ids, expected);
    assert_eq!(real.client.counters().requests_in, 500);
}

#[tokio::test]
async fn a_cancellation_names_the_id_that_the_server_knows() {
    let real = Start::default().run().await;
    assert!(real.echoes().await);
    let (clock, time) = manual_clock();
    let request = real
        .client
        .request("fault/silence", &(), &after_seconds(&time, 1), &live());
    let request = tokio::spawn(request);
    until("the server has it", || real.recorded().len() == 2).await;
    clock.advance(Duration::from_secs(1));
    assert!(matches!(
        soon(request).await.unwrap(),
        Err(RequestError::Timeout { .. })
    ));
    let state = real.ask("fault/state", ()).await.unwrap();
    assert_eq!(state["cancelled"], json!([2]));
}

#[tokio::test]
async fn a_half_message_is_waited_for_and_then_not_any_more() {
    let (clock, time) = manual_clock();
    let start = Start {
        clock: time,
        ..Start::default()
    };
    let real = start.run().await;
    let request = real
        .client
        .request("fault/half_message", &(), &patient(), &live());
    until("half of it is there", || real.client.counters().bytes_in > 0).await;
    until("the rest is waited for", || clock.pending_alarms() == 1).await;
    clock.advance(Duration::from_secs(30));
    let within = Duration::from_secs(30);
    let expected = Closed::Protocol(ProtocolError::MessageTooSlow { within });
    assert_eq!(*soon(real.client.closed()).await, expected);
    assert!(soon(request).await.is_err());
}

#[tokio::test]
async fn a_server_that_stops_reading_costs_little_and_ends() {
    let (clock, time) = manual_clock();
    let start = Start {
        clock: time,
        ..Start::default()
    };
    let real = start.run().await;
    assert_eq!(real.ask("fault/stop_reading", ()).await, Ok(Value::Null));
    let params = json!("x".repeat(100_000));
    let (_, patience) = manual_clock();
    let mut waiting = Vec::new();
    for _ in 0..1000 {
        let mut notice = real.client.notify("n", &params, &after_seconds(&patience, 1));
        if futures_util::poll!(&mut notice).is_pending() {
            waiting.push(notice);
            if waiting.len() == 10 {
                break;
            }
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(waiting.len(), 10, "the queue takes more and more");
    // A few MiB were accepted, and every other message is held by the one who waits.
    assert!(real.client.queued() < 60, "{}", real.client.queued());
    until("the write waits", || clock.pending_alarms() >= 1).await;
    clock.advance(Duration::from_secs(30));
    let reason = soon(real.client.closed()).await;
    assert_eq!(
        *reason,
        Closed::Stalled {
            after: Duration::from_secs(30)
        }
    );
    for notice in waiting {
        let reason = std::sync::Arc::clone(&reason);
        assert_eq!(soon(notice).await, Err(RequestError::Closed { reason }));
    }
    assert_eq!(real.client.queued(), 0);
}

#[tokio::test]
async fn a_server_that_stops_writing_times_out_and_no_more() {
    let real = Start::default().run().await;
    real.tell("fault/stop_writing", ()).await;
    let (clock, time) = manual_clock();
    let request = tokio::spawn(
        real.client
            .request("fault/echo", &(), &after_seconds(&time, 5), &live()),
    );
    until("the server has it", || real.recorded().len() == 2).await;
    until("the request waits", || clock.pending_alarms() == 1).await;
    clock.advance(Duration::from_secs(5));
    assert!(matches!(
        soon(request).await.unwrap(),
        Err(RequestError::Timeout { .. })
    ));
    assert_eq!(real.client.why_closed(), None);
}

#[tokio::test]
async fn a_server_that_closes_half_a_pipe_ends_the_connection() {
    let mut real = Start::default().run().await;
    assert_eq!(real.ask("fault/close_stdin", ()).await, Ok(Value::Null));
    // The end shows at the next write: the answer may be here before the pipe is closed.
    let mut written = 0;
    while real.client.why_closed().is_none() {
        drop(real.client.notify("n", &written, &patient()));
        written += 1;
        tokio::task::yield_now().await;
        assert!(written < 1_000_000, "it goes on and on");
    }
    let reason = soon(real.client.closed()).await;
    assert_eq!(*reason, Closed::Io(std::io::ErrorKind::BrokenPipe));
    assert!(!real.has_ended(), "it lives on");
}

#[tokio::test]
async fn pipes_that_a_grandchild_holds_do_not_end_with_the_server() {
    for kind in ["plain", "own_session", "orphan"] {
        let mut real = Start::with(json!({"grandchild": kind})).run().await;
        until("the grandchild is there", || real.pids("grandchild").len() == 1).await;
        assert!(real.echoes().await);
        real.kill();
        assert!(!crate::faults_server::is_alive(real.pid()));
        assert_eq!(real.client.why_closed(), None, "the pipe is open: {kind}");
        real.pids("grandchild")
            .into_iter()
            .for_each(crate::faults_server::kill_pid);
        assert_eq!(*soon(real.client.closed()).await, Closed::EndOfFile, "{kind}");
    }
}

/// The names of what the server said so far.
fn said(real: &Real) -> Vec<String> {
    let lines = real.log.lines();
    lines
        .iter()
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn messages_before_the_initialize_answer_are_taken() {
    let script = json!({"before_initialize": [
        {"method": "window/logMessage", "params": {"message": "hello"}},
        {"method": "client/registerCapability", "params": {}, "kind": "request"},
        {"method": "workspace/configuration", "params": {"items": []}, "kind": "request"},
    ]});
    let real = Start::with(script).run().await;
    let answer = real.ask("initialize", json!({"processId": null})).await.unwrap();
    assert_eq!(answer["serverInfo"]["name"], "fault-server");
    assert_eq!(
        said(&real),
        [
            "window/logMessage",
            "client/registerCapability",
            "workspace/configuration"
        ]
    );
    assert!(real.echoes().await);
    assert_eq!(real.client.counters().requests_in, 2);
}
