//! Jobs over HTTP: what is refused and how, keys, and the output in each of its forms.

use daemon::KeeperProgram;
use kernel::SystemClock;
use protocol::{ErrorCode, Job, JobHistory, JobList, JobState, JobSubmitted};
use serde_json::{Value, json};

use crate::client::Answer;
use crate::running::{Raw, Running, within};

const UNKNOWN: &str = "job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX";
/// Text that is markup, that ends lines in every way, and that a terminal would obey.
const HOSTILE: &str = "<script>alert(1)</script>\r\n\r\ndata: x\u{2028}\u{1b}[31m\u{0}&amp;\"'";

async fn start() -> Running {
    let keeper = env!("CARGO_BIN_EXE_daemon-test-keeper");
    Running::start_with(SystemClock::shared(), |options| {
        options.keeper = KeeperProgram::At(keeper.into());
    })
    .await
}

fn shell(line: &str) -> Value {
    let environment = json!({ "PATH": "/usr/local/bin:/usr/bin:/bin" });
    json!({ "command": { "shell": line, "directory": "/", "environment": environment } })
}

async fn post(running: &Running, path: &str, body: &Value) -> Answer {
    running.unix().post(path).json(&body.to_string()).send().await
}

async fn submit(running: &Running, body: &Value) -> Job {
    let answer = post(running, "/v1/jobs", body).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json::<JobSubmitted>().job
}

async fn get(running: &Running, path: &str) -> Answer {
    within(running.unix().get(path).send()).await
}

/// The job when it has ended.
async fn ended(running: &Running, id: &str) -> Job {
    let job: Job = get(running, &format!("/v1/jobs/{id}?wait_ms=15000")).await.json();
    assert!(job.ended_at.is_some(), "{job:?}");
    job
}

/// The job that a problem is about.
fn current(problem: &protocol::Problem) -> &Job {
    match &problem.current {
        Some(protocol::Current::Job(job)) => job,
        other => panic!("{other:?}"),
    }
}

/// The kind, the place and the data of the next event.
async fn event(raw: &mut Raw) -> (String, Option<u64>, Value) {
    loop {
        let block = raw.up_to("\n\n").await;
        // Each piece of the body has its length before it, in a line of its own.
        let fields = block.lines().filter_map(|line| line.split_once(": "));
        let (mut kind, mut id, mut data) = (None, None, Vec::new());
        for (name, value) in fields {
            match name {
                "event" => kind = Some(value.to_owned()),
                "id" => id = Some(value.split('-').next().unwrap().parse().unwrap()),
                "data" => data.push(value.to_owned()),
                _ => {}
            }
        }
        if let Some(kind) = kind {
            assert_eq!(data.len(), 1, "an event is one line of data: {block}");
            return (kind, id, serde_json::from_str(&data[0]).unwrap());
        }
    }
}

fn follow(running: &Running, id: &str, more: &str) -> Raw {
    let head = running.head(&format!("GET /v1/jobs/{id}/logs HTTP/1.1"));
    running.raw(&format!("{head}Accept: text/event-stream\r\n{more}\r\n"))
}

fn lines(answer: &Answer) -> Vec<Value> {
    answer
        .body
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn what_cannot_be_run_is_refused_with_the_field_and_nothing_is_left_of_it() {
    let running = start().await;
    let with = |name: &str, value: Value| {
        let mut body = shell("true");
        body[name] = value;
        body
    };
    let command = |name: &str, value: Value| {
        let mut body = shell("true");
        body["command"][name] = value;
        body
    };
    let cases = [
        (with("priority", json!(11)), ErrorCode::InvalidRequest, "priority"),
        (
            with("lane", json!({ "name": "a", "limit": 0 })),
            ErrorCode::InvalidRequest,
            "lane.limit",
        ),
        (
            with("time_limit_ms", json!(0)),
            ErrorCode::InvalidRequest,
            "time_limit_ms",
        ),
        (with("title", json!(" ")), ErrorCode::InvalidRequest, "title"),
        (with("after", json!(["x"])), ErrorCode::InvalidRequest, "after.0"),
        (
            with("after", json!([UNKNOWN])),
            ErrorCode::JobDependencyNotFound,
            "after",
        ),
        (
            with("max_retries", json!(1001)),
            ErrorCode::InvalidRequest,
            "max_retries",
        ),
        (
            with("output_limit_bytes", json!(1_u64 << 31)),
            ErrorCode::InvalidRequest,
            "output_limit_bytes",
        ),
        (with("nonsense", json!(1)), ErrorCode::InvalidRequest, "nonsense"),
        (
            command("argv", json!(["true"])),
            ErrorCode::InvalidRequest,
            "command",
        ),
        (
            command("shell", json!(null)),
            ErrorCode::InvalidRequest,
            "command",
        ),
        (
            command("directory", json!("a")),
            ErrorCode::InvalidRequest,
            "command.directory",
        ),
        (
            command("directory", json!("/nowhere")),
            ErrorCode::InvalidRequest,
            "command.directory",
        ),
        (
            command("stdin_base64", json!("?")),
            ErrorCode::InvalidRequest,
            "command.stdin_base64",
        ),
        (
            command("environment", json!({ "A=B": "" })),
            ErrorCode::InvalidRequest,
            "command.environment",
        ),
    ];
    for (body, code, field) in cases {
        let problem = post(&running, "/v1/jobs", &body).await.problem();
        let found = (problem.status, problem.code, problem.field.as_deref());
        assert_eq!(found, (422, code, Some(field)), "{body}: {problem:?}");
    }
    let list: JobList = get(&running, "/v1/jobs").await.json();
    assert_eq!(list.jobs, []);
}

#[tokio::test]
async fn what_is_not_there_is_not_found_under_any_path() {
    let running = start().await;
    for id in [UNKNOWN, "last", "%3Cb%3E", "%FF"] {
        for path in ["", "/history", "/logs", "/logs?follow=true", "/output"] {
            let problem = get(&running, &format!("/v1/jobs/{id}{path}")).await.problem();
            assert_eq!(
                (problem.status, problem.code),
                (404, ErrorCode::JobNotFound),
                "{id}{path}"
            );
        }
        for path in ["/cancel", "/retry"] {
            let answer = running.unix().post(&format!("/v1/jobs/{id}{path}")).send().await;
            let problem = answer.problem();
            assert_eq!(
                (problem.status, problem.code),
                (404, ErrorCode::JobNotFound),
                "{id}{path}"
            );
        }
    }
    for query in [
        "?wait_ms=60001",
        "/logs?after=x",
        "/logs?channel=stdin",
        "/output?after=1",
    ] {
        let problem = get(&running, &format!("/v1/jobs/{UNKNOWN}{query}"))
            .await
            .problem();
        assert_eq!(
            (problem.status, problem.code),
            (400, ErrorCode::InvalidQuery),
            "{query}"
        );
    }
}

#[tokio::test]
async fn what_has_ended_is_final_and_what_has_not_is_not_done_again() {
    let running = start().await;
    let job = submit(&running, &shell("sleep 600")).await;
    let problem = running
        .unix()
        .post(&format!("/v1/jobs/{}/retry", job.id))
        .send()
        .await
        .problem();
    assert_eq!((problem.status, problem.code), (409, ErrorCode::JobNotEnded));
    assert_eq!(current(&problem).id, job.id);
    let path = format!("/v1/jobs/{}/cancel", job.id);
    let long = json!({ "why": "x".repeat(1001) });
    assert_eq!(
        post(&running, &path, &long).await.problem().code,
        ErrorCode::InvalidRequest
    );
    // To ask twice is to ask once.
    for why in [HOSTILE, "again"] {
        let answer = post(&running, &path, &json!({ "why": why })).await;
        match answer.status {
            200 => assert_eq!(answer.json::<Job>().cancel.unwrap().why, HOSTILE),
            _ => assert_eq!(answer.problem().code, ErrorCode::JobEnded),
        }
    }
    let job = ended(&running, &job.id).await;
    assert_eq!(
        (job.state, job.cancel.unwrap().why.as_str()),
        (JobState::Cancelled, HOSTILE)
    );
    let problem = post(&running, &path, &json!({})).await.problem();
    assert_eq!((problem.status, problem.code), (409, ErrorCode::JobEnded));
    assert_eq!(current(&problem).state, JobState::Cancelled);
    let history: JobHistory = get(&running, &format!("/v1/jobs/{}/history", job.id))
        .await
        .json();
    let events: Vec<&str> = history
        .moments
        .iter()
        .map(|moment| moment.event.as_str())
        .collect();
    assert_eq!(
        events
            .iter()
            .filter(|event| **event == "cancel_requested")
            .count(),
        1,
        "{events:?}"
    );
    assert_eq!(events.last(), Some(&"cancelled"), "{events:?}");
}

#[tokio::test]
async fn a_key_is_one_job_in_the_header_or_in_the_body() {
    let running = start().await;
    let send = async |key: &str, body: &Value| {
        let client = running.unix();
        let call = client.post("/v1/jobs").header("idempotency-key", key);
        call.json(&body.to_string()).send().await
    };
    let first = send("a", &shell("true")).await;
    assert_eq!(first.status, 201);
    let first: JobSubmitted = first.json();
    let mut in_body = shell("true");
    in_body["idempotency_key"] = json!("a");
    for (answer, what) in [
        (send("a", &shell("true")).await, "the header"),
        (post(&running, "/v1/jobs", &in_body).await, "the body"),
        (send("a", &in_body).await, "both"),
    ] {
        assert_eq!(answer.status, 200, "{what}: {answer:?}");
        let again: JobSubmitted = answer.json();
        assert_eq!(
            (again.known, again.job.id),
            (true, first.job.id.clone()),
            "{what}"
        );
    }
    let problem = send("b", &in_body).await.problem();
    assert_eq!((problem.status, problem.code), (422, ErrorCode::InvalidRequest));
    let problem = send("a", &shell("false")).await.problem();
    assert_eq!(
        (problem.status, problem.code),
        (409, ErrorCode::IdempotencyKeyReused)
    );
    assert_eq!(current(&problem).id, first.job.id);
    let list: JobList = get(&running, "/v1/jobs").await.json();
    assert_eq!(list.jobs.len(), 1);
}

#[tokio::test]
async fn output_comes_in_lines_as_bytes_and_as_it_was_meant() {
    let running = start().await;
    let mut body = shell(r#"printf '\377\000end'; cat >&2; printf '%s' "$HOSTILE""#);
    body["title"] = json!(HOSTILE);
    body["command"]["stdin_base64"] = json!("/gA=");
    let said = HOSTILE.replace('\0', "");
    body["command"]["environment"]["HOSTILE"] = json!(said);
    let id = submit(&running, &body).await.id;
    let job = ended(&running, &id).await;
    assert_eq!(
        (job.state, job.title.as_str()),
        (JobState::Succeeded, HOSTILE),
        "{job:?}"
    );

    let output = async |query: &str| {
        let answer = get(&running, &format!("/v1/jobs/{id}/output{query}")).await;
        assert_eq!(
            answer.header("content-type"),
            Some("application/octet-stream"),
            "{query}"
        );
        assert_eq!(
            answer.header("x-content-type-options"),
            Some("nosniff"),
            "{query}"
        );
        answer.bytes.to_vec()
    };
    let stdout = [b"\xff\x00end", said.as_bytes()].concat();
    assert_eq!(output("?channel=stdout").await, stdout);
    assert_eq!(output("?channel=stderr").await, b"\xfe\x00");
    assert_eq!(output("").await.len(), stdout.len() + 2);

    let answer = get(&running, &format!("/v1/jobs/{id}/logs?channel=stderr")).await;
    assert_eq!(answer.header("content-type"), Some("application/x-ndjson"));
    let found = lines(&answer);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (&found[0]["channel"], &found[0]["base64"]),
        (&json!("stderr"), &json!("/gA="))
    );
    // Line ends in what was said do not end lines or events.
    let all = lines(&get(&running, &format!("/v1/jobs/{id}/logs")).await);
    let mut raw = follow(&running, &id, "");
    let mut told = Vec::new();
    loop {
        let (kind, place, data) = event(&mut raw).await;
        if kind == "end" {
            assert_eq!((place, &data["title"]), (None, &json!(HOSTILE)));
            break;
        }
        assert_eq!((kind.as_str(), place), ("output", data["sequence"].as_u64()));
        told.push(data);
    }
    assert_eq!(told, all);
    assert!(
        raw.rest().await.ends_with("0\r\n\r\n"),
        "the stream ends with the job"
    );
}

#[tokio::test]
async fn a_reader_that_comes_back_misses_nothing_and_hears_nothing_twice() {
    let running = start().await;
    let line = "i=0; while test $i -lt 400; do i=$((i+1)); echo line $i; \
                test $((i % 50)) -ne 0 || echo \"::progress $i/400\"; sleep 0.002; done";
    let id = submit(&running, &shell(line)).await.id;
    let (mut told, mut last, mut readers) = (Vec::new(), 0, 0);
    'readers: loop {
        readers += 1;
        let mut raw = follow(&running, &id, &format!("Last-Event-ID: {last}\r\n"));
        // Each reads a little, and goes away in the middle of what flows.
        for _ in 0..7 {
            let (kind, place, data) = event(&mut raw).await;
            match kind.as_str() {
                "end" => break 'readers,
                "output" => told.push(data),
                _ => assert_eq!(kind, "progress"),
            }
            let place = place.unwrap();
            assert!(place > last, "{place} after {last}");
            last = place;
        }
    }
    assert!(readers > 2, "nobody came back");
    assert_eq!(told, lines(&get(&running, &format!("/v1/jobs/{id}/logs")).await));
    let text: String = told.iter().map(|piece| piece["text"].as_str().unwrap()).collect();
    let expected: String = (1..=400).map(|number| format!("line {number}\n")).collect();
    assert_eq!(text, expected);
    assert_eq!(ended(&running, &id).await.output_sequence, last);
}

#[tokio::test]
async fn a_reader_is_told_what_was_dropped_after_its_time() {
    let running = start().await;
    let line = "i=0; while test $i -lt 6; do i=$((i+1)); echo line $i; sleep 0.25; done";
    let id = submit(&running, &shell(line)).await.id;
    let job = ended(&running, &id).await;
    let all = lines(&get(&running, &format!("/v1/jobs/{id}/logs")).await);
    assert!(all.len() >= 3, "{all:?}");
    let running = running
        .restart_after(async |log| {
            let policy = eventlog::RetentionPolicy {
                max_age: None,
                max_bytes_per_stream: Some(20),
            };
            let trimmed = log.trim("job-output", policy).await.unwrap();
            assert_eq!(trimmed.len(), 1, "{trimmed:?}");
        })
        .await;
    let kept = lines(&get(&running, &format!("/v1/jobs/{id}/logs")).await);
    let after = kept[0]["resync"]["after"].as_u64().unwrap();
    assert_eq!(kept[1..], all[usize::try_from(after).unwrap()..], "{kept:?}");
    let mut raw = follow(&running, &id, "Last-Event-ID: 0\r\n");
    assert_eq!(
        event(&mut raw).await,
        ("resync".to_owned(), Some(after), json!({ "after": after }))
    );
    for expected in &kept[1..] {
        let (kind, _, data) = event(&mut raw).await;
        assert_eq!((kind.as_str(), &data), ("output", expected));
    }
    assert_eq!(event(&mut raw).await.0, "end");
    assert_eq!(ended(&running, &id).await.output_bytes, job.output_bytes);
}

#[tokio::test]
async fn the_list_is_told_again_with_each_change() {
    let running = start().await;
    let head = running.head("GET /v1/jobs/events HTTP/1.1");
    let mut raw = running.raw(&format!("{head}\r\n"));
    let (kind, _, data) = event(&mut raw).await;
    assert_eq!((kind.as_str(), &data["jobs"]), ("jobs", &json!([])));
    let id = submit(&running, &shell("exit 3")).await.id;
    let mut states: Vec<String> = Vec::new();
    while states.last().is_none_or(|state| state != "failed") {
        let (_, _, data) = event(&mut raw).await;
        assert_eq!(data["jobs"][0]["id"], id.as_str());
        states.push(data["jobs"][0]["state"].as_str().unwrap().to_owned());
    }
    states.dedup();
    let possible = ["queued", "running", "failed"];
    let mut rest = possible.iter();
    assert!(
        states.iter().all(|state| rest.any(|next| next == state)),
        "{states:?}"
    );
}

#[tokio::test]
async fn jobs_come_in_pages_newest_first() {
    let running = start().await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(submit(&running, &shell("true")).await.id);
    }
    ids.reverse();
    let mut found = Vec::new();
    let mut path = "/v1/jobs?limit=2".to_owned();
    loop {
        let list: JobList = get(&running, &path).await.json();
        assert!(list.jobs.len() <= 2);
        found.extend(list.jobs.into_iter().map(|job| job.id));
        match list.next_before {
            Some(before) => path = format!("/v1/jobs?limit=2&before={before}"),
            None => break,
        }
    }
    assert_eq!(found, ids);
    for query in ["?limit=0", "?state=lazy", "?before=x", "?more=1"] {
        let problem = get(&running, &format!("/v1/jobs{query}")).await.problem();
        assert_eq!(
            (problem.status, problem.code),
            (400, ErrorCode::InvalidQuery),
            "{query}"
        );
    }
}
