//! The page: link, cookie, forms, and what it tells browsers about itself.

use http::Method;
use protocol::PageLink;
use std::time::Duration;

use crate::client::{Answer, Client};
use crate::running::Running;

/// A browser that has opened a one-time link.
pub(crate) struct Browser {
    client: Client,
    pub(crate) cookie: String,
    /// The host of the page, with its port.
    pub(crate) host: String,
}

impl Browser {
    pub(crate) async fn sign_in(running: &Running) -> Self {
        let client = running.tcp();
        let (host, path) = link(running).await;
        let call = client.get(&path).without("authorization");
        let opened = call.header("host", &host).send().await;
        assert_eq!(
            (opened.status, opened.header("location")),
            (303, Some("/")),
            "{opened:?}"
        );
        let set_cookie = opened.header("set-cookie").unwrap();
        let (cookie, attributes) = set_cookie.split_once("; ").unwrap();
        assert_eq!(attributes, "Path=/; HttpOnly; SameSite=Strict");
        assert!(cookie.starts_with("tidelock_page="));
        Self {
            cookie: format!("other=1; {cookie}; more=2"),
            host,
            client,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        let call = self.client.get(path).without("authorization");
        let call = call.header("host", &self.host);
        call.header("cookie", &self.cookie).send().await
    }

    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let call = self.client.post(path).without("authorization").form(fields);
        call.header("cookie", &self.cookie)
            .header("host", &self.host)
            .header("origin", &format!("http://{}", self.host))
            .send()
            .await
    }

    /// Sends the form and loads the page that follows.
    pub(crate) async fn submit(&self, path: &str, fields: &[(&str, &str)]) -> String {
        let answer = self.post(path, fields).await;
        assert_eq!(
            (answer.status, answer.header("location")),
            (303, Some("/breakers")),
            "{answer:?}"
        );
        self.get("/breakers").await.body
    }

    pub(crate) async fn form_token(&self) -> String {
        field(&self.get("/breakers").await.body, "form_token")
    }
}

/// A new link, as the host and the path of its address.
pub(crate) async fn link(running: &Running) -> (String, String) {
    let answer = running.unix().post("/v1/page-links").send().await;
    assert_eq!(answer.status, 201);
    let link: PageLink = answer.json();
    assert_eq!(link.expires_in_ms, 300_000);
    let address = link.url.strip_prefix("http://").unwrap();
    let (host, path) = address.split_once('/').unwrap();
    assert!(host.ends_with(&format!(".localhost:{}", running.address.port())));
    assert!(path.starts_with("open?code="));
    (host.to_owned(), format!("/{path}"))
}

/// The value of the first hidden field of a name.
pub(crate) fn field(page: &str, name: &str) -> String {
    let (_, rest) = page
        .split_once(&format!("name=\"{name}\" value=\""))
        .unwrap_or_else(|| panic!("{page}"));
    rest.split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn without_a_session_the_page_says_how_to_get_one() {
    let running = Running::start().await;
    let cookie = format!("tidelock_page={}", "0".repeat(64));
    let (page_host, _) = link(&running).await;
    let plain_host = running.address.to_string();
    for path in [
        "/",
        "/breakers",
        "/live/overview",
        "/live/breakers",
        "/servers",
        "/live/servers",
        "/servers/a",
        "/live/servers/a",
        "/jobs",
        "/live/jobs",
        "/jobs/a",
        "/live/jobs/a",
        "/events",
        "/live/events",
    ] {
        for (cookie, host) in [
            ("", &page_host),
            (&cookie, &page_host),
            ("", &plain_host),
            (&cookie, &plain_host),
        ] {
            let client = running.tcp();
            let call = client.get(path).without("authorization");
            let answer = call.header("cookie", cookie).header("host", host).send().await;
            assert_eq!(answer.status, 401);
            assert!(answer.header("www-authenticate").is_some());
            assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
            assert!(
                answer.body.contains("<code>tidelock up</code>"),
                "{}",
                answer.body
            );
        }
    }
}

#[tokio::test]
async fn a_link_works_once_and_not_for_long() {
    let (running, clock) = Running::start_with_manual_clock().await;
    let client = running.tcp();
    let (host, path) = link(&running).await;
    let get = async |path: &str| client.get(path).header("host", &host).send().await;
    let opened = [get(&path).await.status, get(&path).await.status];
    assert_eq!(opened, [303, 401]);

    let (_, path) = link(&running).await;
    clock.advance(Duration::from_secs(300));
    let answer = get(&path).await;
    assert_eq!(answer.status, 401);
    assert!(
        answer.body.contains("This link was already used or has expired."),
        "{}",
        answer.body
    );
    assert_eq!(get("/open").await.status, 401);
    for path in ["/open?code=", "/open?code=a&code=b", "/open?code=%FF", "/open?%"] {
        assert_eq!(get(path).await.status, 401, "{path}");
    }
}

#[tokio::test]
async fn a_browser_is_signed_in_on_the_pages_host_and_only_a_link_tells_that_host() {
    let (running, clock) = Running::start_with_manual_clock().await;
    let browser = Browser::sign_in(&running).await;
    let port = running.address.port();
    let others = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    let (name, _) = browser.host.split_once('.').unwrap();
    for host in &others {
        for path in [
            "/",
            "/v1/status",
            "/open?code=0",
            "/nowhere",
            "/healthz",
            "/openapi.json",
        ] {
            let call = running.tcp();
            let call = call.get(path).without("authorization").header("host", host);
            let answer = call.header("cookie", &browser.cookie).send().await;
            let is_open = ["/healthz", "/openapi.json"].contains(&path);
            let expected = match path {
                _ if is_open => 200,
                "/nowhere" => 404,
                _ => 401,
            };
            assert_eq!(answer.status, expected, "{host} {path}");
            assert!(!format!("{answer:?}").contains(name), "{host} {path}: {answer:?}");
        }
        // Whoever has a link is sent to where it leads, and the link is not used up by it.
        let (page_host, path) = link(&running).await;
        let call = running.tcp();
        let sent = call
            .get(&path)
            .without("authorization")
            .header("host", host)
            .send()
            .await;
        assert_eq!(
            (sent.status, sent.header("location"), sent.header("set-cookie")),
            (303, Some(format!("http://{page_host}{path}").as_str()), None)
        );
        let opened = running.tcp().get(&path).header("host", &page_host).send().await;
        assert_eq!((opened.status, opened.header("location")), (303, Some("/")));
        let (_, path) = link(&running).await;
        clock.advance(Duration::from_secs(300));
        let late = running.tcp().get(&path).header("host", host).send().await;
        assert_eq!((late.status, late.header("location")), (401, None));
    }
}

#[tokio::test]
async fn a_used_link_does_not_send_a_signed_in_browser_away() {
    let running = Running::start().await;
    let browser = Browser::sign_in(&running).await;
    let answer = browser.get("/open?code=used").await;
    assert_eq!((answer.status, answer.header("location")), (303, Some("/")));
}

#[tokio::test]
async fn pages_are_guarded_against_what_others_might_put_into_them() {
    let running = Running::start().await;
    let browser = Browser::sign_in(&running).await;
    for path in [
        "/",
        "/breakers",
        "/live/breakers",
        "/servers",
        "/live/servers",
        "/jobs",
        "/live/jobs",
        "/events",
        "/live/events",
        "/docs/errors",
        "/v1/status",
    ] {
        let answer = browser.get(path).await;
        assert_eq!(answer.status, 200);
        let policy = answer.header("content-security-policy").unwrap();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'self'",
        ] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("same-origin"));
        for distance in ["cross-origin-opener-policy", "cross-origin-resource-policy"] {
            assert_eq!(answer.header(distance), Some("same-origin"), "{path}");
        }
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        for written_in in ["<style", " style=", " onclick=", "<script>"] {
            assert!(!answer.body.contains(written_in), "{path} has {written_in}");
        }
    }
}

#[tokio::test]
async fn names_are_shown_as_text() {
    let running = Running::start().await;
    running.breakers.force_open("<script>alert(1)</script>\"'&");
    let browser = Browser::sign_in(&running).await;
    for path in ["/", "/breakers"] {
        let page = browser.get(path).await.body;
        assert!(
            page.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;"),
            "{page}"
        );
        assert!(!page.contains("<script>alert"), "{page}");
    }
}

#[tokio::test]
async fn the_overview_names_what_needs_a_look_and_stays_short() {
    let running = Running::start().await;
    let browser = Browser::sign_in(&running).await;
    drop(running.breakers.circuit("well"));
    let page = browser.get("/").await.body;
    for part in [
        "<title>Overview · Tidelock</title>",
        "Nothing right now: no questions",
        "data-waiting=\"\"",
        "<h2 id=\"first\">Get started</h2>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    for index in 0..25 {
        running.breakers.force_open(&format!("broken-{index:02}"));
    }
    let live = browser.get("/live/overview").await.body;
    let named = live.matches("data-need=\"breaker\"").count();
    assert_eq!((named, live.contains("and 5 more")), (20, true), "{live}");
    assert!(
        live.contains("data-waiting=\"25\"") && !live.contains("well"),
        "{live}"
    );
    // Whatever page somebody looks at, they see that something waits.
    for path in [
        "/",
        "/jobs",
        "/plans",
        "/sessions",
        "/events",
        "/servers",
        "/context",
    ] {
        let page = browser.get(path).await.body;
        assert!(
            page.contains("<title>(25) ") && page.contains("aria-label=\"25 need you\">25</span>"),
            "{path}: {page}"
        );
    }
}

#[tokio::test]
async fn files_can_be_kept_for_ever_because_their_address_names_their_content() {
    let running = Running::start().await;
    let page = Browser::sign_in(&running).await.get("/").await.body;
    let mut found = Vec::new();
    for part in page.split("\"/assets/").skip(1) {
        let file = part.split('"').next().unwrap();
        let answer = running
            .tcp()
            .get(&format!("/assets/{file}"))
            .without("authorization")
            .send()
            .await;
        assert_eq!(answer.status, 200, "{file}");
        assert_eq!(
            answer.header("cache-control"),
            Some("public, max-age=31536000, immutable")
        );
        found.push(answer.header("content-type").unwrap().to_owned());
    }
    found.sort_unstable();
    found.dedup();
    assert_eq!(
        found,
        [
            "image/svg+xml",
            "text/css; charset=utf-8",
            "text/javascript; charset=utf-8"
        ]
    );
    for path in ["/assets/style-0.css", "/assets/%FF", "/assets/..%2Fstyle.css"] {
        assert_eq!(running.tcp().get(path).send().await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn the_forms_have_their_effect_and_say_so() {
    let running = Running::start().await;
    let browser = Browser::sign_in(&running).await;
    let unused = browser.get("/breakers").await.body;
    assert!(
        unused.contains("context/keyword"),
        "those of strategies are always there: {unused}"
    );

    running.breakers.force_open("a/b");
    let token = browser.form_token().await;
    let page = browser
        .submit(
            "/breakers/force",
            &[("form_token", &token), ("name", "a/b"), ("state", "closed")],
        )
        .await;
    assert!(
        page.contains("“a/b” is now forced closed until you reset it."),
        "{page}"
    );
    assert!(page.contains("Forced closed"), "{page}");
    assert!(
        !browser.get("/breakers").await.body.contains("is now forced"),
        "a notice is said twice"
    );

    let generation = field(&page, "generation");
    let fields = [
        ("form_token", token.as_str()),
        ("name", "a/b"),
        ("generation", &generation),
    ];
    let page = browser.submit("/breakers/reset", &fields).await;
    assert!(page.contains("“a/b” was reset."), "{page}");

    // The same form again: what it saw is gone.
    let forced = [("form_token", token.as_str()), ("name", "a/b"), ("state", "open")];
    browser.submit("/breakers/force", &forced).await;
    let page = browser.submit("/breakers/reset", &fields).await;
    assert!(
        page.contains("“a/b” has moved since you looked: it is now <strong>forced open</strong>"),
        "{page}"
    );
    assert!(
        running.breakers.is_open("a/b"),
        "a stale form has changed something"
    );

    let page = browser
        .submit("/breakers/reset-all", &[("form_token", &token)])
        .await;
    assert!(page.contains(" breakers were reset."), "{page}");
    assert!(!running.breakers.is_open("a/b"));
}

#[tokio::test]
async fn a_form_needs_the_token_of_its_own_session() {
    let running = Running::start().await;
    running.breakers.force_open("a");
    let (browser, other) = (Browser::sign_in(&running).await, Browser::sign_in(&running).await);
    let foreign = other.form_token().await;
    for token in [
        None,
        Some(""),
        Some(foreign.as_str()),
        Some(running.token.as_str()),
    ] {
        let mut fields = vec![("name", "a"), ("state", "closed")];
        fields.extend(token.map(|token| ("form_token", token)));
        let answer = browser.post("/breakers/force", &fields).await;
        assert_eq!(answer.status, 403, "{token:?}");
        assert!(answer.body.contains("Nothing was changed."), "{}", answer.body);
    }
    assert!(running.breakers.is_open("a"));

    let token = browser.form_token().await;
    let fields = [("form_token", token.as_str()), ("name", "a"), ("state", "ajar")];
    assert_eq!(browser.post("/breakers/force", &fields).await.status, 422);
    let fields = [("form_token", token.as_str()), ("name", "a\n"), ("state", "open")];
    assert_eq!(browser.post("/breakers/force", &fields).await.status, 400);
    let client = running.tcp();
    let call = client.post("/breakers/reset-all").form(&[("form_token", &token)]);
    assert_eq!(call.send().await.status, 401, "the bearer token is no session");
}

#[tokio::test]
async fn a_cookie_reads_the_interface_and_changes_it_only_with_the_form_token() {
    let running = Running::start().await;
    let browser = Browser::sign_in(&running).await;
    assert_eq!(browser.get("/v1/breakers").await.status, 200);
    assert_eq!(browser.get("/metrics").await.status, 200);
    let post = || {
        let call = browser.client.post("/v1/breakers/reset").without("authorization");
        call.header("cookie", &browser.cookie)
            .header("host", &browser.host)
    };
    let refused = post().send().await.problem();
    assert_eq!(
        (refused.status, refused.code),
        (403, protocol::ErrorCode::FormTokenInvalid)
    );
    running.breakers.force_open("a");
    let token = browser.form_token().await;
    assert_eq!(post().header("x-form-token", &token).send().await.status, 200);
}

#[tokio::test]
async fn a_browser_gets_a_page_for_what_is_not_there() {
    let running = Running::start().await;
    let answer = running
        .tcp()
        .get("/nowhere")
        .header("accept", "text/html,*/*;q=0.8")
        .send()
        .await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (404, Some("text/html; charset=utf-8"))
    );
    let answer = running.tcp().get("/nowhere").header("accept", "*/*").send().await;
    assert_eq!(answer.problem().code, protocol::ErrorCode::NotFound);
}

#[tokio::test]
async fn every_reference_of_a_problem_leads_to_its_section() {
    let running = Running::start().await;
    let page = running
        .tcp()
        .get("/docs/errors")
        .without("authorization")
        .send()
        .await
        .body;
    for code in protocol::ErrorCode::ALL {
        assert!(page.contains(&format!("<h2 id=\"{code}\">")), "{code}");
        assert_eq!(code.reference(), format!("/docs/errors#{code}"));
    }
}

#[tokio::test]
async fn a_session_outlives_its_daemon_and_belongs_to_its_token() {
    let first = Running::start().await;
    let browser = Browser::sign_in(&first).await;
    let asked = async |daemon: &Running| {
        // Each of these daemons has a port of its own; the name of the host stays.
        let (name, _) = browser.host.split_once(':').unwrap();
        let host = format!("{name}:{}", daemon.address.port());
        let client = daemon.tcp();
        let call = client.call(Method::GET, "/").without("authorization");
        let call = call.header("host", &host).header("cookie", &browser.cookie);
        call.send().await.status
    };
    let again = first.restart().await;
    assert_eq!(asked(&again).await, 200);
    let again = again.crash().await;
    assert_eq!(asked(&again).await, 200);
    let other = Running::start().await;
    assert_eq!(asked(&other).await, 421, "it has another token, and another host");
    let client = other.tcp();
    let call = client.get("/").without("authorization");
    let call = call.header("host", &link(&other).await.0);
    let answer = call.header("cookie", &browser.cookie).send().await;
    assert_eq!(answer.status, 401, "it has another token");
}

#[tokio::test]
async fn the_overview_shows_the_log_and_how_earlier_daemons_ended() {
    let running = Running::start().await.restart().await.crash().await;
    let browser = Browser::sign_in(&running).await;
    let page = browser.get("/").await.body;
    for part in [
        "<span class=\"badge good\">Writable</span>",
        "<dt>Stored in</dt><dd>a file in the state directory</dd>",
        "<dt>Streams</dt><dd class=\"number\">4</dd>",
        "<span class=\"badge good\">Running</span>",
        "<span class=\"badge bad\">Crashed</span>",
        "<span class=\"badge\">Stopped</span>",
        "(the test: it is over)",
    ] {
        assert!(page.contains(part), "{part} is not in\n{page}");
    }
    let live = browser.get("/live/overview").await.body;
    assert!(live.contains("<h2 id=\"log\">Log</h2>"), "{live}");
}

#[tokio::test]
async fn a_breaker_has_a_history_behind_a_link() {
    let running = Running::start().await;
    let browser = Browser::sign_in(&running).await;
    // The first one makes the page have a form.
    running.breakers.record_failure("other");
    let token = browser.form_token().await;
    for number in 0..60 {
        let state = if number % 2 == 0 { "open" } else { "closed" };
        let fields = [
            ("form_token", token.as_str()),
            ("name", "a/<b>&\"c\""),
            ("state", state),
        ];
        browser.submit("/breakers/force", &fields).await;
    }
    let page = browser.get("/breakers").await.body;
    let link = "/breakers/history?name=a%2F%3Cb%3E%26%22c%22";
    assert!(page.contains(&format!("<a href=\"{link}\"")), "{page}");

    let newest = browser.get(link).await;
    assert_eq!(newest.status, 200);
    assert!(
        newest.body.contains("History of a/&lt;b&gt;&amp;&quot;c&quot;"),
        "{}",
        newest.body
    );
    let rows = |page: &str| page.matches("<tr>").count() - 1;
    assert_eq!(rows(&newest.body), 50);
    let older = format!("{link}&amp;before=11");
    assert!(
        newest.body.contains(&format!("<a href=\"{older}\">Older</a>")),
        "{}",
        newest.body
    );
    let oldest = browser.get(&older.replace("&amp;", "&")).await.body;
    assert_eq!(rows(&oldest), 10);
    assert!(!oldest.contains(">Older<"), "{oldest}");
    assert!(
        oldest.contains("Forced open") && oldest.contains("over tcp"),
        "{oldest}"
    );

    let nobody = browser.get("/breakers/history?name=nobody").await;
    assert!(nobody.body.contains("No history"), "{}", nobody.body);
    for (path, status) in [("/breakers/history", 400), ("/breakers/history?name=", 400)] {
        assert_eq!(browser.get(path).await.status, status, "{path}");
    }
    let stranger = running.tcp().get(link).without("authorization").send().await;
    assert_eq!(stranger.status, 401);
}
