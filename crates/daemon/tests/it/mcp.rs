//! The Model Context Protocol over HTTP: who may speak it, sessions, and single requests.

use http::Method;
use serde_json::{Value, json};

use crate::client::{Answer, Call, Client};
use crate::running::{Running, within};

const ACCEPT: &str = "application/json, text/event-stream";

/// A message of a client.
fn message<'a>(client: &'a Client, body: &Value) -> Call<'a> {
    client
        .post("/mcp")
        .header("accept", ACCEPT)
        .json(&body.to_string())
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn initialize(name: &str) -> Value {
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": name, "version": "3" },
    });
    request(1, "initialize", params)
}

/// A request of the protocol without a handshake.
fn stateless(id: u64, method: &str, name: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": name, "version": "3" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    request(id, method, params)
}

/// Sends one of them, with the headers that belong to it.
async fn single(client: &Client, body: &Value, headers: &[(&'static str, &str)]) -> Answer {
    let mut call = message(client, body)
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", body["method"].as_str().unwrap());
    if let Some(name) = body["params"]["name"].as_str() {
        call = call.header("mcp-name", name);
    }
    for (name, value) in headers {
        call = call.header(name, value);
    }
    call.send().await
}

/// The last message of an answer, which is JSON or a stream of events.
fn last_message(answer: &Answer) -> Value {
    if answer.header("content-type") == Some("application/json") {
        return answer.json();
    }
    let data = answer.body.lines().filter_map(|line| line.strip_prefix("data: "));
    let last = data.rev().find(|data| !data.trim().is_empty());
    let last = last.unwrap_or_else(|| panic!("no event in {answer:?}"));
    serde_json::from_str(last).unwrap()
}

async fn clients(client: &Client) -> Vec<protocol::Client> {
    let list: protocol::ClientList = client.get("/v1/clients").send().await.json();
    list.clients
}

#[tokio::test]
async fn only_who_may_ask_is_answered() {
    let running = Running::start().await;
    let (tcp, unix) = (running.tcp(), running.unix());
    let body = initialize("stranger");
    for (call, status, code) in [
        (message(&tcp, &body).without("authorization"), 401, "unauthorized"),
        (
            message(&tcp, &body).header("authorization", "Bearer wrong"),
            401,
            "unauthorized",
        ),
        (
            message(&tcp, &body).header("host", "evil.example"),
            421,
            "host_not_allowed",
        ),
        (
            message(&tcp, &body).header("origin", "http://evil.example"),
            403,
            "origin_not_allowed",
        ),
        (
            tcp.call(Method::GET, "/mcp").without("authorization"),
            401,
            "unauthorized",
        ),
        (
            tcp.call(Method::DELETE, "/mcp").without("authorization"),
            401,
            "unauthorized",
        ),
        (
            unix.get("/v1/mcp/connect").without("authorization"),
            401,
            "unauthorized",
        ),
        (unix.get("/v1/mcp/connect"), 422, "invalid_request"),
        (
            unix.get("/v1/clients").without("authorization"),
            401,
            "unauthorized",
        ),
    ] {
        let answer = call.send().await;
        assert_eq!(
            (answer.status, answer.problem().code.as_str()),
            (status, code),
            "{answer:?}"
        );
    }
    assert_eq!(clients(&unix).await, []);
    let large = format!("{{\"x\":\"{}\"}}", "x".repeat(2 << 20));
    let answer = tcp
        .post("/mcp")
        .header("accept", ACCEPT)
        .json(&large)
        .send()
        .await;
    assert_eq!(
        (answer.status, answer.problem().code.as_str()),
        (413, "body_too_large")
    );
}

#[tokio::test]
async fn a_session_lives_from_initialize_to_delete() {
    let running = Running::start().await;
    let tcp = running.tcp();
    let answer = message(&tcp, &initialize("web"))
        .header("tidelock-directory", "/srv/a%20b")
        .send()
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(last_message(&answer)["result"]["serverInfo"]["name"], "tidelock");
    let session = answer.header("mcp-session-id").unwrap().to_owned();
    let in_session = |body: &Value| message(&tcp, body).header("mcp-session-id", &session);
    let said = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(in_session(&said).send().await.status, 202);
    let listed = in_session(&request(2, "tools/list", json!({}))).send().await;
    let listed = last_message(&listed);
    assert_eq!(
        listed["result"]["tools"].as_array().unwrap().len(),
        31,
        "{listed}"
    );
    let call = json!({ "name": "plan_read", "arguments": { "path": "a" } });
    let told = last_message(&in_session(&request(3, "tools/call", call)).send().await);
    assert_eq!(told["result"]["isError"], true, "{told}");

    let connected = clients(&tcp).await;
    assert_eq!(connected.len(), 1);
    let client = &connected[0];
    assert!(
        client.actor.starts_with("web#") && client.calls == 1,
        "{client:?}"
    );
    assert_eq!(client.transport, protocol::ClientTransport::HttpSession);
    assert_eq!(client.directory.as_deref(), Some("/srv/a b"));

    let deleted = tcp
        .call(Method::DELETE, "/mcp")
        .header("mcp-session-id", &session)
        .send()
        .await;
    assert_eq!(deleted.status, 202, "{deleted:?}");
    within(async { while !clients(&tcp).await.is_empty() {} }).await;
    let late = in_session(&request(4, "tools/list", json!({}))).send().await;
    assert_eq!(late.status, 404, "{late:?}");
    let none = message(&tcp, &request(5, "tools/list", json!({}))).send().await;
    assert!((400..500).contains(&none.status), "{none:?}");
}

#[tokio::test]
async fn single_requests_need_no_session() {
    let running = Running::start().await;
    let tcp = running.tcp();
    let list = stateless(1, "tools/list", "modern", json!({}));
    let answer = single(&tcp, &list, &[]).await;
    assert_eq!(
        answer.header("content-type"),
        Some("application/json"),
        "{answer:?}"
    );
    assert_eq!(
        last_message(&answer)["result"]["tools"].as_array().unwrap().len(),
        31
    );
    let call = json!({ "name": "job_status", "arguments": {} });
    let body = stateless(2, "tools/call", "modern", call);
    let answer = single(&tcp, &body, &[("tidelock-actor", "me and my agent")]).await;
    assert_eq!(last_message(&answer)["result"]["isError"], false, "{answer:?}");
    let mut actors: Vec<(String, u64)> = clients(&tcp)
        .await
        .into_iter()
        .map(|client| (client.actor, client.calls))
        .collect();
    actors.sort();
    assert_eq!(
        actors,
        [("me and my agent".to_owned(), 1), ("modern".to_owned(), 0)]
    );

    let old = stateless(3, "tools/list", "modern", json!({}));
    let answer = message(&tcp, &old)
        .header("mcp-protocol-version", "1999-01-01")
        .send()
        .await;
    assert!((400..500).contains(&answer.status), "{answer:?}");
    let metrics = tcp.get("/metrics").send().await.body;
    let line = "tidelock_mcp_calls_total{tool=\"job_status\",outcome=\"done\"} 1";
    assert!(metrics.contains(line), "{metrics}");
}

#[tokio::test]
async fn a_daemon_with_clients_ends_and_lets_go_of_its_log() {
    let running = Running::start().await;
    let tcp = running.tcp();
    for name in ["a", "b", "c"] {
        let answer = message(&tcp, &initialize(name)).send().await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    let mut stream = running.raw(&format!(
        "{}Connection: upgrade\r\nUpgrade: tidelock-mcp\r\n\r\n",
        running.head("GET /v1/mcp/connect HTTP/1.1")
    ));
    let head = stream.up_to("\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    // The next daemon gets the home, so nothing of this one is left.
    let next = running.restart().await;
    assert_eq!(clients(&next.tcp()).await, []);
}
