//! What a server does by itself, and what happens when it does not read, asks too much or goes away.

use std::{sync::Arc, time::Duration};

use kernel::{Deadline, SystemClock};
use lsp::{
    ClientSettings, Closed, FrameError, FrameLimits, MessageError, Notice, ProtocolError, RequestError,
};
use serde_json::{Value, json};

use crate::support::{Stage, answer, framed, live, manual_clock, patient, soon, until};

#[tokio::test]
async fn what_the_server_says_arrives_in_order_and_is_answered_in_order() {
    let mut stage = Stage::new();
    stage.server.notify("a", json!({"n": 1})).await;
    stage.server.ask(7, "b", json!({"n": 2})).await;
    stage
        .server
        .write(framed(r#"{"jsonrpc":"2.0","id":"x","method":"c"}"#))
        .await;
    stage.server.ask(8, "unknown", json!([3])).await;
    stage.server.notify("d", json!(null)).await;
    assert_eq!(
        stage.server.next().await.unwrap(),
        json!({"jsonrpc": "2.0", "id": 7, "result": {"n": 2}})
    );
    assert_eq!(
        stage.server.next().await.unwrap(),
        json!({"jsonrpc": "2.0", "id": "x", "result": null})
    );
    assert_eq!(
        stage.server.next().await.unwrap(),
        json!({"jsonrpc": "2.0", "id": 8, "error": {"code": -32601, "message": "no such method: unknown"}})
    );
    until("the last one is there", || stage.log.lines().len() == 5).await;
    assert_eq!(
        stage.log.lines(),
        [r#"a {"n":1}"#, r#"b {"n":2}"#, "c -", "unknown [3]", "d -"]
    );
    let counters = stage.client.counters();
    assert_eq!((counters.notifications_in, counters.requests_in), (2, 3));
}

#[tokio::test]
async fn every_way_to_end_has_its_reason() {
    let deep = format!(r#"{{"result":{}}}"#, "[".repeat(100));
    let protocol = |error: MessageError| Closed::Protocol(ProtocolError::Message(error));
    let frame = |error: FrameError| Closed::Protocol(ProtocolError::Frame(error));
    let absurd = FrameError::AbsurdLength {
        value: "99999999999999".to_owned(),
        limit: FrameLimits::default().skipped_bytes,
    };
    let cases: Vec<(Vec<u8>, Closed)> = vec![
        (Vec::new(), Closed::EndOfFile),
        (b"Content-Length: 10\r\n\r\n{".to_vec(), Closed::EndOfFile),
        (b"Content-Length: 99999999999999\r\n\r\n{".to_vec(), frame(absurd)),
        (
            b"Starting server\r\n".to_vec(),
            frame(FrameError::NotAHeader {
                line: "Starting server".to_owned(),
            }),
        ),
        (framed("[]"), protocol(MessageError::Batch)),
        (
            framed(r#"{"jsonrpc":"1.0","id":1,"result":1}"#),
            protocol(MessageError::WrongVersion {
                found: r#""1.0""#.to_owned(),
            }),
        ),
        (framed("{}"), protocol(MessageError::Neither)),
        (
            framed(&deep),
            protocol(MessageError::Json {
                problem: "expected value at line 1 column 111".to_owned(),
                excerpt: deep[..80].to_owned(),
            }),
        ),
    ];
    for (bytes, expected) in cases {
        let mut stage = Stage::new();
        let request = stage.client.request("m", &(), &patient(), &live());
        stage.server.write(&bytes).await;
        stage.server.end().await;
        let reason = Arc::new(expected);
        let failed = RequestError::Closed {
            reason: Arc::clone(&reason),
        };
        assert_eq!(
            soon(request).await,
            Err(failed),
            "{}",
            String::from_utf8_lossy(&bytes)
        );
        assert_eq!(soon(stage.client.closed()).await, reason);
        stage.finished().await;
    }
}

#[tokio::test]
async fn a_message_that_answers_nothing_and_is_too_long_ends_the_connection() {
    let settings = ClientSettings {
        limits: FrameLimits {
            body_bytes: 100,
            ..FrameLimits::default()
        },
        ..ClientSettings::default()
    };
    let mut stage = Stage::with(settings, SystemClock::shared());
    let body = json!({"jsonrpc": "2.0", "method": "m", "params": "x".repeat(200)}).to_string();
    stage.server.write(framed(&body)).await;
    let length = body.len() as u64;
    let expected = Closed::Protocol(ProtocolError::Oversized { length });
    assert_eq!(*soon(stage.client.closed()).await, expected);
}

#[tokio::test]
async fn a_message_must_come_to_its_end_in_time() {
    let (clock, time) = manual_clock();
    let mut stage = Stage::with(ClientSettings::default(), time);
    let message = answer(1, &json!("x".repeat(50)));
    // Nothing is under way, so nothing can be late.
    clock.advance(Duration::from_secs(3600));
    // A drip is fine as long as each message is whole in time.
    for _ in 0..3 {
        let (start, end) = message.split_at(20);
        stage.server.write(start).await;
        until("the wait has begun", || clock.pending_alarms() == 1).await;
        clock.advance(Duration::from_secs(29));
        stage.server.write(end).await;
        until("the message is there", || clock.pending_alarms() == 0).await;
    }
    assert_eq!(stage.client.counters().unknown_ids, 3);
    // The rest of one message and the beginning of the next: the time begins anew.
    stage.server.write(&message[..20]).await;
    until("the wait has begun", || clock.pending_alarms() == 1).await;
    clock.advance(Duration::from_secs(29));
    stage
        .server
        .write([&message[20..], &message[..20]].concat())
        .await;
    until("one more is there", || stage.client.counters().unknown_ids == 4).await;
    clock.advance(Duration::from_secs(29));
    assert_eq!(stage.client.why_closed(), None);
    // More bytes do not help if the message does not end.
    let bytes = stage.client.counters().bytes_in;
    stage.server.write(&message[20..21]).await;
    until("the byte is read", || stage.client.counters().bytes_in > bytes).await;
    clock.advance(Duration::from_secs(1));
    let expected = Closed::Protocol(ProtocolError::MessageTooSlow {
        within: Duration::from_secs(30),
    });
    assert_eq!(*soon(stage.client.closed()).await, expected);
}

#[tokio::test]
async fn answers_to_nobody_are_tolerated_until_there_are_too_many_in_a_row() {
    let mut stage = Stage::new();
    for _ in 0..2 {
        for _ in 0..1000 {
            stage.server.answer(99_999, Value::Null).await;
        }
        let request = stage.client.request("m", &(), &patient(), &live());
        let id = stage.server.next().await.unwrap()["id"].as_i64().unwrap();
        stage.server.answer(id, Value::Null).await;
        assert!(soon(request).await.is_ok());
    }
    for _ in 0..1001 {
        stage.server.answer(1, Value::Null).await;
    }
    let expected = Closed::Protocol(ProtocolError::UnknownIds { count: 1001 });
    assert_eq!(*soon(stage.client.closed()).await, expected);
    assert_eq!(stage.client.counters().unknown_ids, 3001);
}

/// Fills the connection and the queue, until a notification has to wait.
async fn jam(stage: &Stage) -> Notice {
    let params = json!("x".repeat(1000));
    let deadline = patient();
    loop {
        assert!(!deadline.has_passed(), "the queue takes more and more");
        let mut notice = stage.client.notify("n", &params, &patient());
        let is_accepted = futures_util::poll!(&mut notice).is_ready();
        let queued = stage.client.queued();
        if !is_accepted {
            // The writer may have been about to take some more.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            if stage.client.queued() == queued {
                return notice;
            }
        }
        drop(notice);
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_server_that_does_not_read_makes_callers_wait_until_their_own_deadline() {
    let (clock, time) = manual_clock();
    let mut stage = Stage::with(ClientSettings::default(), Arc::clone(&time));
    drop(jam(&stage).await);
    let queued = stage.client.queued();
    assert_eq!(queued, 256, "only what is accepted is left");

    let deadline = Deadline::after(&time, Duration::from_secs(1));
    let notice = tokio::spawn(stage.client.notify("late", &(), &deadline));
    let request = tokio::spawn(stage.client.request("late", &(), &deadline, &live()));
    until("both wait, and the write", || clock.pending_alarms() == 3).await;
    assert_eq!(stage.client.queued(), queued + 2);
    clock.advance(Duration::from_secs(1));
    let expected = RequestError::Timeout {
        method: "late".into(),
        waited: Duration::from_secs(1),
    };
    assert_eq!(soon(notice).await.unwrap(), Err(expected.clone()));
    assert_eq!(soon(request).await.unwrap(), Err(expected));
    // Neither left anything behind, not even a cancellation: the server has never seen the request.
    assert_eq!((stage.client.queued(), stage.client.pending()), (queued, 0));

    // Once the server reads again, what was accepted arrives, and nothing else.
    let end = stage.client.notify("end", &(), &patient());
    let flushed = stage.client.flush(&patient());
    let mut seen = 0;
    while stage.server.line().await.starts_with(r#"- "n""#) {
        seen += 1;
    }
    soon(end).await.unwrap();
    soon(flushed).await.unwrap();
    assert!(seen > 256, "{seen}");
}

#[tokio::test]
async fn a_server_that_reads_nothing_for_too_long_is_given_up() {
    let (clock, time) = manual_clock();
    let stage = Stage::with(ClientSettings::default(), time);
    let waiting = tokio::spawn(jam(&stage).await);
    until("the write waits", || clock.pending_alarms() == 1).await;
    clock.advance(Duration::from_secs(29));
    assert_eq!(stage.client.why_closed(), None);
    clock.advance(Duration::from_secs(1));
    let reason = soon(stage.client.closed()).await;
    let after = Duration::from_secs(30);
    assert_eq!(*reason, Closed::Stalled { after });
    assert_eq!(soon(waiting).await.unwrap(), Err(RequestError::Closed { reason }));
    stage.finished().await;
}

#[tokio::test]
async fn a_server_that_reads_slowly_is_not_given_up() {
    let (clock, time) = manual_clock();
    let mut stage = Stage::with(ClientSettings::default(), time);
    drop(jam(&stage).await);
    for _ in 0..5 {
        until("the write waits", || clock.pending_alarms() == 1).await;
        clock.advance(Duration::from_secs(29));
        // A write has moved on when so much has been read that the next one must have begun.
        let written = stage.client.counters().bytes_out;
        while stage.client.counters().bytes_out == written {
            stage.server.line().await;
        }
    }
    assert_eq!(stage.client.why_closed(), None);
}

#[tokio::test]
async fn a_server_that_asks_without_reading_the_answers_is_flooding() {
    let mut stage = Stage::new();
    let waiting = tokio::spawn(jam(&stage).await);
    let mut asked = 0;
    while stage.client.why_closed().is_none() {
        stage.server.ask(asked, "q", json!({})).await;
        asked += 1;
        assert!(asked < 10_000, "it goes on and on");
        tokio::task::yield_now().await;
    }
    let reason = soon(stage.client.closed()).await;
    assert_eq!(*reason, Closed::Flooded { unsent: 1024 });
    assert_eq!(soon(waiting).await.unwrap(), Err(RequestError::Closed { reason }));
    stage.finished().await;
}

#[tokio::test]
async fn a_flood_of_notifications_is_read_through_and_answers_still_arrive() {
    let mut stage = Stage::new();
    let request = stage.client.request("m", &(), &patient(), &live());
    let params = json!({"text": "x".repeat(10_000)});
    for _ in 0..1000 {
        stage.server.notify("n", params.clone()).await;
    }
    stage.server.answer(1, json!(5)).await;
    assert_eq!(soon(request).await.unwrap().parse::<i64>().unwrap(), 5);
    assert_eq!(stage.client.counters().notifications_in, 1000);
}

#[tokio::test]
async fn a_handler_that_panics_does_not_leave_anybody_waiting() {
    let mut stage = Stage::new();
    let request = stage.client.request("m", &(), &patient(), &live());
    stage.server.ask(1, "panic", json!({})).await;
    let error = soon(request).await.unwrap_err();
    let reason = soon(stage.client.closed()).await;
    assert_eq!(
        *reason,
        Closed::Asked("a task of the client ended early".to_owned())
    );
    assert_eq!(error, RequestError::Closed { reason });
    stage.finished().await;
}

#[tokio::test]
async fn a_flush_waits_for_what_was_queued_before_it() {
    let mut stage = Stage::new();
    let large = json!("x".repeat(200_000));
    soon(stage.client.notify("large", &large, &patient()))
        .await
        .unwrap();
    soon(stage.client.notify("exit", &(), &patient())).await.unwrap();
    let mut flushed = stage.client.flush(&patient());
    until("all is taken out of the queue", || stage.client.queued() == 0).await;
    assert!(
        futures_util::poll!(&mut flushed).is_pending(),
        "most of it is not written"
    );
    assert!(stage.server.line().await.starts_with(r#"- "large""#));
    soon(flushed).await.unwrap();
    stage.client.close("stopped");
    assert_eq!(stage.server.line().await, r#"- "exit" -"#);
    assert_eq!(stage.server.next().await, None);
}
