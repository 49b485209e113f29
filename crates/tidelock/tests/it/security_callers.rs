//! Who is let in: foreign pages, names that point to us, links that were used, cookies and tokens in wrong places.

use crate::security_stage::{Reply, Target};

/// A request without a token, with some headers, over TCP.
fn bare(target: &Target, first_line: &str, headers: &[String]) -> Reply {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let request = format!("{first_line}\r\n{headers}Connection: close\r\nContent-Length: 0\r\n\r\n");
    let mut replies = target.exchange(request.as_bytes());
    assert_eq!(replies.len(), 1, "{request}: {replies:?}");
    replies.remove(0)
}

#[test]
fn a_name_that_was_made_to_point_to_us_is_refused_whatever_it_looks_like() {
    let target = Target::new();
    let port = target.address.port();
    let token = format!("Authorization: Bearer {}", target.token);
    let ask = |first_line: &str, hosts: &[String]| {
        let mut headers: Vec<String> = hosts.iter().map(|host| format!("Host: {host}")).collect();
        headers.push(token.clone());
        bare(&target, first_line, &headers)
    };
    for host in [
        format!("127.0.0.1:{port}"),
        format!("localhost:{port}"),
        format!("LocalHost:{port}"),
        format!("[::1]:{port}"),
    ] {
        let reply = ask("GET /v1/status HTTP/1.1", std::slice::from_ref(&host));
        assert_eq!(reply.status, 200, "{host}: {reply:?}");
    }
    let other = port.wrapping_add(1);
    for host in [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        format!("localhost.evil.example:{port}"),
        format!("127.0.0.1.evil.example:{port}"),
        format!("127.0.0.1.nip.example:{port}"),
        format!("localhost.:{port}"),
        format!("127.1:{port}"),
        format!("127.0.0.2:{port}"),
        format!("0.0.0.0:{port}"),
        format!("2130706433:{port}"),
        format!("0x7f.1:{port}"),
        format!("0177.0.0.1:{port}"),
        format!("[::]:{port}"),
        format!("[::ffff:127.0.0.1]:{port}"),
        format!("[::ffff:7f00:1]:{port}"),
        format!("[0:0:0:0:0:0:0:1]:{port}"),
        format!("[::1%25lo]:{port}"),
        format!("::1:{port}"),
        format!("[::1]{port}"),
        format!("127.0.0.1:{other}"),
        "127.0.0.1".to_owned(),
        "localhost".to_owned(),
        "[::1]".to_owned(),
        format!("127.0.0.1:{port}:{port}"),
        format!("127.0.0.1:0{port}@evil.example"),
        format!("evil.example@127.0.0.1:{port}"),
        format!("127.0.0.1:{port}, evil.example"),
        format!("127.0.0.1 :{port}"),
        format!("127.0.0.1:{port}/"),
        format!("127.0.0.1:{port}#"),
        String::new(),
    ] {
        for path in ["/healthz", "/v1/status", "/", "/openapi.json", "/nowhere"] {
            let reply = ask(&format!("GET {path} HTTP/1.1"), std::slice::from_ref(&host));
            assert_eq!(
                (reply.status, reply.code().as_str()),
                (421, "host_not_allowed"),
                "{host:?} {path}: {reply:?}"
            );
        }
    }
    // The name in the first line counts as well as the header, in whatever order they come.
    let ours = format!("127.0.0.1:{port}");
    for (line, hosts) in [
        (
            format!("GET http://evil.example:{port}/v1/status HTTP/1.1"),
            vec![ours.clone()],
        ),
        (
            format!("GET http://{ours}/v1/status HTTP/1.1"),
            vec![format!("evil.example:{port}")],
        ),
        (
            format!("GET http://evil.example@{ours}/v1/status HTTP/1.1"),
            vec![ours.clone()],
        ),
        (
            "GET /v1/status HTTP/1.1".to_owned(),
            vec![ours.clone(), "evil.example".to_owned()],
        ),
        (
            "GET /v1/status HTTP/1.1".to_owned(),
            vec!["evil.example".to_owned(), ours.clone()],
        ),
        (
            "GET /v1/status HTTP/1.1".to_owned(),
            vec![ours.clone(), ours.clone()],
        ),
        ("GET /v1/status HTTP/1.1".to_owned(), vec![]),
        ("GET /v1/status HTTP/1.0".to_owned(), vec![]),
        (
            format!("CONNECT evil.example:{port} HTTP/1.1"),
            vec![ours.clone()],
        ),
    ] {
        let reply = ask(&line, &hosts);
        assert!(matches!(reply.status, 400 | 421), "{line} {hosts:?}: {reply:?}");
        assert!(!reply.body.contains("uptime_ms"), "{line} {hosts:?}");
    }
    assert_eq!(
        ask(&format!("GET http://{ours}/v1/status HTTP/1.1"), &[ours]).status,
        200
    );
}

#[test]
fn a_foreign_page_is_refused_with_whatever_it_has() {
    let target = Target::new();
    let port = target.address.port();
    let host = format!("Host: 127.0.0.1:{port}");
    let token = format!("Authorization: Bearer {}", target.token);
    let SignedIn {
        cookie, host: page, ..
    } = sign_in(&target);
    let refused = [
        "http://evil.example".to_owned(),
        "https://evil.example".to_owned(),
        "null".to_owned(),
        String::new(),
        "file://".to_owned(),
        format!("https://127.0.0.1:{port}"),
        format!("http://127.0.0.1:{}", port.wrapping_add(1)),
        format!("http://localhost.evil.example:{port}"),
        format!("http://evil.example:{port}"),
        format!("http://127.0.0.1:{port}.evil.example"),
        format!("http://127.0.0.1:{port}/"),
        format!("http://127.0.0.1:{port} http://evil.example"),
        "chrome-extension://abcdefghijklmnop".to_owned(),
    ];
    for origin in &refused {
        for (line, host, proof) in [
            ("GET /v1/status HTTP/1.1", &host, &token),
            ("POST /v1/breakers/reset HTTP/1.1", &host, &token),
            ("POST /v1/shutdown HTTP/1.1", &host, &token),
            ("GET / HTTP/1.1", &page, &cookie),
            ("GET /live/overview HTTP/1.1", &page, &cookie),
            ("POST /breakers/reset-all HTTP/1.1", &page, &cookie),
            ("OPTIONS /v1/status HTTP/1.1", &host, &token),
        ] {
            let headers = [host.clone(), proof.clone(), format!("Origin: {origin}")];
            let reply = bare(&target, line, &headers);
            assert_eq!(
                (reply.status, reply.code().as_str()),
                (403, "origin_not_allowed"),
                "{origin:?} {line}: {reply:?}"
            );
            // Nothing that would let a page of another site read the answer.
            assert_eq!(reply.header("access-control-allow-origin"), None);
        }
    }
    let own = [host, token, format!("Origin: http://127.0.0.1:{port}")];
    let reply = bare(&target, "GET /v1/status HTTP/1.1", &own);
    assert_eq!(
        (reply.status, reply.header("access-control-allow-origin")),
        (200, None)
    );
}

/// What a browser has after it has opened a link.
struct SignedIn {
    /// The headers that it sends.
    cookie: String,
    host: String,
    link: String,
}

/// A new link to the page: the header with its host, and its path and query.
fn new_link(target: &Target) -> (String, String) {
    let up = target.world.run(&["up", "--json"]).expect(0).json();
    let url = up["page"]["url"].as_str().unwrap();
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    (format!("Host: {host}"), format!("/{path}"))
}

fn open(target: &Target, host: &str, link: &str, method: &str) -> Reply {
    bare(target, &format!("{method} {link} HTTP/1.1"), &[host.to_owned()])
}

fn sign_in(target: &Target) -> SignedIn {
    let (host, link) = new_link(target);
    let reply = open(target, &host, &link, "GET");
    assert_eq!(
        (reply.status, reply.header("location")),
        (303, Some("/")),
        "{reply:?}"
    );
    let cookie = reply.header("set-cookie").unwrap();
    for demand in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(demand), "{cookie}");
    }
    assert!(
        !reply.head.contains("code="),
        "the code goes no further: {reply:?}"
    );
    let (pair, _) = cookie.split_once(';').unwrap();
    SignedIn {
        cookie: format!("Cookie: {pair}"),
        host,
        link,
    }
}

#[test]
fn a_link_works_once_and_only_as_it_was_printed() {
    let target = Target::new();
    let used = sign_in(&target);
    for method in ["GET", "HEAD", "GET"] {
        let again = open(&target, &used.host, &used.link, method);
        assert_eq!(
            (again.status, again.header("set-cookie")),
            (401, None),
            "{again:?}"
        );
    }
    let (host, fresh) = new_link(&target);
    let (path, code) = fresh.split_once("code=").unwrap();
    for wrong in [
        format!("{path}code="),
        format!("{path}code={}", &code[1..]),
        format!("{path}code={code}0"),
        format!("{path}code={}", code.to_uppercase()),
        format!("{path}code=%00{code}"),
        format!("{path}token={}", target.token),
        format!("{path}code={}", target.token),
        "/open".to_owned(),
        format!("/open?code={code}&code={code}"),
        format!("/open?code={}", "0".repeat(8000)),
    ] {
        let reply = open(&target, &host, &wrong, "GET");
        assert_eq!(
            (reply.status, reply.header("set-cookie")),
            (401, None),
            "{wrong:.80}"
        );
    }
    // All those attempts have not used it up, and have not been written down.
    assert_eq!(open(&target, &host, &fresh, "GET").status, 303);
    let log = std::fs::read_to_string(target.world.home().state.join("daemon.log")).unwrap();
    assert!(!log.contains(code), "the code is in the log");
    assert!(!log.contains(&target.token), "the token is in the log");
    let (page, _) = host["Host: ".len()..].split_once('.').unwrap();
    assert!(!log.contains(page), "the host of the page is in the log");
    // A daemon that is started again knows no link of the one before; the cookie is as good as the token that it belongs to.
    let with_cookie = |target: &Target| {
        let (host, _) = new_link(target);
        let same_name = host.split(':').nth(1) == used.host.split(':').nth(1);
        let reply = bare(target, "GET / HTTP/1.1", &[host, used.cookie.clone()]);
        (same_name, reply.status)
    };
    let (_, kept) = new_link(&target);
    target.world.run(&["down"]).expect(0);
    let target = Target::of(target.world);
    let (host, _) = new_link(&target);
    assert_eq!(open(&target, &host, &kept, "GET").status, 401);
    assert_eq!(with_cookie(&target), (true, 200));
    target.world.run(&["down"]).expect(0);
    std::fs::remove_file(target.world.home().token_file()).unwrap();
    assert_eq!(with_cookie(&Target::of(target.world)), (false, 401));
}

#[test]
fn a_token_anywhere_but_in_its_header_is_no_token() {
    let target = Target::new();
    let (host, token) = (format!("Host: {}", target.address), &target.token);
    for (line, headers) in [
        (format!("GET /v1/status?token={token} HTTP/1.1"), vec![]),
        (format!("GET /v1/status?access_token={token} HTTP/1.1"), vec![]),
        (
            format!("GET /v1/status?authorization=Bearer%20{token} HTTP/1.1"),
            vec![],
        ),
        (format!("GET /?token={token} HTTP/1.1"), vec![]),
        (
            format!("GET http://x:{token}@{}/v1/status HTTP/1.1", target.address),
            vec![],
        ),
        (
            "GET /v1/status HTTP/1.1".to_owned(),
            vec![format!("Cookie: token={token}")],
        ),
        (
            "GET /v1/status HTTP/1.1".to_owned(),
            vec![format!("Cookie: tidelock_page={token}")],
        ),
        (
            "GET /v1/status HTTP/1.1".to_owned(),
            vec![format!("X-Token: {token}")],
        ),
        (
            "GET /v1/status HTTP/1.1".to_owned(),
            vec![format!("Authorization: {token}")],
        ),
        (
            "GET /v1/status HTTP/1.1".to_owned(),
            vec![format!("Authorization: Basic {token}")],
        ),
        (
            "GET /v1/status HTTP/1.1".to_owned(),
            vec![format!("Authorization: Bearer {}", &token[1..])],
        ),
        (
            "GET /v1/status HTTP/1.1".to_owned(),
            vec![format!("Authorization: Bearer {token}x")],
        ),
        (
            "GET /v1/status HTTP/1.1".to_owned(),
            vec!["Authorization: Bearer".to_owned()],
        ),
        (
            "GET /v1/status HTTP/1.1".to_owned(),
            vec![
                "Authorization: Bearer x".to_owned(),
                format!("Authorization: Bearer {token}"),
            ],
        ),
    ] {
        let headers: Vec<String> = std::iter::once(host.clone()).chain(headers).collect();
        let reply = bare(&target, &line, &headers);
        assert!(matches!(reply.status, 401 | 421), "{line} {headers:?}: {reply:?}");
        assert!(!reply.body.contains("uptime_ms"), "{line}");
    }
}

#[test]
fn a_cookie_alone_changes_nothing() {
    let target = Target::new();
    target.world.run(&["breaker", "force", "a", "open"]).expect(0);
    let SignedIn { cookie, host, .. } = sign_in(&target);
    let own = host.replace("Host: ", "Origin: http://");
    for line in [
        "POST /v1/breakers/reset HTTP/1.1",
        "POST /v1/shutdown HTTP/1.1",
        "POST /v1/page-links HTTP/1.1",
        "PUT /v1/jobs/workers HTTP/1.1",
        "POST /v1/jobs HTTP/1.1",
        "DELETE /v1/sessions/x HTTP/1.1",
    ] {
        for more in [
            vec![],
            vec!["X-Form-Token: 0".to_owned()],
            vec!["X-Form-Token: ".to_owned()],
        ] {
            let mut headers = vec![host.clone(), own.clone(), cookie.clone()];
            headers.extend(more);
            let reply = bare(&target, line, &headers);
            assert_eq!(
                (reply.status, reply.code().as_str()),
                (403, "form_token_invalid"),
                "{line}"
            );
        }
    }
    let form = "Content-Type: application/x-www-form-urlencoded".to_owned();
    for line in [
        "POST /breakers/reset-all HTTP/1.1",
        "POST /breakers/reset HTTP/1.1",
        "POST /breakers/force HTTP/1.1",
        "POST /jobs/workers HTTP/1.1",
        "POST /plans/change HTTP/1.1",
        "POST /sessions/start HTTP/1.1",
        "POST /servers/change HTTP/1.1",
        "POST /workspaces/forget HTTP/1.1",
        "POST /context/indexes HTTP/1.1",
    ] {
        let reply = bare(
            &target,
            line,
            &[host.clone(), own.clone(), cookie.clone(), form.clone()],
        );
        assert!((400..500).contains(&reply.status), "{line}: {reply:?}");
    }
    let shown = target
        .world
        .run(&["breaker", "show", "a", "--json"])
        .expect(0)
        .json();
    assert_eq!(shown["state"], "forced_open");
    target.answers_others();
}
