//! The page as a whole in a real browser: what needs somebody is answered where it stands, keys lead everywhere, nothing
//! scrolls sideways on a phone, and the page says since when nobody has answered it.

use fantoccini::elements::Element;
use fantoccini::key::Key;
use fantoccini::{Client, Locator};

use crate::browser::{PAGE_LIMIT, Scripts, browse, take_screenshot, wait_for_heading};
use crate::harness::finish;
use crate::plan_stage::Project;
use crate::session_stage::BEFORE;

/// Asks before it changes a file.
const ASKS: &str = "
steps:
  - ask: may I change it?
  - write: {path: a.txt, text: \"one\\n2\\n\"}
";

/// The addresses of all places, with their headings.
const PLACES: [(&str, &str, &str); 9] = [
    ("o", "/", "Overview"),
    ("s", "/sessions", "Sessions"),
    ("p", "/plans", "Plans"),
    ("j", "/jobs", "Jobs"),
    ("c", "/context", "Context"),
    ("l", "/servers", "Language servers"),
    ("x", "/processes", "Processes"),
    ("b", "/breakers", "Circuit breakers"),
    ("e", "/events", "Events"),
];

async fn wait_for(page: &Client, path: &str) -> Element {
    let found = page.wait().at_most(PAGE_LIMIT);
    match found.for_element(Locator::XPath(path)).await {
        Ok(element) => element,
        Err(_) => panic!("{path} is not on the page: {}", page.source().await.unwrap()),
    }
}

/// Waits until a script of ours says that something holds.
async fn wait_until(page: &Client, script: &str) {
    let holds = format!("return Boolean({script});");
    let found = tokio::time::timeout(PAGE_LIMIT, async {
        while page.execute(&holds, Vec::new()).await.unwrap() != true {
            tokio::task::yield_now().await;
        }
    });
    if found.await.is_err() {
        panic!("never: {script}: {}", page.source().await.unwrap());
    }
}

async fn sign_in(project: &Project, page: &Client) -> String {
    let up = project.world.run(&["up", "--json"]).expect(0).json();
    page.goto(up["page"]["url"].as_str().unwrap()).await.unwrap();
    wait_for_heading(page, "Overview").await;
    let address = page.current_url().await.unwrap();
    address.as_str().trim_end_matches('/').to_owned()
}

/// Presses keys where the focus is.
async fn press(page: &Client, keys: &str) {
    let focused = page.active_element().await.unwrap();
    focused.send_keys(keys).await.unwrap();
}

/// What has the focus.
async fn focused(page: &Client) -> String {
    let script = "return document.activeElement?.dataset.key ?? '';";
    let key = page.execute(script, Vec::new()).await.unwrap();
    key.as_str().unwrap().to_owned()
}

/// How far the page reaches beyond its window, in pixels.
async fn overflow(page: &Client) -> i64 {
    let script = "return document.documentElement.scrollWidth - document.documentElement.clientWidth;";
    page.execute(script, Vec::new()).await.unwrap().as_i64().unwrap()
}

#[test]
fn what_needs_somebody_is_answered_on_the_overview_and_every_title_counts_it() {
    let project = Project::with_git(&BEFORE);
    browse(&project.world, Scripts::On, async |page| {
        let base = sign_in(&project, page).await;
        wait_for(
            page,
            "//*[@id='needs']/../..//p[contains(., 'Nothing right now')]",
        )
        .await;
        assert_eq!(page.title().await.unwrap(), "Overview · Tidelock");

        // Nobody touches the page; it follows what happens.
        finish(project.talk(ASKS, &["--detach", "--json"])).expect(0);
        wait_for(
            page,
            "//li[@data-need='permission']//code[contains(., 'may I change it?')]",
        )
        .await;
        wait_for(page, "//li[@data-running='turn']").await;
        wait_until(page, "document.title.startsWith('(1) Overview')").await;
        wait_for(page, "//nav//span[@data-needs and text()='1']").await;
        take_screenshot(&project.world, page, "needs.png").await;
        page.goto(&format!("{base}/jobs")).await.unwrap();
        assert_eq!(page.title().await.unwrap(), "(1) Jobs · Tidelock");
        page.goto(&format!("{base}/")).await.unwrap();

        wait_for(
            page,
            "//li[@data-need='permission']//button[@data-answer-button='allow']",
        )
        .await
        .click()
        .await
        .unwrap();
        // The answer leads back here, the turn ends, and its plan is to be reviewed.
        wait_for(page, "//li[@data-need='plan']//a[text()='Review']").await;
        wait_until(page, "document.querySelector('[data-need=permission]') === null").await;
        assert_eq!(page.current_url().await.unwrap().path(), "/");

        // What happened is told, and leads on.
        page.goto(&format!("{base}/events?kind=plan")).await.unwrap();
        wait_for(page, "//li[@data-event='sealed']//a[@class='row-title']")
            .await
            .click()
            .await
            .unwrap();
        wait_for(
            page,
            "//*[@data-part='timeline']//*[name()='svg' and @role='img']",
        )
        .await;
        take_screenshot(&project.world, page, "timeline.png").await;
        wait_for(page, "//*[@id='plan-state']//span[text()='Sealed']").await;
    });
}

#[test]
fn keys_lead_everywhere_and_are_letters_again_where_somebody_types() {
    let project = Project::with_git(&BEFORE);
    let (first, second) = (
        project.open(&["--title", "first"]),
        project.open(&["--title", "second"]),
    );
    browse(&project.world, Scripts::On, async |page| {
        let base = sign_in(&project, page).await;
        for (key, path, heading) in PLACES {
            press(page, &format!("g{key}")).await;
            wait_for_heading(page, heading).await;
            assert_eq!(page.current_url().await.unwrap().path(), path);
        }

        // The newest plan comes first. The list has an end at both ends.
        page.goto(&format!("{base}/plans")).await.unwrap();
        for (key, expected) in [
            ("j", &second),
            ("j", &first),
            ("j", &first),
            ("k", &second),
            ("k", &second),
        ] {
            press(page, key).await;
            assert_eq!(focused(page).await, format!("show {expected}"), "{key}");
        }
        let outline = "return getComputedStyle(document.activeElement).outlineStyle;";
        assert_eq!(page.execute(outline, Vec::new()).await.unwrap(), "solid");
        page.active_element()
            .await
            .unwrap()
            .send_keys(&Key::Enter.to_string())
            .await
            .unwrap();
        wait_for_heading(page, "second").await;

        press(page, "?").await;
        wait_until(page, "document.getElementById('keys').open").await;
        press(page, "?").await;
        wait_until(page, "!document.getElementById('keys').open").await;

        page.goto(&format!("{base}/sessions")).await.unwrap();
        let prompt = page.find(Locator::Id("start-prompt")).await.unwrap();
        prompt.send_keys("gp?jk").await.unwrap();
        assert_eq!(prompt.prop("value").await.unwrap().unwrap(), "gp?jk");
        assert_eq!(page.current_url().await.unwrap().path(), "/sessions");

        // The first stop of the Tab key leads past the navigation.
        page.goto(&format!("{base}/jobs")).await.unwrap();
        press(page, &Key::Tab.to_string()).await;
        let skip = "return document.activeElement.getAttribute('href');";
        assert_eq!(page.execute(skip, Vec::new()).await.unwrap(), "#content");
    });
}

#[test]
fn on_a_phone_nothing_scrolls_sideways() {
    let project = Project::with_git(&BEFORE);
    let long = "a-very-long-name-without-any-space".repeat(3);
    let plan = project.open(&["--title", &long]);
    project.work(&plan, "echo more >> a.txt");
    project.run(&["plan", "seal", &plan]).expect(0);
    let other = project.open(&["--title", "other"]);
    project.work(&other, "echo else >> a.txt");
    project.run(&["job", "run", "--wait", "--", "sh", "-c", "exit 3"]);
    project.run(&["breaker", "force", &long, "open"]).expect(0);
    finish(project.talk(ASKS, &["--detach", "--json"])).expect(0);
    let session = project.session("@")["id"].as_str().unwrap().to_owned();
    let workspace = project.shown(&plan)["workspace"].as_str().unwrap().to_owned();
    browse(&project.world, Scripts::On, async |page| {
        let base = sign_in(&project, page).await;
        page.set_window_size(360, 740).await.unwrap();
        let more = [
            format!("/plans/{plan}"),
            format!("/plans?workspace={workspace}"),
            "/plans?show=over".to_owned(),
            "/workspaces".to_owned(),
            format!("/sessions/{session}"),
            "/docs/errors".to_owned(),
        ];
        let places = PLACES.iter().map(|(_, path, _)| (*path).to_owned());
        for path in places.chain(more) {
            page.goto(&format!("{base}{path}")).await.unwrap();
            wait_for(page, "//h1").await;
            assert_eq!(overflow(page).await, 0, "{path}");
        }
    });
}

#[test]
fn a_page_says_since_when_nobody_answers_and_goes_on_by_itself() {
    let project = Project::new(&[]);
    browse(&project.world, Scripts::On, async |page| {
        let base = sign_in(&project, page).await;
        page.goto(&format!("{base}/events")).await.unwrap();
        wait_for(page, "//li[@data-event='started']").await;
        // From here on the daemon is out of reach, as far as the page can tell.
        let cut =
            "window.realFetch = window.fetch; window.fetch = () => Promise.reject(new TypeError('gone'));";
        page.execute(cut, Vec::new()).await.unwrap();
        let trouble = wait_for(page, "//*[@data-trouble and not(@hidden)]/p").await;
        let text = trouble.text().await.unwrap();
        assert!(
            text.starts_with("Not connected since ") && text.contains("the daemon isn't responding"),
            "{text}"
        );
        wait_for(page, "//*[@data-phase-badge and text()='Not connected']").await;
        page.execute("window.fetch = window.realFetch;", Vec::new())
            .await
            .unwrap();
        wait_for(page, "//*[@data-trouble and @hidden]").await;
        wait_for(page, "//*[@data-phase-badge and text()='Ready']").await;

        // A daemon that was started again does not know the browser, and its page says what to do.
        project.world.run(&["down"]).expect(0);
        wait_for(page, "//*[@data-trouble and not(@hidden)]").await;
    });
}
