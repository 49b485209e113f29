//! Peers that misuse their connection: by bytes that come one by one or never, by heads and bodies without end, by shapes that
//! two readers would understand in two ways. Each is refused or closed, and nobody else notices.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::thread;

use crate::harness::wait_for;
use crate::security_stage::{Reply, Target};

/// More than a listener has places.
const MANY: usize = 300;

/// A request that says that one more follows.
const STATUS: &str = "GET /v1/status HTTP/1.1";

#[test]
fn a_head_that_comes_byte_by_byte_is_in_nobodys_way() {
    let target = Target::new();
    let before = target.sockets();
    let head = target.head(STATUS);
    let mut slow: Vec<_> = (0..MANY).map(|_| target.connect()).collect();
    // Each gets one byte after the other, and never the last one.
    for byte in head.as_bytes().chunks(1).take(40) {
        for peer in &mut slow {
            // Those who were sent away are not missed.
            drop(peer.stream.write_all(byte));
        }
        target.answers_others();
    }
    drop(slow);
    wait_for("the sockets to be given back", || target.sockets() <= before + 8);
}

#[test]
fn a_body_that_comes_byte_by_byte_is_not_in_the_way_of_the_owner() {
    let target = Target::new();
    let (head, body) = (
        target.head("POST /v1/breakers/a/record HTTP/1.1"),
        "{\"outcome\":\"success\"}",
    );
    let head = format!(
        "{head}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut slow: Vec<_> = (0..50).map(|_| target.connect()).collect();
    for peer in &mut slow {
        peer.write(&head).unwrap();
    }
    for byte in body.as_bytes().chunks(1) {
        for peer in &mut slow {
            peer.stream.write_all(byte).unwrap();
        }
        target.answers_others();
        target.world.run(&["breaker", "list"]).expect(0);
    }
    // They are slow, and they are right: each gets its answer.
    for peer in &mut slow {
        let replies = peer.replies();
        assert_eq!(replies.len(), 1);
        assert_eq!(replies[0].status, 200, "{replies:?}");
    }
}

#[test]
fn a_body_without_a_token_is_not_waited_for() {
    let target = Target::new();
    for length in ["Content-Length: 1000000", "Transfer-Encoding: chunked"] {
        let mut peer = target.connect();
        let head = format!(
            "POST /v1/jobs HTTP/1.1\r\nHost: {}\r\n{length}\r\n\r\n",
            target.address
        );
        peer.write(&head).unwrap();
        let replies = peer.replies();
        assert_eq!(
            replies.iter().map(|reply| reply.status).collect::<Vec<_>>(),
            [401],
            "{length}"
        );
    }
}

/// The statuses of all answers on one connection.
fn statuses(target: &Target, bytes: &[u8]) -> Vec<u16> {
    target.exchange(bytes).iter().map(|reply| reply.status).collect()
}

#[test]
fn heads_and_bodies_without_end_are_cut_off() {
    let target = Target::new();
    let head = target.head(STATUS);
    let post = format!(
        "{}Content-Type: application/json\r\n",
        target.head("POST /v1/breakers/a/record HTTP/1.1")
    );
    let repeated = |count: usize, text: &str| text.repeat(count);
    for (name, request, expected) in [
        (
            "a long header",
            format!("{head}X: {}\r\n\r\n", repeated(1 << 20, "x")),
            431,
        ),
        (
            "a long name",
            format!("{head}{}: x\r\n\r\n", repeated(1 << 20, "x")),
            431,
        ),
        (
            "many headers",
            format!("{head}{}\r\n", repeated(10_000, "X: y\r\n")),
            431,
        ),
        (
            "many cookies",
            format!("{head}{}\r\n", repeated(100, "Cookie: a=b\r\n")),
            431,
        ),
        (
            "a long target",
            format!("GET /{} HTTP/1.1\r\n\r\n", repeated(1 << 20, "x")),
            431,
        ),
        (
            "a long method",
            format!("{} / HTTP/1.1\r\n\r\n", repeated(1 << 20, "G")),
            431,
        ),
        ("a head without end", repeated(1 << 20, "G"), 431),
        (
            "a large length",
            format!("{post}Content-Length: 1000000000000\r\n\r\n"),
            413,
        ),
        (
            "a length beyond all",
            format!("{post}Content-Length: 99999999999999999999999\r\n\r\n"),
            400,
        ),
        (
            "a long chunk",
            format!(
                "{post}Transfer-Encoding: chunked\r\n\r\n3000000\r\n{}",
                repeated(0x30_0000, " ")
            ),
            413,
        ),
        (
            "many chunks",
            format!(
                "{post}Transfer-Encoding: chunked\r\n\r\n{}",
                repeated(100_000, "10\r\n                \r\n")
            ),
            413,
        ),
        (
            "many small chunks",
            format!(
                "{post}Transfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n",
                repeated(100_000, "1\r\n \r\n")
            ),
            400,
        ),
        (
            "a large body",
            format!(
                "{post}Content-Length: 3000000\r\n\r\n{}",
                repeated(3_000_000, " ")
            ),
            413,
        ),
        (
            "deep JSON",
            {
                let body = repeated(100_000, "[");
                format!("{post}Content-Length: {}\r\n\r\n{body}", body.len())
            },
            400,
        ),
    ] {
        let found = statuses(&target, request.as_bytes());
        // The daemon may close while we still write, and the answer is lost with the rest then; it never goes on.
        assert!(found == [expected] || found.is_empty(), "{name}: {found:?}");
    }
    target.answers_others();
    assert!(target.memory_mib() < 300, "{} MiB", target.memory_mib());
}

#[test]
fn what_two_readers_could_understand_in_two_ways_is_refused_and_the_connection_closed() {
    let target = Target::new();
    let post = format!(
        "{}Content-Type: application/json\r\n",
        target.head("POST /v1/breakers/a/record HTTP/1.1")
    );
    let hidden = target.head("POST /v1/breakers/hidden/force HTTP/1.1");
    let hidden_body = "{\"state\":\"open\"}";
    let hidden = format!(
        "{hidden}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{hidden_body}",
        hidden_body.len()
    );
    for (name, request) in [
        (
            "length and chunks",
            format!("{post}Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"),
        ),
        (
            "chunks and length",
            format!("{post}Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\n{hidden}"),
        ),
        (
            "two lengths",
            format!("{post}Content-Length: 2\r\nContent-Length: 400\r\n\r\n{{}}{hidden}"),
        ),
        (
            "two lengths in one",
            format!("{post}Content-Length: 2, 400\r\n\r\n{{}}{hidden}"),
        ),
        (
            "a signed length",
            format!("{post}Content-Length: +2\r\n\r\n{{}}{hidden}"),
        ),
        (
            "a negative length",
            format!("{post}Content-Length: -2\r\n\r\n{{}}{hidden}"),
        ),
        (
            "a length in hexadecimal",
            format!("{post}Content-Length: 0x2\r\n\r\n{{}}{hidden}"),
        ),
        (
            "unknown coding",
            format!("{post}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{hidden}"),
        ),
        (
            "chunked is not last",
            format!("{post}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{hidden}"),
        ),
        (
            "a tab before the colon",
            format!("{post}Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n{hidden}"),
        ),
        (
            "a space before the colon",
            format!("{post}Content-Length : 2\r\n\r\n{{}}{hidden}"),
        ),
        (
            "a folded header",
            format!("{post}X: a\r\n Content-Length: 2\r\n\r\n{{}}{hidden}"),
        ),
        (
            "a chunk of a wrong size",
            format!("{post}Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{{}}\r\n{hidden}"),
        ),
        (
            "a signed chunk",
            format!("{post}Transfer-Encoding: chunked\r\n\r\n-1\r\n{{}}\r\n{hidden}"),
        ),
        (
            "a chunk without its end",
            format!("{post}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}{hidden}"),
        ),
        ("chunks of HTTP/1.0", {
            let post = post.replacen("HTTP/1.1", "HTTP/1.0", 1);
            format!("{post}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}")
        }),
        (
            "a line that ends early",
            format!("{post}X: a\nContent-Length: 2\r\r\n\r\n{{}}{hidden}"),
        ),
        (
            "a NUL",
            format!("{post}X: a\0b\r\nContent-Length: 2\r\n\r\n{{}}{hidden}"),
        ),
        (
            "another version",
            format!(
                "{}Content-Length: 2\r\n\r\n{{}}{hidden}",
                post.replacen("HTTP/1.1", "HTTP/1.9", 1)
            ),
        ),
        (
            "the preface of HTTP/2",
            format!("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{hidden}"),
        ),
        (
            "TLS",
            format!("\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\u{fc}\u{3}\u{3}{hidden}"),
        ),
    ] {
        let replies = target.exchange(request.as_bytes());
        // One answer at most: what follows on the connection is never taken for a request.
        assert!(replies.len() <= 1, "{name}: {replies:?}");
        let is_refused = |reply: &Reply| (400..500).contains(&reply.status);
        assert!(replies.iter().all(is_refused), "{name}: {replies:?}");
    }
    let breakers = target.ask("GET", "/v1/breakers", "").body;
    assert!(!breakers.contains("hidden"), "{breakers}");
    // The same request on its own is a good one.
    assert_eq!(statuses(&target, hidden.as_bytes()), [200]);
}

#[test]
fn requests_in_one_piece_are_answered_one_by_one_and_in_order() {
    let target = Target::new();
    let mut requests = String::new();
    for number in 0..200 {
        requests += &format!(
            "{}\r\n",
            target.head(&format!("GET /v1/breakers/missing{number} HTTP/1.1"))
        );
    }
    let replies = target.exchange(requests.as_bytes());
    assert_eq!(replies.len(), 200);
    for (number, reply) in replies.iter().enumerate() {
        assert_eq!(reply.status, 404);
        assert!(
            reply.body.contains(&format!("missing{number}`")),
            "{number}: {reply:?}"
        );
    }
    // The first that is wrong is the last that is looked at.
    let good = format!("{}\r\n", target.head(STATUS));
    let found = statuses(&target, format!("{good}NONSENSE\r\n\r\n{good}").as_bytes());
    assert_eq!(found, [200, 400]);
}

/// Sends something, says at once that no more will come, and returns the statuses of what is answered.
fn half_closed(target: &Target, text: &str) -> Vec<u16> {
    let mut peer = target.connect();
    peer.write(text).unwrap();
    peer.stream.shutdown(Shutdown::Write).unwrap();
    peer.replies().iter().map(|reply| reply.status).collect()
}

#[test]
fn whoever_stops_talking_or_listening_is_let_go() {
    let target = Target::new();
    let before = target.sockets();
    // Half a connection is taken for one that goes away: it is closed at once, with an answer if there is one already.
    let post = target.head("POST /v1/breakers/a/record HTTP/1.1");
    for (request, expected) in [
        (format!("{}\r\n", target.head(STATUS)), 200),
        (target.head(STATUS), 400),
        (String::new(), 400),
        (
            format!("{post}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"),
            400,
        ),
    ] {
        let found = half_closed(&target, &request);
        assert!(found.is_empty() || found == [expected], "{request}: {found:?}");
    }
    // Many who ask for much and read none of it, and many who hang up at once.
    let large = format!("GET /openapi.json HTTP/1.1\r\nHost: {}\r\n\r\n", target.address).repeat(200);
    let mut deaf = Vec::new();
    for _ in 0..100 {
        let mut peer = target.connect();
        peer.stream.set_nonblocking(true).unwrap();
        drop(peer.stream.write_all(large.as_bytes()));
        deaf.push(peer);
        let mut gone = target.connect();
        gone.write(&format!("{}\r\n", target.head(STATUS))).unwrap();
    }
    target.answers_others();
    let memory = target.memory_mib();
    assert!(memory < 300, "{memory} MiB for those who do not read");
    drop(deaf);
    wait_for("the sockets to be given back", || target.sockets() <= before + 8);
}

#[test]
fn readers_of_a_stream_who_never_read_keep_nobody_else_waiting() {
    let target = Target::new();
    target.world.run(&["breaker", "force", "a", "open"]).expect(0);
    let before = target.sockets();
    let follow = format!(
        "{}Accept: text/event-stream\r\n\r\n",
        target.head("GET /v1/breakers/a/events HTTP/1.1")
    );
    let mut deaf = Vec::new();
    for _ in 0..MANY {
        let mut peer = target.connect();
        peer.write(&follow).unwrap();
        deaf.push(peer);
    }
    // One of them reads, and misses nothing.
    let mut reader = target.connect();
    reader.write(&follow).unwrap();
    let reading = thread::spawn(move || {
        let (mut text, mut piece) = (String::new(), [0; 4096]);
        while text.matches("event: ").count() < 41 && text.matches("\nid: ").count() < 41 {
            let length = reader.stream.read(&mut piece).unwrap();
            assert!(length > 0, "the stream ended: {text}");
            text += &String::from_utf8_lossy(&piece[..length]);
        }
    });
    for round in 0..40 {
        let state = if round % 2 == 0 { "closed" } else { "open" };
        let body = format!("{{\"state\":\"{state}\"}}");
        assert_eq!(target.ask("POST", "/v1/breakers/a/force", &body).status, 200);
    }
    reading.join().unwrap();
    target.answers_others();
    drop(deaf);
    wait_for("the sockets to be given back", || target.sockets() <= before + 8);
}
