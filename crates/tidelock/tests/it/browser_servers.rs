//! The page of language servers in a real browser, with servers that are killed, stopped and started.

use fantoccini::{Client, Locator};
use serde_json::json;

use crate::browser::{PAGE_LIMIT, Scripts, browse, take_screenshot, wait_for_heading};
use crate::lsp_stage::{Player, Stage};

/// Would run in the page if a server's words were taken for markup.
const HOSTILE: &str = "<script>document.title='taken over'</script><b id='hostile'>bold</b>";

/// The row of a server, with something in it.
async fn wait_for_row(page: &Client, inside: &str) {
    let path = format!("//tr[th/a[text()='alpha']]{inside}");
    let found = page.wait().at_most(PAGE_LIMIT);
    let found = found.for_element(Locator::XPath(&path)).await;
    if found.is_err() {
        panic!("{path} is not on the page: {}", page.source().await.unwrap());
    }
}

async fn wait_for_state(page: &Client, word: &str, generation: u64) {
    wait_for_row(
        page,
        &format!("[th/small[text()='generation {generation}']]//span[text()='{word}']"),
    )
    .await;
}

async fn wait_for_notice(page: &Client, text: &str) {
    let path = format!("//*[contains(@class, 'notice') and contains(., '{text}')]");
    let found = page.wait().at_most(PAGE_LIMIT);
    let found = found.for_element(Locator::XPath(&path)).await;
    if found.is_err() {
        panic!("{path} is not on the page: {}", page.source().await.unwrap());
    }
}

async fn click(page: &Client, word: &str) {
    let path = format!("//tr[th/a[text()='alpha']]//button[text()='{word}']");
    let button = page.wait().at_most(PAGE_LIMIT);
    let button = button.for_element(Locator::XPath(&path)).await.unwrap();
    button.click().await.unwrap();
}

async fn open_servers(stage: &Stage, page: &Client) {
    let up = stage.world.run(&["up", "--json"]).expect(0).json();
    page.goto(up["page"]["url"].as_str().unwrap()).await.unwrap();
    wait_for_heading(page, "Overview").await;
    let link = page.find(Locator::LinkText("Servers")).await.unwrap();
    link.click().await.unwrap();
    wait_for_heading(page, "Language servers").await;
}

fn stage() -> Stage {
    let said = json!([{ "method": "window/logMessage", "params": { "type": 1, "message": HOSTILE } }]);
    Stage::new(&[Player::new("alpha", json!({ "after_initialized": said }))])
}

#[test]
fn the_page_follows_a_server_through_a_crash_a_restart_a_stop_and_a_start() {
    let stage = stage();
    browse(&stage.world, Scripts::On, async |page| {
        open_servers(&stage, page).await;
        page.find(Locator::XPath("//h2[text()='No language servers yet']"))
            .await
            .unwrap();

        // Nobody touches the page; it follows what happens.
        stage.hovered("alpha");
        wait_for_state(page, "Ready", 1).await;
        wait_for_row(page, "/td[@data-label='Memory' and contains(., 'MiB')]").await;
        wait_for_row(page, "/td[@data-label='Documents' and text()='1']").await;
        take_screenshot(&stage.world, page, "servers.png").await;

        stage.kill_server("alpha");
        wait_for_state(page, "Ready", 2).await;
        wait_for_row(page, "/td[@data-label='Restarts' and text()='1']").await;
        wait_for_row(page, "//small[contains(., 'signal 9')]").await;

        click(page, "Restart").await;
        wait_for_notice(page, "“alpha” was restarted and is ready").await;
        wait_for_state(page, "Ready", 3).await;

        click(page, "Stop").await;
        wait_for_notice(page, "“alpha” was stopped").await;
        wait_for_state(page, "Stopped", 3).await;
        assert_eq!(stage.hover("alpha").body["code"], "server_stopped");

        click(page, "Start").await;
        wait_for_notice(page, "“alpha” was started and is ready").await;
        wait_for_state(page, "Ready", 4).await;
        stage.hovered("alpha");
        assert_eq!(stage.pids("alpha", "server").len(), 4);
    });
}

#[test]
fn a_restart_of_a_server_that_has_moved_is_refused_with_a_notice() {
    let stage = stage();
    // Without scripts the page shows what was when it was loaded.
    browse(&stage.world, Scripts::Off, async |page| {
        stage.hovered("alpha");
        open_servers(&stage, page).await;
        wait_for_state(page, "Ready", 1).await;
        stage.restart("alpha");
        click(page, "Restart").await;
        wait_for_notice(page, "has moved since you looked").await;
        wait_for_state(page, "Ready", 2).await;
        assert_eq!(stage.server("alpha")["generation"], 2);

        // What the page shows now is what is restarted.
        click(page, "Restart").await;
        wait_for_state(page, "Ready", 3).await;
        assert_eq!(stage.server("alpha")["generation"], 3);
    });
}

#[test]
fn the_log_of_a_server_shows_its_words_and_never_runs_them() {
    let stage = stage();
    browse(&stage.world, Scripts::On, async |page| {
        stage.hovered("alpha");
        open_servers(&stage, page).await;
        let link = page.find(Locator::LinkText("alpha")).await.unwrap();
        link.click().await.unwrap();
        wait_for_heading(page, "alpha").await;
        let line = page.wait().at_most(PAGE_LIMIT);
        let line = line
            .for_element(Locator::XPath(
                "//*[contains(@class, 'log-text') and contains(., '<script>')]",
            ))
            .await
            .unwrap();
        assert_eq!(line.text().await.unwrap(), HOSTILE);
        assert!(
            page.find(Locator::Id("hostile")).await.is_err(),
            "it became markup"
        );
        let title = page.title().await.unwrap();
        assert!(title.contains("alpha in "), "{title}");

        // It is written on while it is read.
        stage.kill_server("alpha");
        page.wait()
            .at_most(PAGE_LIMIT)
            .for_element(Locator::XPath(
                "//*[contains(@class, 'log-text') and contains(., 'generation 2 is ready')]",
            ))
            .await
            .unwrap();
        take_screenshot(&stage.world, page, "log.png").await;
    });
}
