//! Rubbish on the surfaces that agents and editors speak: `/mcp`, `tidelock mcp` and `tidelock acp`. It is answered with an error
//! or ends the conversation; it never takes the daemon along, and the next who speaks properly is understood.

use std::fs::{self, File};
use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{Running, wait_for};
use crate::plan_stage::Project;
use crate::security_stage::Target;

/// The first message of a client that speaks properly.
fn hello(surface: &str) -> String {
    let parameters = if surface == "acp" {
        json!({ "protocolVersion": 1, "clientCapabilities": {} })
    } else {
        json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        })
    };
    json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": parameters }).to_string()
}

/// Messages that are none, one or more lines each.
fn rubbish() -> Vec<(&'static str, Vec<u8>)> {
    let nested = |open: &str, count: usize| open.repeat(count).into_bytes();
    let call = |id: &str, rest: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},{rest}}}"#).into_bytes();
    let ping = r#""method":"ping""#;
    vec![
        ("nothing", b"".to_vec()),
        ("empty lines", b"\n\n\n\r\n".to_vec()),
        ("no JSON", b"what is this".to_vec()),
        ("not UTF-8", b"\xff\xfe{\"jsonrpc\"".to_vec()),
        ("NUL", b"\0\0\0\0".to_vec()),
        ("half an object", br#"{"jsonrpc":"2.0","id":1,"#.to_vec()),
        ("a number", b"42".to_vec()),
        ("null", b"null".to_vec()),
        ("an empty batch", b"[]".to_vec()),
        ("a batch of rubbish", b"[1,2,{},null]".to_vec()),
        ("deep arrays", nested("[", 200_000)),
        ("deep objects", nested("{\"a\":", 200_000)),
        ("a long line", nested("x", 3 << 20)),
        (
            "a long string",
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "m".repeat(500_000)).into_bytes(),
        ),
        ("an id that is an array", call("[1]", ping)),
        ("an id that is an object", call("{\"a\":1}", ping)),
        ("an id that is a fraction", call("1.5", ping)),
        ("an id that is true", call("true", ping)),
        ("an id that is null", call("null", ping)),
        ("an id that is huge", call("1e400", ping)),
        (
            "an id that is long",
            call(&format!("\"{}\"", "i".repeat(100_000)), ping),
        ),
        ("a negative id", call("-9223372036854775809", ping)),
        ("no method", call("1", r#""params":{}"#)),
        ("a method that is a number", call("1", r#""method":7"#)),
        ("an unknown method", call("1", r#""method":"no/such/method""#)),
        (
            "parameters that are a list",
            call("1", r#""method":"tools/call","params":[1,2]"#),
        ),
        (
            "a tool that is none",
            call(
                "1",
                r#""method":"tools/call","params":{"name":"../../etc/passwd"}"#,
            ),
        ),
        (
            "an answer to nothing",
            br#"{"jsonrpc":"2.0","id":99,"result":{}}"#.to_vec(),
        ),
        (
            "an error to nothing",
            br#"{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":"x"}}"#.to_vec(),
        ),
        (
            "another version",
            br#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#.to_vec(),
        ),
        (
            "the same key twice",
            br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping","method":"ping"}"#.to_vec(),
        ),
        (
            "a flood of pings",
            format!("{}\n", String::from_utf8_lossy(&call("7", ping)))
                .repeat(5_000)
                .into_bytes(),
        ),
        (
            "a flood of notes",
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n"
                .repeat(5_000)
                .into_bytes(),
        ),
    ]
}

/// Speaks rubbish to a new process of a surface and greets it afterwards. Returns what is wrong, if anything is.
fn misbehave(project: &Project, surface: &str, name: &str, bytes: &[u8]) -> Option<String> {
    let paths = ["stdout", "stderr"].map(|kind| project.world.path().join(kind));
    let mut command = project.command(&[surface]);
    command
        .stdin(Stdio::piped())
        .stdout(File::create(&paths[0]).unwrap())
        .stderr(File::create(&paths[1]).unwrap());
    let mut running = Running(command.spawn().unwrap());
    let mut stdin = running.0.stdin.take().unwrap();
    let hello = format!("\n{}\n", hello(surface));
    let bytes = bytes.to_vec();
    // It may have heard enough before all is said.
    let speaking = std::thread::spawn(move || {
        drop(stdin.write_all(&bytes));
        drop(stdin.write_all(hello.as_bytes()));
        stdin
    });
    let said = |index: usize| String::from_utf8_lossy(&fs::read(&paths[index]).unwrap()).into_owned();
    let mut status = None;
    wait_for(&format!("{surface} to answer or to end after {name}"), || {
        status = running.0.try_wait().unwrap();
        status.is_some() || said(0).contains("\"hello\"")
    });
    drop(speaking.join().unwrap());
    let (stdout, stderr) = (said(0), said(1));
    let is_json = |line: &str| serde_json::from_str::<Value>(line).is_ok();
    // The last line may be in the middle of being written.
    let whole = stdout.rsplit_once('\n').map_or("", |(whole, _)| whole);
    if let Some(line) = whole.lines().find(|line| !is_json(line)) {
        return Some(format!("{surface}, {name}: not a message: {line:.200}"));
    }
    if stderr.contains("panicked") {
        return Some(format!("{surface}, {name}: {stderr:.500}"));
    }
    // Whoever ends a conversation says why.
    (status.is_some_and(|status| !status.success()) && stderr.trim().is_empty())
        .then(|| format!("{surface}, {name}: ended with {status:?} without a word"))
}

#[test]
fn rubbish_on_standard_input_is_survived_or_ends_that_conversation_with_a_word() {
    let project = Project::new(&[("a.txt", "a\n")]);
    project.world.run(&["up"]).expect(0);
    let mut wrong = Vec::new();
    for surface in ["mcp", "acp"] {
        for (name, bytes) in rubbish() {
            wrong.extend(misbehave(&project, surface, name, &bytes));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let Project { world, .. } = project;
    let target = Target::of(world);
    target.answers_others();
    assert!(target.memory_mib() < 300, "{} MiB", target.memory_mib());
    wait_for("the clients to be forgotten", || {
        let clients = target.ask("GET", "/v1/clients", "").body;
        serde_json::from_str::<Value>(&clients).unwrap()["clients"] == json!([])
    });
}

#[test]
fn rubbish_over_http_is_refused() {
    let target = Target::new();
    let before = target.sockets();
    let post = |headers: &str, body: &[u8]| {
        let head = target.head("POST /mcp HTTP/1.1");
        let mut request = format!(
            "{head}{headers}Connection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        request.extend(body);
        target.exchange(&request)
    };
    let good = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    let hello = hello("mcp");
    let mut wrong = Vec::new();
    for (name, bytes) in rubbish() {
        for reply in post(good, &bytes) {
            if reply.status >= 500 || reply.status == 0 {
                wrong.push(format!("{name}: {reply:?}"));
            }
        }
    }
    for (name, headers) in [
        (
            "another type",
            "Content-Type: text/html\r\nAccept: application/json, text/event-stream\r\n",
        ),
        ("no type", "Accept: application/json, text/event-stream\r\n"),
        (
            "nothing accepted",
            "Content-Type: application/json\r\nAccept: image/png\r\n",
        ),
        (
            "an unknown session",
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMcp-Session-Id: nobody\r\n",
        ),
        (
            "a foreign page",
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nOrigin: http://evil.example\r\n",
        ),
    ] {
        let statuses: Vec<u16> = post(headers, hello.as_bytes())
            .iter()
            .map(|reply| reply.status)
            .collect();
        if !statuses.iter().all(|status| (400..500).contains(status)) || statuses.is_empty() {
            wrong.push(format!("{name}: {statuses:?}"));
        }
    }
    // Without the token nobody gets in, whatever it says.
    let bare = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\n{good}Connection: close\r\nContent-Length: {}\r\n\r\n{hello}",
        target.address,
        hello.len()
    );
    assert_eq!(target.exchange(bare.as_bytes())[0].status, 401);
    // Many who greet and go away.
    for _ in 0..300 {
        let replies = post(good, hello.as_bytes());
        if replies.iter().any(|reply| reply.status >= 500) {
            wrong.push(format!("a flood: {replies:?}"));
            break;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    target.answers_others();
    wait_for("the sockets to be given back", || target.sockets() <= before + 8);
    assert!(target.memory_mib() < 300, "{} MiB", target.memory_mib());
}
