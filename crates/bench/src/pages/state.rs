//! A daemon that has been used for a long time.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context as _, Result, anyhow};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::HttpClient;
use crate::own_daemon::Daemon;

const SESSIONS: usize = 1000;
const PLANS: usize = 1000;
const JOBS: usize = 10_000;

/// The number of concurrent callers, so that many commits share one write.
const CALLERS: usize = 8;
/// How many plans to open before collecting the sandboxes of finished ones: there is room for 500.
const PLANS_AT_A_TIME: usize = 200;

pub(super) struct State {
    daemon: Daemon,
    socket: PathBuf,
    token: String,
    pub(super) address: String,
    workspace: TempDir,
}

impl State {
    pub(super) fn make(tidelock: &Path) -> Result<Self> {
        let daemon = Daemon::start(tidelock, |_| Ok(()))?;
        let (status, token) = (daemon.status()?, daemon.token()?);
        let text = |name: &str| status[name].as_str().map(str::to_owned);
        let workspace = tempfile::tempdir()?;
        std::fs::write(workspace.path().join("a.txt"), "one\ntwo\nthree\n")?;
        let state = Self {
            socket: text("socket").context("the status has no `socket`")?.into(),
            address: text("address").context("the status has no `address`")?,
            token,
            daemon,
            workspace,
        };
        state.at_once(0..SESSIONS, |client, number| state.session(client, number))?;
        state.at_once(0..JOBS, |client, number| state.job(client, number))?;
        for begin in (0..PLANS).step_by(PLANS_AT_A_TIME) {
            state.at_once(begin..begin + PLANS_AT_A_TIME, |client, number| {
                state.plan(client, number)
            })?;
            let all = json!({ "older_than_ms": 0 });
            state.client()?.post_json("/v1/plans/gc", &all)?;
        }
        Ok(state)
    }

    fn client(&self) -> Result<HttpClient> {
        HttpClient::unix(&self.socket, &self.token)
    }

    fn at_once(
        &self,
        numbers: std::ops::Range<usize>,
        work: impl Fn(&mut HttpClient, usize) -> Result<()> + Sync,
    ) -> Result<()> {
        thread::scope(|scope| {
            let callers: Vec<_> = (0..CALLERS)
                .map(|caller| {
                    let (work, numbers) = (&work, numbers.clone());
                    scope.spawn(move || -> Result<()> {
                        let mut client = self.client()?;
                        for number in numbers.skip(caller).step_by(CALLERS) {
                            work(&mut client, number)?;
                        }
                        Ok(())
                    })
                })
                .collect();
            for caller in callers {
                caller.join().map_err(|_| anyhow!("a caller panicked"))??;
            }
            Ok(())
        })
    }

    /// Every 50th has had a turn.
    fn session(&self, client: &mut HttpClient, number: usize) -> Result<()> {
        let body = json!({ "directory": self.workspace.path(), "title": format!("Session number {number}") });
        let made = client.post_json("/v1/sessions", &body)?;
        if number.is_multiple_of(50) {
            let agent = json!({ "name": "rehearsal", "script": "steps: [{say: done}]" });
            let prompt = json!({ "prompt": "go", "agent": agent });
            let path = format!("/v1/sessions/{}/turns", id(&made, "session")?);
            client.post_json(&path, &prompt)?;
        }
        Ok(())
    }

    /// One in ten waits until tomorrow, the others were cancelled.
    fn job(&self, client: &mut HttpClient, number: usize) -> Result<()> {
        let body = json!({
            "command": { "argv": ["true"], "directory": self.workspace.path() },
            "title": format!("job number {number}"),
            "delay_ms": 86_400_000_u64,
        });
        let made = client.post_json("/v1/jobs", &body)?;
        if !number.is_multiple_of(10) {
            client.post_json(&format!("/v1/jobs/{}/cancel", id(&made, "job")?), &json!({}))?;
        }
        Ok(())
    }

    /// Of 25 plans one is sealed with changes, one is open, and the others are discarded.
    fn plan(&self, client: &mut HttpClient, number: usize) -> Result<()> {
        let body = json!({ "directory": self.workspace.path(), "title": format!("Plan number {number}") });
        let made = client.post_json("/v1/plans", &body)?;
        let path = format!("/v1/plans/{}", id(&made, "plan")?);
        match number % 25 {
            0 => {
                let write =
                    json!({ "do": "write", "path": format!("new/{number}.txt"), "text": "one\ntwo\n" });
                client.post_json(&format!("{path}/changes"), &json!({ "operations": [write] }))?;
                client.post_json(&format!("{path}/seal"), &json!({}))?;
            }
            1 => {}
            _ => {
                client.post_json(&format!("{path}/discard"), &json!({}))?;
            }
        }
        Ok(())
    }

    pub(super) fn link(&self) -> Result<String> {
        let output = self.daemon.command(&["up", "--json"]).output()?;
        let up: Value = serde_json::from_slice(&output.stdout)?;
        let link = up["page"]["url"].as_str().context("`up` prints no link")?;
        Ok(link.to_owned())
    }

    /// Opens a link like a browser, and returns the host of the page and its cookie.
    pub(super) fn sign_in(&self) -> Result<(String, String)> {
        let link = self.link()?;
        let (host, path) = link
            .strip_prefix("http://")
            .and_then(|link| link.split_once('/'))
            .context("the link is not one to a page")?;
        let mut stream = TcpStream::connect(&self.address)?;
        write!(
            stream,
            "GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let cookie = answer.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("set-cookie").then_some(value)
        });
        let cookie = cookie.and_then(|cookie| cookie.split(';').next());
        let cookie = cookie.context("the link gives no cookie")?;
        Ok((host.to_owned(), cookie.to_owned()))
    }

    pub(super) fn pages(&self) -> Result<Vec<(String, String)>> {
        let mut client = self.client()?;
        let mut newest = |path: &str, list: &str| -> Result<Value> {
            let found = client.get_json(path)?;
            found[list]
                .get(0)
                .cloned()
                .with_context(|| format!("{path} is empty"))
        };
        let plan = newest("/v1/plans?state=sealed", "plans")?;
        let session = newest("/v1/sessions", "sessions")?;
        let job = newest("/v1/jobs", "jobs")?;
        let text = |entity: &Value, name: &str| entity[name].as_str().unwrap_or_default().to_owned();
        let mut pages: Vec<(String, String)> = [
            ("overview", "/"),
            ("sessions", "/sessions"),
            ("plans", "/plans"),
            ("plans that are over", "/plans?show=over"),
            ("jobs", "/jobs"),
            ("jobs in one state", "/jobs?state=cancelled"),
            ("context", "/context"),
            ("servers", "/servers"),
            ("processes", "/processes"),
            ("breakers", "/breakers"),
            ("events", "/events"),
            ("workspaces", "/workspaces"),
        ]
        .map(|(name, path)| (name.to_owned(), path.to_owned()))
        .into();
        pages.extend([
            ("one plan".to_owned(), format!("/plans/{}", text(&plan, "id"))),
            (
                "one session".to_owned(),
                format!("/sessions/{}", text(&session, "id")),
            ),
            ("one job".to_owned(), format!("/jobs/{}", text(&job, "id"))),
            (
                "plans of a workspace, with a time line".to_owned(),
                format!("/plans?workspace={}", text(&plan, "workspace")),
            ),
        ]);
        Ok(pages)
    }
}

/// The id of the new item, which may be at the top level or under its name.
fn id(made: &Value, name: &str) -> Result<String> {
    let entity = made.get(name).unwrap_or(made);
    let id = entity["id"].as_str().map(str::to_owned);
    id.with_context(|| format!("a {name} without an id"))
}
