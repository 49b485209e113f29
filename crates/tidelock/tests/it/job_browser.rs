//! The pages of jobs in a real browser: output that appears while it is written, search, and the buttons.

use std::fs;

use fantoccini::{Client, Locator};

use crate::browser::{PAGE_LIMIT, Scripts, browse, take_screenshot, wait_for_heading};
use crate::harness::World;
use crate::job_stage::{NOBODY, left_behind, shown, submit, wait_for_state};

/// Would run in the page if the words of a job were taken for markup.
const HOSTILE: &str = "<script>document.title='taken over'</script><b id='hostile'>bold</b>";

async fn wait_for_xpath(page: &Client, path: &str) -> fantoccini::elements::Element {
    let found = page.wait().at_most(PAGE_LIMIT);
    match found.for_element(Locator::XPath(path)).await {
        Ok(element) => element,
        Err(_) => panic!("{path} is not on the page: {}", page.source().await.unwrap()),
    }
}

/// A line of the output that has exactly this text.
async fn wait_for_line(page: &Client, channel: &str, text: &str) {
    let path = format!(
        "//*[@id='output-lines']/div[contains(@class, '{channel}')]/span[normalize-space()=\"{text}\"]"
    );
    wait_for_xpath(page, &path).await;
}

async fn wait_for_state_word(page: &Client, word: &str) {
    wait_for_xpath(page, &format!("//*[@id='job-state']//span[text()='{word}']")).await;
}

async fn click(page: &Client, id: &str) {
    let path = format!("//*[@id='{id}']");
    wait_for_xpath(page, &path).await.click().await.unwrap();
}

async fn open_jobs(world: &World, page: &Client) {
    let up = world.run(&["up", "--json"]).expect(0).json();
    page.goto(up["page"]["url"].as_str().unwrap()).await.unwrap();
    wait_for_heading(page, "Overview").await;
    let link = page.find(Locator::LinkText("Jobs")).await.unwrap();
    link.click().await.unwrap();
    wait_for_heading(page, "Jobs").await;
}

async fn nothing_was_taken_over(page: &Client) {
    assert!(
        page.find(Locator::Id("hostile")).await.is_err(),
        "it became markup"
    );
    let title = page.title().await.unwrap();
    assert!(!title.starts_with("taken over"), "{title}");
}

#[test]
fn a_job_is_watched_searched_and_cancelled_on_its_page() {
    let world = World::new();
    let script = "echo first; printf '\\033[1;31mred\\033[0m\\n'; echo \"$HOSTILE\"; echo wrong >&2; \
                  until test -e go; do sleep 0.05; done; echo '::progress 1/4 quarter'; echo second; sleep 600";
    browse(&world, Scripts::On, async |page| {
        open_jobs(&world, page).await;
        wait_for_xpath(page, "//h2[text()='No jobs yet']").await;

        // Nobody touches the page; it follows what happens.
        let environment = format!("HOSTILE={HOSTILE}");
        let options = ["--title", HOSTILE, "--env", &environment];
        let id = submit(&world, &options, &["sh", "-c", script]);
        wait_for_xpath(page, &format!("//tr[@data-job='{id}']//span[text()='Running']")).await;
        nothing_was_taken_over(page).await;
        take_screenshot(&world, page, "jobs.png").await;

        wait_for_xpath(page, &format!("//tr[@data-job='{id}']//a[@class='job-title']")).await;
        // In one step, since the list is drawn anew as the job goes on.
        let step = format!(
            "const link = document.querySelector(\"tr[data-job='{id}'] a.job-title\"); \
             const text = link.textContent; link.click(); return text;"
        );
        assert_eq!(page.execute(&step, Vec::new()).await.unwrap(), HOSTILE);
        wait_for_xpath(page, "//h1[contains(@class, 'job-title')]").await;
        wait_for_state_word(page, "Running").await;
        wait_for_line(page, "stdout", "first").await;
        wait_for_line(page, "stderr", "wrong").await;
        wait_for_line(page, "stdout", HOSTILE).await;
        nothing_was_taken_over(page).await;
        let path = "//*[@id='output-lines']//span[contains(@class, 'out-text')]/span[text()='red']";
        let red = wait_for_xpath(page, path).await;
        assert_ne!(
            red.attr("class").await.unwrap().unwrap_or_default(),
            "",
            "the colour is lost"
        );
        assert!(
            page.find(Locator::XPath("//*[@id='output-lines']//span[text()='second']"))
                .await
                .is_err(),
            "it has not been said yet"
        );

        fs::write(world.path().join("go"), "").unwrap();
        wait_for_line(page, "stdout", "second").await;
        take_screenshot(&world, page, "job.png").await;

        // A search marks what it finds, and can leave out the rest.
        let search = page.find(Locator::Id("output-search")).await.unwrap();
        search.send_keys("SECOND").await.unwrap();
        wait_for_xpath(page, "//*[@id='output-lines']//mark[text()='second']").await;
        wait_for_xpath(page, "//*[@id='output-hits'][contains(., '1')]").await;
        click(page, "output-only").await;
        let first = page
            .find(Locator::XPath(
                "//*[@id='output-lines']/div[span[text()='first']]",
            ))
            .await;
        if let Ok(first) = first {
            assert!(
                !first.is_displayed().await.unwrap(),
                "a line without a hit is shown"
            );
        }
        take_screenshot(&world, page, "search.png").await;

        // The button says why, and the page follows.
        page.find(Locator::Id("why"))
            .await
            .unwrap()
            .send_keys("seen enough")
            .await
            .unwrap();
        click(page, "cancel").await;
        wait_for_state_word(page, "Cancelled").await;
        assert_eq!(left_behind(&world), NOBODY);
        let job = shown(&world, &id);
        assert_eq!(job["cancel"]["why"], "seen enough", "{job}");
        wait_for_xpath(page, "//*[@id='retry']").await;
        take_screenshot(&world, page, "cancelled.png").await;

        // The same once more is another job, and the page leads there.
        click(page, "retry").await;
        wait_for_state_word(page, "Running").await;
        let again = shown(&world, "last");
        assert_eq!(again["retry_of"], id, "{again}");
        let address = page.current_url().await.unwrap();
        assert_eq!(address.path(), format!("/jobs/{}", again["id"].as_str().unwrap()));
        world.run(&["job", "cancel", "last", "--wait"]).expect(0);
        wait_for_state_word(page, "Cancelled").await;
        nothing_was_taken_over(page).await;
    });
}

#[test]
fn without_scripts_the_page_shows_what_was_said_and_cancels() {
    let world = World::new();
    browse(&world, Scripts::Off, async |page| {
        let environment = format!("HOSTILE={HOSTILE}");
        let script = "echo first; echo \"$HOSTILE\"; sleep 600";
        let id = submit(&world, &["--env", &environment], &["sh", "-c", script]);
        wait_for_state(&world, &id, "running");
        crate::harness::wait_for("its output", || {
            shown(&world, &id)["output_bytes"].as_u64() > Some(6)
        });
        open_jobs(&world, page).await;
        let link = wait_for_xpath(page, &format!("//tr[@data-job='{id}']//a[@class='job-title']")).await;
        link.click().await.unwrap();
        wait_for_line(page, "stdout", "first").await;
        wait_for_line(page, "stdout", HOSTILE).await;
        nothing_was_taken_over(page).await;
        click(page, "cancel").await;
        wait_for_xpath(page, "//*[contains(@class, 'notice')]").await;
        wait_for_state(&world, &id, "cancelled");
        page.refresh().await.unwrap();
        wait_for_state_word(page, "Cancelled").await;
    });
}
