//! What a caller gets, and what a server sees of it.

use std::{sync::Arc, time::Duration};

use kernel::{CancellationToken, Cause, Deadline};
use lsp::{
    ClientSettings, Closed, Counters, FrameLimits, RequestError, ResponseError, encode_response, error_code,
};
use serde_json::{Value, json};

use crate::support::{Stage, framed, live, manual_clock, numbered, patient, soon, until};

#[tokio::test]
async fn an_answer_comes_back_as_it_was_written() {
    let mut stage = Stage::new();
    let request = stage.client.request("m", &json!({"a": 1}), &patient(), &live());
    assert_eq!(stage.server.line().await, r#"1 "m" {"a":1}"#);
    stage
        .server
        .write(framed(r#"{"jsonrpc":"2.0","id":1,"result": {"é" : [1, 2]} }"#))
        .await;
    let reply = soon(request).await.unwrap();
    assert_eq!(&reply.bytes()[..], r#"{"é" : [1, 2]}"#.as_bytes());
    assert_eq!(reply.raw().unwrap().get(), r#"{"é" : [1, 2]}"#);
    assert_eq!(reply.parse::<Value>().unwrap(), json!({"é": [1, 2]}));
    assert!(!reply.is_null());
    assert_eq!(stage.client.pending(), 0);
}

#[tokio::test]
async fn null_is_an_answer_and_parameters_of_nothing_are_left_out() {
    let mut stage = Stage::new();
    let request = stage.client.request("shutdown", &(), &patient(), &live());
    assert_eq!(stage.server.line().await, r#"1 "shutdown" -"#);
    stage.server.answer(1, Value::Null).await;
    assert!(soon(request).await.unwrap().is_null());
    soon(stage.client.notify("exit", &None::<()>, &patient()))
        .await
        .unwrap();
    assert_eq!(stage.server.line().await, r#"- "exit" -"#);
}

#[tokio::test]
async fn an_error_keeps_its_code_so_that_the_caller_can_decide() {
    let cases = [
        (error_code::CONTENT_MODIFIED, true),
        (error_code::SERVER_CANCELLED, true),
        (error_code::REQUEST_FAILED, false),
        (error_code::METHOD_NOT_FOUND, false),
    ];
    let mut stage = Stage::new();
    for (number, (code, may_be_sent_again)) in (1..).zip(cases) {
        let request = stage.client.request("m", &(), &patient(), &live());
        let error = ResponseError {
            code,
            message: "no".to_owned(),
            data: Some(json!({"why": [1]})),
        };
        let answer = encode_response(&lsp::MessageId::Number(number), Err::<&(), _>(&error)).unwrap();
        stage.server.write(answer).await;
        let failed = soon(request).await.unwrap_err();
        assert_eq!(failed, RequestError::Response(error));
        assert_eq!(failed.may_be_sent_again(), may_be_sent_again, "{code}");
    }
}

#[tokio::test]
async fn the_order_of_calls_is_the_order_on_the_wire() {
    let mut stage = Stage::new();
    let (deadline, scope) = (patient(), live());
    let mut requests = Vec::new();
    let mut notices = Vec::new();
    for number in 0..500 {
        requests.push(stage.client.request("r", &number, &deadline, &scope));
        notices.push(stage.client.notify("n", &number, &deadline));
    }
    // Nothing has been polled so far, and the last is polled first.
    let notices = tokio::spawn(async move {
        for notice in notices.into_iter().rev() {
            soon(notice).await.unwrap();
        }
    });
    for number in 0..500 {
        assert_eq!(
            stage.server.line().await,
            format!(r#"{} "r" {number}"#, number + 1)
        );
        assert_eq!(stage.server.line().await, format!(r#"- "n" {number}"#));
    }
    soon(notices).await.unwrap();
    assert_eq!(stage.client.pending(), 500);
}

#[tokio::test]
async fn a_dropped_request_is_cancelled_under_the_servers_id() {
    let mut stage = Stage::new();
    let first = stage.client.request("first", &(), &patient(), &live());
    let second = stage.client.request("second", &(), &patient(), &live());
    assert_eq!(stage.server.line().await, r#"1 "first" -"#);
    assert_eq!(stage.server.line().await, r#"2 "second" -"#);
    drop(second);
    assert_eq!(stage.server.line().await, r#"- "$/cancelRequest" {"id":2}"#);
    assert_eq!(stage.client.pending(), 1);
    // The server answers both, the one as cancelled.
    let cancelled = ResponseError::new(error_code::REQUEST_CANCELLED, "cancelled");
    let late = encode_response(&lsp::MessageId::Number(2), Err::<&(), _>(&cancelled)).unwrap();
    stage.server.write(late).await;
    stage.server.answer(1, json!(1)).await;
    assert_eq!(soon(first).await.unwrap().parse::<i64>().unwrap(), 1);
    let counters = stage.client.counters();
    assert_eq!(
        (counters.late_answers, counters.unknown_ids, counters.cancelled),
        (1, 0, 1)
    );
}

#[tokio::test]
async fn an_answered_request_is_not_cancelled_when_it_is_dropped_unread() {
    let mut stage = Stage::new();
    let request = stage.client.request("m", &(), &patient(), &live());
    assert_eq!(stage.server.line().await, r#"1 "m" -"#);
    stage.server.answer(1, Value::Null).await;
    until("the answer is there", || stage.client.pending() == 0).await;
    drop(request);
    soon(stage.client.notify("end", &(), &patient())).await.unwrap();
    assert_eq!(stage.server.line().await, r#"- "end" -"#);
    assert_eq!(stage.client.counters().cancelled, 0);
}

#[tokio::test]
async fn a_deadline_ends_the_wait_and_the_server_is_told() {
    let (clock, time) = manual_clock();
    let mut stage = Stage::with(ClientSettings::default(), Arc::clone(&time));
    let deadline = Deadline::after(&time, Duration::from_secs(5));
    let request = tokio::spawn(stage.client.request("slow", &(), &deadline, &live()));
    assert_eq!(stage.server.line().await, r#"1 "slow" -"#);
    until("the request waits", || clock.pending_alarms() == 1).await;
    clock.advance(Duration::from_secs(5));
    let expected = RequestError::Timeout {
        method: "slow".into(),
        waited: Duration::from_secs(5),
    };
    assert_eq!(soon(request).await.unwrap(), Err(expected));
    assert_eq!(stage.server.line().await, r#"- "$/cancelRequest" {"id":1}"#);
    assert_eq!(stage.client.pending(), 0);
    // The answer that comes after all changes nothing.
    stage.server.answer(1, json!("late")).await;
    until("it is counted", || stage.client.counters().late_answers == 1).await;
    assert_eq!(stage.client.counters().timed_out, 1);
}

#[tokio::test]
async fn a_cancelled_scope_ends_the_wait_with_its_cause() {
    let mut stage = Stage::new();
    let token = CancellationToken::new();
    let scope = token.scope();
    let request = tokio::spawn(stage.client.request("m", &(), &patient(), &scope));
    assert_eq!(stage.server.line().await, r#"1 "m" -"#);
    let cause = Cause::new("test", "enough");
    token.cancel(cause.clone());
    // The next run of the token does not bring the request back.
    token.reset().unwrap();
    let cause = Arc::new(cause);
    assert_eq!(
        soon(request).await.unwrap(),
        Err(RequestError::Cancelled {
            cause: Arc::clone(&cause)
        })
    );
    assert_eq!(stage.server.line().await, r#"- "$/cancelRequest" {"id":1}"#);
    // What is cancelled from the start is not even asked.
    let request = stage.client.request("m", &(), &patient(), &scope);
    assert_eq!(soon(request).await, Err(RequestError::Cancelled { cause }));
    assert_eq!(stage.client.counters().requests_sent, 1);
}

#[tokio::test]
async fn a_passed_deadline_asks_nothing() {
    let stage = Stage::new();
    let (_clock, time) = manual_clock();
    let now = Deadline::after(&time, Duration::ZERO);
    let error = soon(stage.client.request("m", &(), &now, &live()))
        .await
        .unwrap_err();
    let expected = RequestError::Timeout {
        method: "m".into(),
        waited: Duration::ZERO,
    };
    assert_eq!(error, expected);
    assert_eq!(stage.client.counters(), Counters::default());
}

#[tokio::test]
async fn parameters_that_are_no_json_are_refused() {
    let stage = Stage::new();
    let params = std::collections::BTreeMap::from([((1, 2), 3)]);
    let error = soon(stage.client.request("m", &params, &patient(), &live()))
        .await
        .unwrap_err();
    assert!(matches!(error, RequestError::Encode(_)), "{error:?}");
    assert_eq!(stage.client.pending(), 0);
}

#[tokio::test]
async fn closing_ends_every_request_with_its_reason() {
    let mut stage = Stage::new();
    let requests: Vec<_> = (0..10)
        .map(|_| stage.client.request("m", &(), &patient(), &live()))
        .collect();
    assert_eq!(stage.server.line().await, r#"1 "m" -"#);
    stage.client.close("the server is stopped");
    stage.client.close("a second reason");
    let reason = Arc::new(Closed::Asked("the server is stopped".to_owned()));
    for request in requests {
        let expected = RequestError::Closed {
            reason: Arc::clone(&reason),
        };
        assert_eq!(soon(request).await, Err(expected));
    }
    assert_eq!(soon(stage.client.closed()).await, reason);
    assert_eq!(stage.client.why_closed(), Some(Arc::clone(&reason)));
    let expected = Err(RequestError::Closed { reason });
    assert_eq!(
        soon(stage.client.request("m", &(), &patient(), &live())).await,
        expected
    );
    assert_eq!(
        soon(stage.client.notify("m", &(), &patient())).await,
        expected.clone().map(drop)
    );
    assert_eq!(soon(stage.client.flush(&patient())).await, expected.map(drop));
    stage.finished().await;
}

#[tokio::test]
async fn the_last_handle_closes_the_connection() {
    let Stage {
        client,
        tasks,
        mut server,
        ..
    } = Stage::new();
    let other = client.clone();
    let request = client.request("m", &(), &patient(), &live());
    drop(client);
    assert_eq!(server.line().await, r#"1 "m" -"#);
    drop(other);
    let error = soon(request).await.unwrap_err();
    assert!(matches!(error, RequestError::Closed { .. }), "{error:?}");
    assert_eq!(server.next().await, None);
    soon(tasks.finished()).await;
}

#[tokio::test]
async fn an_oversized_answer_fails_its_own_request_only() {
    let settings = ClientSettings {
        limits: FrameLimits {
            body_bytes: 10_000,
            ..FrameLimits::default()
        },
        ..ClientSettings::default()
    };
    let mut stage = Stage::with(settings, kernel::SystemClock::shared());
    let large = stage.client.request("large", &(), &patient(), &live());
    let small = stage.client.request("small", &(), &patient(), &live());
    let last = stage.client.request("last", &(), &patient(), &live());
    let filling = "x".repeat(200_000);
    let id_first = framed(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{filling}"}}"#));
    let id_last = framed(&format!(r#"{{"result":"{filling}","id":3}}"#));
    let bytes = |frame: &[u8]| frame.len() as u64 - "Content-Length: 200000\r\n\r\n".len() as u64;
    let expected = [bytes(&id_first), bytes(&id_last)];
    stage.server.write(id_first).await;
    stage.server.answer(2, json!("fine")).await;
    stage.server.write(id_last).await;
    assert_eq!(
        soon(large).await,
        Err(RequestError::Oversized { bytes: expected[0] })
    );
    assert_eq!(soon(small).await.unwrap().parse::<String>().unwrap(), "fine");
    assert_eq!(
        soon(last).await,
        Err(RequestError::Oversized { bytes: expected[1] })
    );
    assert_eq!(stage.client.counters().oversized, 2);
    assert_eq!(stage.client.why_closed(), None);
}

#[tokio::test]
async fn ten_thousand_requests_get_their_own_answers() {
    const CHUNK: usize = 4096;
    let Stage {
        client, mut server, ..
    } = Stage::new();
    let serving = tokio::spawn(async move {
        while let Some(message) = server.next().await {
            let id = message["id"].as_i64().unwrap();
            server.answer(id, message["params"]["number"].clone()).await;
        }
    });
    let numbers: Vec<usize> = (0..10_000).collect();
    let (deadline, scope) = (patient(), live());
    for chunk in numbers.chunks(CHUNK) {
        let calls = chunk.iter().map(|number| {
            let request = client.request("echo", &numbered(*number), &deadline, &scope);
            async move { soon(request).await.map(|reply| reply.parse::<usize>().unwrap()) }
        });
        let answers = futures_util::future::join_all(calls).await;
        let answers: Result<Vec<_>, _> = answers.into_iter().collect();
        assert_eq!(answers.unwrap(), chunk);
    }
    let counters = client.counters();
    assert_eq!((counters.requests_sent, counters.answered), (10_000, 10_000));
    assert_eq!(client.pending(), 0);
    client.close("done");
    soon(serving).await.unwrap();
}

#[tokio::test]
async fn more_requests_than_the_table_holds_are_refused() {
    let stage = Stage::new();
    let (deadline, scope) = (patient(), live());
    let requests: Vec<_> = (0..4096)
        .map(|_| stage.client.request("m", &(), &deadline, &scope))
        .collect();
    let refused = soon(stage.client.request("m", &(), &deadline, &scope)).await;
    assert_eq!(refused, Err(RequestError::TooManyPending { limit: 4096 }));
    drop(requests);
    assert_eq!((stage.client.pending(), stage.client.queued()), (0, 0));
    // There is room again.
    let request = stage.client.request("m", &(), &deadline, &scope);
    assert_eq!(stage.client.pending(), 1);
    drop(request);
}
