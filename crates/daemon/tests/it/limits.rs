//! What a peer can not make grow: time, heads, bodies and connections.

use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use protocol::RequestId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::running::{Running, until, within};

/// The body of a raw answer as a problem, after checking that its head carries the same id.
fn problem_of(answer: &str) -> protocol::Problem {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let problem: protocol::Problem = serde_json::from_str(body).unwrap();
    assert!(
        head.contains(&format!("x-request-id: {}", problem.request_id)),
        "{head}"
    );
    problem.request_id.parse::<RequestId>().unwrap();
    problem
}

#[tokio::test]
async fn a_head_that_does_not_come_is_not_waited_for() {
    let (running, clock) = Running::start_with_manual_clock().await;
    let slow = running.raw("GET /healthz HTTP/1.1\r\nHost: loc");
    until("the daemon waits for the rest", || clock.pending_alarms() == 1).await;
    clock.advance(Duration::from_secs(10));
    let answer = slow.rest().await;
    assert!(
        answer.starts_with("HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n"),
        "{answer}"
    );
    let found = problem_of(&answer);
    let detail = "The head of the request did not arrive within 10 seconds.";
    let expected = protocol::Problem::new(
        protocol::ErrorCode::RequestTimeout,
        detail,
        found.request_id.clone(),
    );
    assert_eq!(found, expected);
}

#[tokio::test]
async fn an_idle_connection_is_closed_without_a_word() {
    let (running, clock) = Running::start_with_manual_clock().await;
    let idle = running.raw("");
    until("the daemon waits for a request", || clock.pending_alarms() == 1).await;
    clock.advance(Duration::from_secs(10));
    assert_eq!(idle.rest().await, "");
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let (running, clock) = Running::start_with_manual_clock().await;
    let head = running.head("POST /v1/breakers/a/force HTTP/1.1");
    let slow = running.raw(&format!(
        "{head}Content-Type: application/json\r\nConnection: close\r\nContent-Length: 16\r\n\r\n{{\"state\""
    ));
    until("the daemon waits for the rest", || clock.pending_alarms() == 1).await;
    clock.advance(Duration::from_secs(30));
    let answer = slow.rest().await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert_eq!(
        problem_of(&answer).detail,
        "The body did not arrive within 30 seconds."
    );
}

#[tokio::test]
async fn a_body_without_a_length_is_cut_off_at_the_limit() {
    let running = Running::start().await;
    let head = running.head("POST /v1/breakers/a/force HTTP/1.1");
    let mut raw = running.raw(&format!(
        "{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    ));
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    // The seventeenth chunk is over the limit; the daemon may close before it has read all that we would send.
    for _ in 0..17 {
        if raw.stream.write_all(chunk.as_bytes()).await.is_err() {
            break;
        }
    }
    let mut answer = vec![0; 4096];
    let length = within(raw.stream.read(&mut answer)).await.unwrap();
    let answer = String::from_utf8_lossy(&answer[..length]);
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains("\"code\":\"body_too_large\""), "{answer}");
}

#[tokio::test]
async fn a_peer_that_asks_and_does_not_read_is_not_waited_for() {
    let (running, clock) = Running::start_with_manual_clock().await;
    // Each answer has tens of kilobytes, which no socket's buffer takes so often.
    let request = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let deaf = running.raw(&request.repeat(100));
    let pending = |clock: &kernel::ManualClock| clock.pending_alarms() == 1;
    until("the daemon waits for the reader", || pending(&clock)).await;
    clock.advance(Duration::from_secs(30));
    let answers = deaf.rest().await;
    let count = answers.matches("HTTP/1.1 200 OK").count();
    assert!((1..100).contains(&count), "{count} answers were written");
}

#[tokio::test]
async fn what_is_not_http_or_too_much_of_it_is_refused() {
    let running = Running::start().await;
    let long_header = format!(
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
        "x".repeat(17 * 1024)
    );
    let many_headers = format!(
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
        "X: y\r\n".repeat(64)
    );
    let long_target = format!(
        "GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "x".repeat(17 * 1024)
    );
    for (request, expected) in [
        ("what is this\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n"),
        ("\0\0\0\0\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n"),
        (
            "GET /healthz HTTP/1.1\r\nHost localhost\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\n",
        ),
        (&long_header, "HTTP/1.1 431 Request Header Fields Too Large\r\n"),
        (&many_headers, "HTTP/1.1 431 Request Header Fields Too Large\r\n"),
        (&long_target, "HTTP/1.1 431 Request Header Fields Too Large\r\n"),
    ] {
        let answer = running.raw(request).rest().await;
        assert!(answer.starts_with(expected), "{:.60}: {answer}", request);
    }
    // Nobody else is the worse for it.
    assert_eq!(running.tcp().get("/healthz").send().await.status, 200);
}

/// How many connections a listener has.
const LIMIT: usize = 256;

/// Connects, and sends something.
async fn connect(running: &Running, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

/// The status line of the next answer, as far as the status.
async fn status(stream: &mut TcpStream) -> String {
    let mut answer = [0; 12];
    within(stream.read_exact(&mut answer)).await.unwrap();
    String::from_utf8(answer.to_vec()).unwrap()
}

#[tokio::test]
async fn whoever_asks_nothing_makes_room_for_whoever_asks() {
    let health = |running: &Running| format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", running.address);
    // Nobody moves the clock, so nobody is sent away for being slow.
    let (running, _clock) = Running::start_with_manual_clock().await;
    let mut answered = connect(&running, &health(&running)).await;
    assert_eq!(status(&mut answered).await, "HTTP/1.1 200");
    for half in ["", "GET /healthz HTTP/1.1\r\nHost: loc"] {
        let mut held = Vec::new();
        for _ in 0..LIMIT {
            held.push(connect(&running, half).await);
        }
        for _ in 0..3 {
            let mut late = connect(&running, &health(&running)).await;
            assert_eq!(status(&mut late).await, "HTTP/1.1 200", "{half:?}");
        }
        // The oldest was sent away without a word.
        let mut rest = Vec::new();
        drop(within(held[0].read_to_end(&mut rest)).await);
        assert_eq!(rest, b"", "{half:?}");
    }
    // The one that was answered first has gone as well, with its whole answer.
    let mut rest = String::new();
    within(answered.read_to_string(&mut rest)).await.unwrap();
    assert!(rest.ends_with('}'), "{rest}");
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_while_all_others_are_being_answered() {
    let running = Running::start().await;
    let half = format!(
        "POST /v1/breakers/a/force HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: 16\r\n\r\n{{\"state\"",
        running.address, running.token
    );
    let mut held = Vec::new();
    for _ in 0..LIMIT {
        held.push(connect(&running, &half).await);
    }
    // The one that asks for the number is one of them.
    let expected = format!("http_requests_in_flight {}", LIMIT + 1);
    within(async {
        while !running
            .unix()
            .get("/metrics")
            .send()
            .await
            .body
            .contains(&expected)
        {}
    })
    .await;
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", running.address);
    let mut late = connect(&running, &request).await;
    // The owner's socket has places of its own. After some answers over it, the daemon has had every occasion
    // to look at the late connection.
    for _ in 0..20 {
        assert_eq!(running.unix().get("/healthz").send().await.status, 200);
    }
    let mut answer = [0; 12];
    let nothing = late.try_read(&mut answer).map_err(|error| error.kind());
    assert_eq!(nothing, Err(std::io::ErrorKind::WouldBlock));
    // Whoever has its answer makes room, though it would like to ask again.
    held[7].write_all(b":\"open\"}").await.unwrap();
    assert_eq!(status(&mut held[7]).await, "HTTP/1.1 200");
    assert_eq!(status(&mut late).await, "HTTP/1.1 200");
}

#[tokio::test]
async fn the_socket_and_the_token_are_the_owners() {
    let running = Running::start().await;
    for path in [running.home.socket(), running.home.token_file()] {
        assert_eq!(std::fs::metadata(path).unwrap().mode() & 0o777, 0o600);
    }
}
