//! The page of what a crash left behind, in a real browser: rescued content is seen, restored and gone from the list.

use std::fs;

use fantoccini::elements::Element;
use fantoccini::{Client, Locator};

use crate::browser::{PAGE_LIMIT, Scripts, browse, wait_for_heading};
use crate::plan_stuck::cut_off;

async fn wait_for_xpath(page: &Client, path: &str) -> Element {
    let found = page.wait().at_most(PAGE_LIMIT);
    match found.for_element(Locator::XPath(path)).await {
        Ok(element) => element,
        Err(_) => panic!("{path} is not on the page: {}", page.source().await.unwrap()),
    }
}

#[test]
fn rescued_content_is_shown_and_restored() {
    let (project, _) = cut_off();
    // The same line, so that the apply is taken back; and the path of the symlink is taken.
    project.shell("sed -i s/two/zwei/ edit.txt; echo mine > link");
    project.run(&["up"]).expect(0);
    project.run(&["workspace", "repair", "."]).expect(0);
    let link = project.root.join("link");
    browse(&project.world, Scripts::On, async |page| {
        let up = project.run(&["up", "--json"]).expect(0).json();
        page.goto(up["page"]["url"].as_str().unwrap()).await.unwrap();
        wait_for_heading(page, "Overview").await;
        let foot = page.find(Locator::LinkText("Recovery")).await.unwrap();
        foot.click().await.unwrap();
        wait_for_heading(page, "Recovery").await;
        // Something is at its path, and stays.
        let restore = "//div[@data-rescued]//button[text()='Restore']";
        wait_for_xpath(page, restore).await.click().await.unwrap();
        wait_for_xpath(
            page,
            "//*[contains(@class, 'notice')][contains(., 'nothing was done')]",
        )
        .await;
        assert_eq!(fs::read_to_string(&link).unwrap(), "mine\n");
        fs::remove_file(&link).unwrap();
        wait_for_xpath(page, restore).await.click().await.unwrap();
        wait_for_xpath(
            page,
            "//*[contains(@class, 'notice')][contains(., 'was restored')]",
        )
        .await;
        wait_for_xpath(page, "//h2[text()='Nothing to recover']").await;
        assert_eq!(fs::read_link(&link).unwrap().to_str(), Some("target"));
    });
}
