//! The pages of plans in a real browser: an agent works, its diff is read, applied and taken back.

use std::fs;
use std::time::Instant;

use fantoccini::elements::Element;
use fantoccini::{Client, Locator};

use crate::browser::{PAGE_LIMIT, Scripts, browse, take_screenshot, wait_for_heading};
use crate::plan_stage::Project;

/// Would run in the page if the contents of a file were taken for markup.
const HOSTILE: &str = "<script>document.title='taken over'</script><b id='hostile'>bold</b>";

async fn wait_for_xpath(page: &Client, path: &str) -> Element {
    let found = page.wait().at_most(PAGE_LIMIT);
    match found.for_element(Locator::XPath(path)).await {
        Ok(element) => element,
        Err(_) => panic!("{path} is not on the page: {}", page.source().await.unwrap()),
    }
}

async fn click(page: &Client, id: &str) {
    let path = format!("//*[@id='{id}']");
    wait_for_xpath(page, &path).await.click().await.unwrap();
}

async fn wait_for_state(page: &Client, word: &str) {
    wait_for_xpath(page, &format!("//*[@id='plan-state']//span[text()='{word}']")).await;
}

/// A line of a diff with this sign and exactly this text.
fn line(sign: &str, text: &str) -> String {
    format!("//tr[td[contains(@class, 'mark')]='{sign}' and td[contains(@class, 'code')]=\"{text}\"]")
}

async fn nothing_was_taken_over(page: &Client) {
    assert!(
        page.find(Locator::Id("hostile")).await.is_err(),
        "it became markup"
    );
    let title = page.title().await.unwrap();
    assert!(!title.starts_with("taken over"), "{title}");
}

async fn open_plans(project: &Project, page: &Client) {
    let up = project.world.run(&["up", "--json"]).expect(0).json();
    page.goto(up["page"]["url"].as_str().unwrap()).await.unwrap();
    wait_for_heading(page, "Overview").await;
    let link = page.find(Locator::LinkText("Plans")).await.unwrap();
    link.click().await.unwrap();
    wait_for_heading(page, "Plans").await;
}

async fn open_plan(page: &Client, id: &str) {
    let link = format!("//tr[@data-plan='{id}']//a[@class='job-title']");
    // The list follows what happens, and may be replaced between the look and the click.
    let given_up_at = Instant::now() + PAGE_LIMIT;
    while let Err(error) = wait_for_xpath(page, &link).await.click().await {
        let is_replaced = error.to_string().contains("stale element");
        assert!(is_replaced && Instant::now() < given_up_at, "{error}");
    }
    wait_for_xpath(page, "//*[@id='plan-state']").await;
}

#[test]
fn a_plan_is_watched_read_applied_and_taken_back() {
    let project = Project::new(&[("a.txt", "one\ntwo\nthree\n")]);
    let (world, root) = (&project.world, &project.root);
    browse(world, Scripts::On, async |page| {
        open_plans(&project, page).await;
        wait_for_xpath(page, "//h2[text()='No open plans']").await;

        // Nobody touches the page; it follows what happens.
        let id = project.open(&["--title", HOSTILE]);
        wait_for_xpath(page, &format!("//tr[@data-plan='{id}']//span[text()='Open']")).await;
        project.work(&id, "printf 'one\\n2\\nthree\\n' > a.txt");
        wait_for_xpath(
            page,
            &format!("//tr[@data-plan='{id}']/td[contains(., '1 file')]"),
        )
        .await;
        nothing_was_taken_over(page).await;
        take_screenshot(world, page, "plans.png").await;

        open_plan(page, &id).await;
        wait_for_xpath(page, &line("−", "two")).await;
        wait_for_xpath(page, &line("+", "2")).await;
        wait_for_xpath(page, "//button[@id='apply']").await;

        // What comes while somebody reads is said, and cannot be applied before it was seen.
        let write = format!("printf '%s\\n' \"{HOSTILE}\" > new.txt");
        project.work(&id, &write);
        wait_for_xpath(page, "//*[@id='outdated']").await;
        assert!(
            page.find(Locator::Id("apply")).await.is_err(),
            "it can be applied unseen"
        );
        wait_for_xpath(page, &line("−", "two")).await;
        click(page, "look-again").await;
        wait_for_xpath(page, &line("+", HOSTILE)).await;
        nothing_was_taken_over(page).await;

        let link = page.find(Locator::LinkText("Side by side")).await.unwrap();
        link.click().await.unwrap();
        let pair = "//table[contains(@class, 'split')]//tr[td[3]='two' and td[6]='2']";
        wait_for_xpath(page, pair).await;
        take_screenshot(world, page, "split.png").await;

        click(page, "apply").await;
        wait_for_state(page, "Applied").await;
        assert_eq!(fs::read_to_string(root.join("a.txt")).unwrap(), "one\n2\nthree\n");
        take_screenshot(world, page, "applied.png").await;
        click(page, "undo").await;
        wait_for_state(page, "Undone").await;
        assert_eq!(
            fs::read_to_string(root.join("a.txt")).unwrap(),
            "one\ntwo\nthree\n"
        );
        nothing_was_taken_over(page).await;
    });
}

#[test]
fn without_scripts_a_conflict_is_read_and_work_is_given_up_after_a_question() {
    let project = Project::new(&[("a.txt", "one\ntwo\nthree\n")]);
    let world = &project.world;
    let id = project.open(&["--title", "mine"]);
    project.work(&id, "printf 'one\\nplan\\nthree\\n' > a.txt");
    project.write("a.txt", "one\nworkspace\nthree\n");
    browse(world, Scripts::Off, async |page| {
        open_plans(&project, page).await;
        open_plan(page, &id).await;
        click(page, "apply").await;
        wait_for_state(page, "Conflicted").await;
        for (side, text) in [("base", "two"), ("ours", "workspace"), ("theirs", "plan")] {
            let path = format!("//div[contains(@class, 'side') and contains(@class, '{side}')]//code");
            let found = wait_for_xpath(page, &path).await.text().await.unwrap();
            assert_eq!(found.trim(), text, "{side}");
        }
        take_screenshot(world, page, "conflict.png").await;

        click(page, "discard").await;
        wait_for_heading(page, "Discard this plan?").await;
        assert_eq!(project.shown(&id)["state"], "open");
        click(page, "give-up").await;
        wait_for_state(page, "Discarded").await;
        assert_eq!(project.shown(&id)["state"], "discarded");
        assert_eq!(
            fs::read_to_string(project.root.join("a.txt")).unwrap(),
            "one\nworkspace\nthree\n"
        );
    });
}
