//! Names that are ours, pages that are ours, and everybody else's.

use kernel::SystemClock;
use protocol::ErrorCode;

use crate::client::Client;
use crate::running::Running;

async fn daemon_with_a_name() -> Running {
    Running::start_with(SystemClock::shared(), |options| {
        options.allowed_hosts = vec!["box.example".to_owned()];
    })
    .await
}

/// What a request is refused with, if it is.
async fn refusal(client: &Client, path: &str, headers: &[(&'static str, &str)]) -> Option<(u16, ErrorCode)> {
    let mut call = client.get(path);
    for (name, value) in headers {
        call = call.header(name, value);
    }
    let answer = call.send().await;
    (answer.status != 200).then(|| (answer.status, answer.problem().code))
}

#[tokio::test]
async fn a_request_for_another_host_is_refused_on_every_path() {
    let running = daemon_with_a_name().await;
    let port = running.address.port();
    let refused = Some((421, ErrorCode::HostNotAllowed));
    for (host, over_tcp, over_unix) in [
        (format!("127.0.0.1:{port}"), None, None),
        (format!("localhost:{port}"), None, None),
        (format!("[::1]:{port}"), None, None),
        ("box.example:80".to_owned(), None, None),
        ("localhost".to_owned(), refused, None),
        (format!("127.0.0.1:{}", port.wrapping_add(1)), refused, refused),
        (format!("evil.example:{port}"), refused, refused),
        (String::new(), refused, refused),
    ] {
        for path in ["/healthz", "/v1/status"] {
            let found = (
                refusal(&running.tcp(), path, &[("host", &host)]).await,
                refusal(&running.unix(), path, &[("host", &host)]).await,
            );
            assert_eq!(found, (over_tcp, over_unix), "{host} {path}");
        }
    }
}

#[tokio::test]
async fn a_request_from_a_foreign_page_is_refused_even_with_the_token() {
    let running = daemon_with_a_name().await;
    let port = running.address.port();
    let refused = Some((403, ErrorCode::OriginNotAllowed));
    for (origin, expected) in [
        (format!("http://127.0.0.1:{port}"), None),
        (format!("http://localhost:{port}"), None),
        ("https://box.example".to_owned(), None),
        (format!("http://localhost:{}", port.wrapping_add(1)), refused),
        ("https://evil.example".to_owned(), refused),
        ("null".to_owned(), refused),
    ] {
        for client in [running.tcp(), running.unix()] {
            let found = refusal(&client, "/v1/status", &[("origin", &origin)]).await;
            assert_eq!(found, expected, "{origin}");
        }
    }
}

#[tokio::test]
async fn a_request_without_one_clear_host_is_refused() {
    let running = Running::start().await;
    for head in [
        "GET /healthz HTTP/1.1\r\n\r\n",
        "GET /healthz HTTP/1.0\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: evil.example\r\nHost: localhost\r\n\r\n",
        "GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ] {
        let closing = head.replacen("\r\n", "\r\nConnection: close\r\n", 1);
        let answer = running.raw(&closing).rest().await;
        assert!(
            answer.starts_with("HTTP/1.1 421 ") || answer.starts_with("HTTP/1.0 421 "),
            "{head}: {answer}"
        );
        assert!(
            answer.contains("\"code\":\"host_not_allowed\""),
            "{head}: {answer}"
        );
    }
}
