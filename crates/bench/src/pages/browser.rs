//! A headless Chromium, controlled through its own protocol: a dozen JSON requests.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::HttpClient;

/// A page that shows nothing for this long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// A signed-in browser. Dropping it ends all of its processes.
pub(super) struct Browser {
    child: Child,
    address: String,
    session: String,
    _profile: TempDir,
}

impl Browser {
    pub(super) fn start(driver: &Path, link: &str) -> Result<Self> {
        let profile = tempfile::tempdir()?;
        let mut child = Command::new(driver)
            .arg("--port=0")
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let stdout = child.stdout.take().context("chromedriver has no output")?;
        let mut browser = Self {
            child,
            address: String::new(),
            session: String::new(),
            _profile: profile,
        };
        let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
        let port = lines.find_map(|line| {
            let (_, port) = line.split_once("started successfully on port ")?;
            Some(port.trim_end_matches('.').to_owned())
        });
        browser.address = format!("127.0.0.1:{}", port.context("chromedriver says no port")?);
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
            "--window-size=1280,900",
            &format!("--user-data-dir={}", browser._profile.path().display()),
        ];
        let options = json!({ "goog:chromeOptions": { "args": arguments } });
        let wanted = json!({ "capabilities": { "alwaysMatch": options } });
        let made = browser.client()?.post_json("/session", &wanted)?;
        let session = made["value"]["sessionId"].as_str();
        browser.session = session.context("chromedriver begins no session")?.to_owned();
        browser.call("url", &json!({ "url": link }))?;
        Ok(browser)
    }

    fn client(&self) -> Result<HttpClient> {
        HttpClient::tcp(&self.address, "")
    }

    fn call(&self, what: &str, body: &Value) -> Result<Value> {
        let path = format!("/session/{}/{what}", self.session);
        let answer = self.client()?.post_json(&path, body)?;
        Ok(answer["value"].clone())
    }

    /// Opens an address, and returns the time from the request until something was visible.
    pub(super) fn first_paint(&self, address: &str) -> Result<Duration> {
        self.call("url", &json!({ "url": address }))?;
        let script = "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null;";
        let began = Instant::now();
        loop {
            let found = self.call("execute/sync", &json!({ "script": script, "args": [] }))?;
            if let Some(milliseconds) = found.as_f64() {
                return Ok(Duration::from_secs_f64(milliseconds / 1000.0));
            }
            ensure!(began.elapsed() < PATIENCE, "nothing was painted");
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            // The driver leads the group and is not reaped yet, so the group is certainly still ours.
            let _ = kill_process_group(group, Signal::KILL);
        }
        drop(self.child.wait());
    }
}
