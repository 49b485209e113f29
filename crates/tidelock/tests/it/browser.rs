//! The page in a real browser, from the link that `up` prints to a click that changes a breaker.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use fantoccini::wd::Capabilities;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::harness::{World, is_own};
use crate::tools::require_tool;

/// A browser on a busy machine takes its time to start.
const BROWSER_LIMIT: Duration = Duration::from_secs(60);
/// Longer than the page takes to look for news by itself.
pub(crate) const PAGE_LIMIT: Duration = Duration::from_secs(20);
const BREAKER: &str = "model/api";

/// Whether the browser runs the scripts of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scripts {
    On,
    Off,
}

/// A chromedriver with its browsers, which are one process group. Dropping it kills all of them.
#[derive(Debug)]
struct Driver {
    child: Child,
    address: String,
}

impl Driver {
    fn start(program: &Path) -> Driver {
        let mut child = Command::new(program)
            .arg("--port=0")
            // Far from UTC, so that nobody takes one for the other.
            .env("TZ", "Asia/Kolkata")
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let mut driver = Driver {
            child,
            address: String::new(),
        };
        let (sender, receiver) = mpsc::channel();
        // It goes on to read until the driver ends, so that the driver never waits for a full pipe.
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Some((_, port)) = line.split_once("started successfully on port ") {
                    drop(sender.send(port.trim_end_matches('.').to_owned()));
                }
            }
        });
        let port = receiver
            .recv_timeout(BROWSER_LIMIT)
            .expect("chromedriver says on which port it listens");
        driver.address = format!("http://127.0.0.1:{port}");
        driver
    }

    async fn browse(&self, world: &World, scripts: Scripts) -> Client {
        let profile = format!("--user-data-dir={}", world.path().join("profile").display());
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--window-size=1200,900",
            &profile,
        ];
        let mut options = json!({ "args": arguments });
        if scripts == Scripts::Off {
            options["prefs"] = json!({ "profile.managed_default_content_settings.javascript": 2 });
        }
        let mut capabilities = Capabilities::new();
        capabilities.insert("goog:chromeOptions".to_owned(), options);
        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder
            .capabilities(capabilities)
            .connect(&self.address)
            .await
            .unwrap()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let group = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        // The driver leads the group and is not reaped yet, so the group is certainly still ours.
        let _ = kill_process_group(group, Signal::KILL);
        drop(self.child.wait());
    }
}

/// The word for the state in the row of the breaker.
async fn wait_for_badge(page: &Client, word: &str) {
    let path =
        format!("//tr[th[starts-with(., '{BREAKER}')]]//span[contains(@class, 'badge') and text()='{word}']");
    page.wait()
        .at_most(PAGE_LIMIT)
        .for_element(Locator::XPath(&path))
        .await
        .unwrap();
}

pub(crate) async fn wait_for_heading(page: &Client, text: &str) {
    let path = format!("//h1[text()='{text}']");
    page.wait()
        .at_most(PAGE_LIMIT)
        .for_element(Locator::XPath(&path))
        .await
        .unwrap();
}

async fn click_reset(page: &Client) {
    let button = format!("button[aria-label='Reset {BREAKER}']");
    page.find(Locator::Css(&button))
        .await
        .unwrap()
        .click()
        .await
        .unwrap();
}

/// Keeps a picture of the page below `target/pictures`, for whoever wants to see what the tests saw.
pub(crate) async fn take_screenshot(_world: &World, page: &Client, name: &str) {
    let picture = page.screenshot().await.unwrap();
    assert!(picture.starts_with(b"\x89PNG"), "not a picture");
    let test = thread::current().name().unwrap_or("test").to_owned();
    let module = test.split("::").next().unwrap_or_default();
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("pictures");
    fs::create_dir_all(&pictures).unwrap();
    fs::write(pictures.join(format!("{module}-{name}")), picture).unwrap();
}

fn record_failures(world: &World) {
    for _ in 0..3 {
        world.run(&["breaker", "record", BREAKER, "failure"]).expect(0);
    }
}

fn state_of_the_breaker(world: &World) -> Value {
    let list = world.run(&["breaker", "list", "--json"]).expect(0).json();
    let breakers = list["breakers"].as_array().unwrap();
    let used: Vec<&Value> = breakers.iter().filter(|breaker| !is_own(breaker)).collect();
    assert_eq!(used.len(), 1, "{list}");
    used[0]["state"].clone()
}

/// From the link to a click on Reset, as far as scripts do not matter.
async fn open_see_and_reset(world: &World, page: &Client, scripts: Scripts) {
    // A page of our own says whether scripts run at all.
    page.goto("data:text/html,<title>off</title><script>document.title='on'</script>")
        .await
        .unwrap();
    let expected = if scripts == Scripts::On { "on" } else { "off" };
    assert_eq!(page.title().await.unwrap(), expected);

    let up = world.run(&["up", "--json"]).expect(0).json();
    page.goto(up["page"]["url"].as_str().unwrap()).await.unwrap();
    wait_for_heading(page, "Overview").await;
    let address = page.current_url().await.unwrap();
    assert_eq!(
        (address.path(), address.query()),
        ("/", None),
        "the code does not stay in the address"
    );
    take_screenshot(world, page, "overview.png").await;

    page.find(Locator::LinkText("Breakers"))
        .await
        .unwrap()
        .click()
        .await
        .unwrap();
    wait_for_heading(page, "Circuit breakers").await;
    wait_for_badge(page, "Open").await;
    take_screenshot(world, page, "breakers.png").await;

    click_reset(page).await;
    wait_for_badge(page, "Closed").await;
    assert_eq!(state_of_the_breaker(world), "closed");
}

/// Runs something in a browser, or reports that it was skipped.
pub(crate) fn browse(world: &World, scripts: Scripts, scenario: impl AsyncFnOnce(&Client)) {
    let (Some(driver), Some(_)) = (require_tool("chromedriver"), require_tool("chromium")) else {
        return;
    };
    let driver = Driver::start(&driver);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let page = tokio::time::timeout(BROWSER_LIMIT, driver.browse(world, scripts))
            .await
            .unwrap();
        scenario(&page).await;
        page.close().await.unwrap();
    });
}

/// Runs a scenario about a breaker in a browser.
fn in_a_browser(scripts: Scripts, scenario: impl AsyncFnOnce(&World, &Client)) {
    let world = World::new();
    browse(&world, scripts, async |page| {
        record_failures(&world);
        open_see_and_reset(&world, page, scripts).await;
        scenario(&world, page).await;
    });
}

#[test]
fn times_are_those_of_the_browser_and_utc_without_scripts() {
    for scripts in [Scripts::On, Scripts::Off] {
        let world = World::new();
        browse(&world, scripts, async |page| {
            let up = world.run(&["up", "--json"]).expect(0).json();
            page.goto(up["page"]["url"].as_str().unwrap()).await.unwrap();
            wait_for_heading(page, "Overview").await;
            let started = page.find(Locator::Css("time[datetime]")).await.unwrap();
            let utc = started.attr("datetime").await.unwrap().unwrap();
            let time: jiff::Timestamp = utc.parse().unwrap();
            let (minutes, suffix) = match scripts {
                Scripts::On => (330, ""),
                Scripts::Off => (0, " UTC"),
            };
            let offset = jiff::tz::Offset::from_seconds(minutes * 60).unwrap();
            let local = time.to_zoned(jiff::tz::TimeZone::fixed(offset));
            let expected = format!("{}{suffix}", local.strftime("%Y-%m-%d %H:%M:%S"));
            assert_eq!(started.text().await.unwrap(), expected, "{scripts:?}");
        });
    }
}

#[test]
fn a_breaker_is_reset_in_a_browser_and_the_page_follows_what_happens_elsewhere() {
    in_a_browser(Scripts::On, async |world, page| {
        // Nobody touches the page; its script looks for news.
        record_failures(world);
        wait_for_badge(page, "Open").await;
    });
}

#[test]
fn without_scripts_the_page_works_too_and_a_click_on_an_old_state_changes_nothing() {
    in_a_browser(Scripts::Off, async |world, page| {
        world.run(&["breaker", "force", BREAKER, "open"]).expect(0);
        // The page still shows the state from before, and its button names the generation of that state.
        wait_for_badge(page, "Closed").await;
        click_reset(page).await;
        wait_for_badge(page, "Forced open").await;
        let notice = page
            .find(Locator::Css(".notice.warn:not([data-trouble])"))
            .await
            .unwrap();
        let text = notice.text().await.unwrap();
        assert!(text.contains("has moved since you looked"), "{text}");
        assert_eq!(state_of_the_breaker(world), "forced_open");

        click_reset(page).await;
        wait_for_badge(page, "Closed").await;
        assert_eq!(state_of_the_breaker(world), "closed");
    });
}
