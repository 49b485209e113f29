//! What must not be in the log, however much is logged.

use std::io;
use std::sync::{Arc, Mutex};

use tracing_subscriber::fmt::MakeWriter;

use crate::page::{Browser, link};
use crate::running::Running;

/// A log that the test can read.
#[derive(Clone, Debug, Default)]
struct Log {
    /// Guards what was written so far.
    text: Arc<Mutex<Vec<u8>>>,
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn no_secret_reaches_the_log() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(log.clone())
        .finish();
    // It hears the daemons of all tests in this process; what they have in common with this one is no secret.
    tracing::subscriber::set_global_default(subscriber).unwrap();

    let running = Running::start().await;
    running.breakers.force_open("known");
    let browser = Browser::sign_in(&running).await;
    let form_token = browser.form_token().await;
    browser
        .submit("/breakers/reset-all", &[("form_token", &form_token)])
        .await;
    let (host, link) = link(&running).await;
    let code = link.strip_prefix("/open?code=").unwrap().to_owned();
    for host in [&running.address.to_string(), &host, &host] {
        running.tcp().get(&link).header("host", host).send().await;
    }
    let (page_host, _) = host.split_once('.').unwrap();
    let mistaken = "the-token-of-somebody-else-entirely";
    let call = running.tcp();
    call.get("/v1/status")
        .header("authorization", &format!("Bearer {mistaken}"))
        .send()
        .await;
    let token = running.token.clone();
    let cookie = browser.cookie.clone();
    running.stop().await;

    let log = String::from_utf8(log.text.lock().unwrap().clone()).unwrap();
    // Without its seal a cookie proves nothing.
    let seal = cookie.split(['-', ';']).rfind(|part| part.len() == 64).unwrap();
    for secret in [token.as_str(), seal, &form_token, &code, mistaken, page_host] {
        assert!(!log.contains(secret), "{secret} is in the log:\n{log}");
    }
    // The log is not merely empty.
    for said in [
        "path=\"/open\"",
        "a browser has signed in",
        "a form of the page was handled",
        "stopped",
    ] {
        assert!(log.contains(said), "{said} is not in the log:\n{log}");
    }
}
