//! What becomes of a turn when the server of its model misbehaves: each fault has an end with a name, and what had come stays.

use kernel::BreakerSettings;
use protocol::{ToolState, TurnState};
use serde_json::{Value, json};
use sessions::agents::model::ModelSettings;

use crate::kit::PATIENCE;
use crate::model_kit::{KEY, ModelKit, SHORT, responses, steps};

/// What is expected of a turn: its state and code, what was said, and how often the server was asked.
type Expected<'a> = (TurnState, &'a str, &'a str, usize);

async fn check(name: &str, script: Value, adjust: fn(&mut ModelSettings), expected: Expected<'_>) {
    let kit = ModelKit::with(script, adjust).await;
    let ended = kit.ask_once("Do it").await;
    let (state, code) = ended.end();
    let seen = (state, code, ended.text(), kit.server.requests().len());
    let (state, code, text, requests) = expected;
    assert_eq!(
        seen,
        (state, code, text.to_owned(), requests),
        "{name}: {}",
        ended.why()
    );
}

fn no_retries(settings: &mut ModelSettings) {
    settings.max_retries = 0;
}

fn impatient(settings: &mut ModelSettings) {
    settings.max_retries = 0;
    settings.request_timeout = SHORT;
    settings.idle_timeout = SHORT;
}

fn as_it_is(_: &mut ModelSettings) {}

const DONE: TurnState = TurnState::Done;
const FAILED: TurnState = TurnState::Failed;

#[tokio::test(flavor = "multi_thread")]
async fn refusals() {
    let said = format!(r#"{{"error": {{"message": "Incorrect key: {KEY}"}}}}"#);
    let fine = json!({"say": "fine"});
    let cases = [
        (
            "401",
            vec![json!({"status": 401, "body": said})],
            (FAILED, "model_unauthorized", "", 1),
        ),
        (
            "403",
            vec![json!({"status": 403, "body": said})],
            (FAILED, "model_unauthorized", "", 1),
        ),
        (
            "404",
            vec![json!({"status": 404})],
            (FAILED, "model_not_found", "", 1),
        ),
        (
            "400",
            vec![json!({"status": 400, "body": "no"})],
            (FAILED, "model_refused", "", 1),
        ),
        (
            "too long, and nothing to leave out",
            vec![json!({"status": 413})],
            (FAILED, "model_refused", "", 1),
        ),
        (
            "a redirection",
            vec![json!({"status": 302, "headers": {"location": "/x"}})],
            (FAILED, "model_refused", "", 1),
        ),
        (
            "429 once",
            vec![
                json!({"status": 429, "headers": {"retry-after": "0"}}),
                fine.clone(),
            ],
            (DONE, "", "fine", 2),
        ),
        (
            "429 until a date that has passed",
            vec![
                json!({"status": 429, "headers": {"retry-after": "Sun, 06 Nov 1994 08:49:37 GMT"}}),
                fine.clone(),
            ],
            (DONE, "", "fine", 2),
        ),
        (
            "429 for longer than anybody waits",
            vec![
                json!({"status": 429, "headers": {"retry-after": "3600"}}),
                fine.clone(),
            ],
            (FAILED, "model_rate_limited", "", 1),
        ),
        (
            "500 and 503 once",
            vec![json!({"status": 500}), json!({"status": 503}), fine.clone()],
            (DONE, "", "fine", 3),
        ),
        (
            "an error that begins a stream",
            vec![
                steps(&[json!({"event": {"error": {"message": "overloaded", "code": 529}}})]),
                fine,
            ],
            (DONE, "", "fine", 2),
        ),
    ];
    for (name, list, expected) in cases {
        check(name, responses(&list), as_it_is, expected).await;
    }
    let always = json!({"rules": [{"respond": {"status": 502}}]});
    let few = |settings: &mut ModelSettings| settings.max_retries = 2;
    check("502 for ever", always, few, (FAILED, "model_server_error", "", 3)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections() {
    let nobody = |settings: &mut ModelSettings| {
        // A port that was free a moment ago: nobody listens there.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        settings.base_url = format!("http://{}/v1", free.local_addr().unwrap());
        settings.max_retries = 1;
    };
    check(
        "nobody there",
        json!({}),
        nobody,
        (FAILED, "model_unreachable", "", 0),
    )
    .await;
    let encrypted = |settings: &mut ModelSettings| {
        settings.base_url = settings.base_url.replace("http:", "https:");
    };
    // What the client says to begin with is no request, and what the server says then is no certificate.
    let kit = ModelKit::with(json!({}), encrypted).await;
    assert_eq!(kit.ask_once("Do it").await.end(), (FAILED, "model_tls"));
    let silent = responses(&[json!({"silent": true})]);
    check("no answer", silent, impatient, (FAILED, "model_timeout", "", 1)).await;
    let hang_up = responses(&[json!({"hang_up": true})]);
    check(
        "hangs up",
        hang_up.clone(),
        no_retries,
        (FAILED, "model_unreachable", "", 1),
    )
    .await;
    let once = responses(&[json!({"hang_up": true}), json!({"say": "fine"})]);
    check("hangs up once", once, as_it_is, (DONE, "", "fine", 2)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_that_break_off() {
    let half = json!({"text": "Half of "});
    let call = json!({"tool": {"index": 0, "id": "a", "name": "write", "arguments": "{\"path\": \"x"}});
    let cases = [
        (
            "cut before anything",
            vec![json!("cut")],
            (FAILED, "model_stream_cut", "", 1),
        ),
        (
            "cut in the text",
            vec![half.clone(), json!("cut")],
            (FAILED, "model_stream_cut", "Half of ", 1),
        ),
        (
            "ended in the text",
            vec![half.clone()],
            (FAILED, "model_stream_cut", "Half of ", 1),
        ),
        (
            "cut in a call",
            vec![half.clone(), call.clone(), json!("cut")],
            (FAILED, "model_stream_cut", "Half of ", 1),
        ),
        (
            "an error in the text",
            vec![half.clone(), json!({"event": {"error": "gone"}})],
            (FAILED, "model_stream_cut", "Half of ", 1),
        ),
        (
            "no JSON",
            vec![half.clone(), json!({"raw": "data: {\"choices\": [}\n\n"})],
            (FAILED, "model_garbled", "Half of ", 1),
        ),
        (
            "no event",
            vec![half.clone(), json!({"raw": "<html>\n"})],
            (FAILED, "model_garbled", "Half of ", 1),
        ),
        (
            "no UTF-8, as far as JSON can say it",
            vec![json!({"raw": "\u{0}\n\n"})],
            (FAILED, "model_garbled", "", 1),
        ),
        (
            "a line without an end",
            vec![half.clone(), json!({"flood": 5_000_000}), json!("hang")],
            (FAILED, "model_garbled", "Half of ", 1),
        ),
        (
            "silence",
            vec![half.clone(), json!("hang")],
            (FAILED, "model_timeout", "Half of ", 1),
        ),
        (
            "silence before anything",
            vec![json!("hang")],
            (FAILED, "model_timeout", "", 1),
        ),
        (
            "a drip that becomes nothing",
            vec![
                half.clone(),
                json!({"drip": {"text": "data: ".repeat(500), "every_ms": 20}}),
            ],
            (FAILED, "model_timeout", "Half of ", 1),
        ),
        (
            "length",
            vec![half.clone(), call, json!({"finish": "length"}), json!("done")],
            (FAILED, "model_length", "Half of ", 1),
        ),
        (
            "filtered",
            vec![half.clone(), json!({"finish": "content_filter"}), json!("done")],
            (FAILED, "model_filtered", "Half of ", 1),
        ),
        (
            "signs of life, and no [DONE]",
            vec![
                json!({"repeat": {"times": 20, "steps": [{"comment": "wait"}, {"pause_ms": 50}]}}),
                half.clone(),
                json!({"finish": "stop"}),
            ],
            (DONE, "", "Half of ", 1),
        ),
        (
            "an end that is never closed",
            vec![half.clone(), json!({"finish": "stop"}), json!("hang")],
            (DONE, "", "Half of ", 1),
        ),
        (
            "an end that is cut",
            vec![half, json!({"finish": "stop"}), json!("cut")],
            (DONE, "", "Half of ", 1),
        ),
    ];
    for (name, list, expected) in cases {
        check(name, responses(&[steps(&list)]), impatient, expected).await;
    }
    let again = responses(&[
        steps(&[json!("cut")]),
        steps(&[json!({"raw": "data: nonsense\n\n"})]),
        json!({"say": "fine"}),
    ]);
    check(
        "what nobody has seen is tried again",
        again,
        as_it_is,
        (DONE, "", "fine", 3),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_seen_is_not_tried_again() {
    for (name, step) in [
        ("text", json!({"text": "Half"})),
        ("reasoning", json!({"reasoning": "hm"})),
        ("call", json!({"tool": {"name": "list"}})),
    ] {
        let script = responses(&[steps(&[step, json!("cut")]), json!({"say": "fine"})]);
        let kit = ModelKit::new(script).await;
        assert_eq!(
            kit.ask_once("Do it").await.end(),
            (FAILED, "model_stream_cut"),
            "{name}"
        );
        assert_eq!(kit.server.requests().len(), 1, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_was_cut_is_not_made() {
    let call = json!({"tool": {"index": 0, "id": "a", "name": "write", "arguments": "{\"path\": \"x\", \"text\": \"y\"}"}});
    for end in [json!("cut"), json!({"finish": "length"})] {
        let kit = ModelKit::with(responses(&[steps(&[call.clone(), end])]), no_retries).await;
        let ended = kit.ask_once("Do it").await;
        assert_eq!(ended.turn.record.state, FAILED);
        assert_eq!(ended.tools(), [ToolState::Failed]);
        assert_eq!(ended.turn.record.plan, None, "nothing was done");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn models_that_are_confused() {
    let list = |arguments: Value| json!({"calls": [{"tool": "list", "arguments": arguments}]});
    let broken = list(json!("{\"path\": "));
    let fine = json!({"say": "fine"});
    let cases = [
        (
            "broken arguments",
            vec![broken.clone(), fine.clone()],
            (DONE, "", "fine", 2),
        ),
        (
            "no arguments",
            vec![list(json!("")), fine.clone()],
            (DONE, "", "fine", 2),
        ),
        (
            "arguments that do not fit",
            vec![list(json!({"way": 1})), fine.clone()],
            (DONE, "", "fine", 2),
        ),
        (
            "an unknown tool",
            vec![json!({"calls": [{"tool": "fly"}]}), fine.clone()],
            (DONE, "", "fine", 2),
        ),
        (
            "nothing once",
            vec![json!({"think": "hm"}), fine.clone()],
            (DONE, "", "fine", 2),
        ),
        (
            "nothing twice",
            vec![json!({"say": " "}), json!({"say": ""})],
            (FAILED, "model_empty", " ", 2),
        ),
        (
            "nothing twice after work",
            vec![list(json!({})), json!({"say": ""}), json!({"say": ""})],
            (DONE, "", "", 3),
        ),
    ];
    for (name, list, expected) in cases {
        check(name, responses(&list), as_it_is, expected).await;
    }
    let always = json!({"rules": [{"respond": broken}]});
    check(
        "always broken",
        always,
        as_it_is,
        (FAILED, "model_tool_calls", "", 6),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_told_what_was_wrong_with_its_call() {
    let script = responses(&[
        json!({"calls": [
            {"tool": "list", "arguments": "{\"path\": ", "id": "a"},
            {"tool": "list", "arguments": {}, "id": "b"},
            {"tool": "fly", "arguments": {}, "id": "c"},
        ]}),
        json!({"say": "fine"}),
    ]);
    let kit = ModelKit::new(script).await;
    let ended = kit.ask_once("Do it").await;
    assert_eq!(ended.end(), (DONE, ""));
    let requests = kit.server.requests();
    let messages = requests[1]["body"]["messages"].as_array().unwrap();
    let [.., called, first, second, third] = messages.as_slice() else {
        panic!("{messages:?}");
    };
    let sent: Vec<&Value> = called["tool_calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| &call["function"]["arguments"])
        .collect();
    assert_eq!(
        sent,
        ["{}", "{}", "{}"],
        "a server must be able to read what it is sent"
    );
    let told = |message: &Value| {
        (
            message["tool_call_id"].as_str().unwrap().to_owned(),
            message["content"].as_str().unwrap().to_owned(),
        )
    };
    let (id, text) = told(first);
    assert_eq!(id, "a");
    assert!(text.starts_with("the arguments are not JSON"), "{text}");
    let (id, text) = told(second);
    assert_eq!(id, "b");
    assert!(text.contains("README.md"), "{text}");
    let (id, text) = told(third);
    assert_eq!(id, "c");
    assert!(text.contains("fly"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_wants_to_be_left_alone_is_left_alone_by_all() {
    let script = responses(&[json!({"status": 429, "headers": {"retry-after": "3600"}})]);
    let kit = ModelKit::new(script).await;
    assert_eq!(kit.ask_once("Do it").await.end(), (FAILED, "model_rate_limited"));
    assert!(kit.breaker.is_open("model/model"));
    let other = kit.ask_once("Do it").await;
    assert_eq!(other.end(), (FAILED, "model_unavailable"));
    assert!(other.why().contains("GMT (in 3"), "{}", other.why());
    assert_eq!(kit.server.requests().len(), 1);
    kit.breaker.reset("model/model");
    assert_eq!(kit.ask_once("Do it").await.end(), (DONE, ""));
    kit.breaker.force_open("model/model");
    let held = kit.ask_once("Do it").await;
    assert_eq!(held.end(), (FAILED, "model_unavailable"));
    assert!(held.why().contains("held open by hand"), "{}", held.why());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_turn_does_not_wait_for_an_open_circuit() {
    let breaker = BreakerSettings {
        failure_threshold: 1,
        // Longer than these tests are patient, and shorter than a turn is.
        cooldown: 2 * PATIENCE,
        ..BreakerSettings::default()
    };
    let waits_long = |settings: &mut ModelSettings| {
        settings.max_retries = 0;
        settings.wait_limit = 10 * PATIENCE;
    };
    let kit = ModelKit::with_breaker(responses(&[json!({"status": 500})]), breaker, waits_long).await;
    assert_eq!(kit.ask_once("Do it").await.end(), (FAILED, "model_server_error"));
    assert_eq!(kit.ask_once("Do it").await.end(), (FAILED, "model_unavailable"));
    assert_eq!(kit.server.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_has_come_somewhere_waits_for_an_open_circuit() {
    let script = responses(&[
        json!({"calls": [{"tool": "list", "arguments": {}}]}),
        json!({"status": 500}),
        json!({"say": "fine"}),
    ]);
    let breaker = BreakerSettings {
        failure_threshold: 1,
        cooldown: SHORT,
        ..BreakerSettings::default()
    };
    let kit = ModelKit::with_breaker(script, breaker, as_it_is).await;
    let ended = kit.ask_once("Do it").await;
    assert_eq!(ended.end(), (DONE, ""), "{}", ended.why());
    assert!(
        ended.troubles().contains(&"model_retry"),
        "{:?}",
        ended.troubles()
    );
    assert_eq!(kit.server.requests().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_nobody_vouches_for_is_told_nothing() {
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
    use tokio_rustls::rustls;

    let certificate = CertificateDer::from_slice(include_bytes!("../fixtures/tls/certificate.der"));
    let key = PrivatePkcs8KeyDer::from(include_bytes!("../fixtures/tls/key.der").as_slice());
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], PrivateKeyDer::Pkcs8(key))
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let handshake = tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        acceptor
            .accept(socket)
            .await
            .map(|_| ())
            .map_err(|error| error.to_string())
    });
    let kit = ModelKit::with(json!({}), |settings| {
        settings.base_url = format!("https://localhost:{port}/v1");
    })
    .await;
    let ended = kit.ask_once("Do it").await;
    assert_eq!(ended.end(), (FAILED, "model_tls"));
    assert!(ended.why().contains("UnknownIssuer"), "{}", ended.why());
    let refused = handshake.await.unwrap().unwrap_err();
    assert!(refused.contains("UnknownCA"), "{refused}");
}
