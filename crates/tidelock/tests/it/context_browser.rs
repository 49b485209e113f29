//! The page of context in a real browser: a question, its answer, and the index that it left.

use fantoccini::elements::Element;
use fantoccini::{Client, Locator};

use crate::browser::{PAGE_LIMIT, Scripts, browse, take_screenshot, wait_for_heading};
use crate::plan_stage::Project;

/// Would run in the page if the contents of a file were taken for markup.
const HOSTILE: &str = "</code></pre><script>document.title='taken over'</script><b id='hostile'>bold</b>";

fn project() -> Project {
    let source =
        format!("/// {HOSTILE}\npub fn back_off_after(attempt: u32) -> u32 {{\n    attempt * 2\n}}\n");
    Project::with_git(&[("src/retry.rs", &source), ("src/other.rs", "pub fn other() {}\n")])
}

async fn wait_for_xpath(page: &Client, path: &str) -> Element {
    let found = page.wait().at_most(PAGE_LIMIT);
    match found.for_element(Locator::XPath(path)).await {
        Ok(element) => element,
        Err(_) => panic!("{path} is not on the page: {}", page.source().await.unwrap()),
    }
}

async fn fill(page: &Client, id: &str, text: &str) {
    let field = page.find(Locator::Id(id)).await.unwrap();
    field.clear().await.unwrap();
    field.send_keys(text).await.unwrap();
}

/// Signs in, follows the link of the navigation, and asks.
async fn ask(project: &Project, page: &Client, question: &str) {
    let up = project.world.run(&["up", "--json"]).expect(0).json();
    page.goto(up["page"]["url"].as_str().unwrap()).await.unwrap();
    wait_for_heading(page, "Overview").await;
    let link = page.find(Locator::LinkText("Context")).await.unwrap();
    link.click().await.unwrap();
    wait_for_heading(page, "Context").await;
    fill(page, "context-directory", project.root.to_str().unwrap()).await;
    fill(page, "context-query", question).await;
    page.find(Locator::Id("ask"))
        .await
        .unwrap()
        .click()
        .await
        .unwrap();
}

async fn see_the_answer(project: &Project, page: &Client) {
    let piece = "//details[@data-piece='src/retry.rs']";
    let code = wait_for_xpath(page, &format!("{piece}//pre")).await;
    let text = code.text().await.unwrap();
    assert!(text.contains(HOSTILE), "{text}");
    assert!(text.contains("pub fn back_off_after"), "{text}");
    assert!(
        page.find(Locator::Id("hostile")).await.is_err(),
        "it became markup"
    );
    let title = page.title().await.unwrap();
    assert!(title.starts_with("Context"), "{title}");
    wait_for_xpath(page, &format!("{piece}//li[contains(., 'keyword')]")).await;
    let ran = "//tr[@data-strategy='keyword'][.//span[text()='Ran']][.//progress]//a[@href='/breakers']";
    assert_eq!(wait_for_xpath(page, ran).await.text().await.unwrap(), "Closed");
    take_screenshot(&project.world, page, "context.png").await;
}

fn index_row(project: &Project) -> String {
    format!("//tr[@data-index='{}']", project.root.display())
}

#[test]
fn a_question_is_asked_in_a_browser_and_its_index_is_watched() {
    let project = project();
    browse(&project.world, Scripts::On, async |page| {
        ask(&project, page, "back_off_after").await;
        see_the_answer(&project, page).await;
        // Nobody touches the page; it follows how far the index is.
        wait_for_xpath(page, &format!("{}//span[text()='Ready']", index_row(&project))).await;
        // What was asked stands in the address, and in the form.
        let query = page.find(Locator::Id("context-query")).await.unwrap();
        assert_eq!(
            query.prop("value").await.unwrap().as_deref(),
            Some("back_off_after")
        );
        let address = page.current_url().await.unwrap();
        assert!(
            address.query().unwrap().contains("query=back_off_after"),
            "{address}"
        );
    });
}

#[test]
fn without_scripts_a_question_is_answered_and_an_index_is_removed() {
    let project = project();
    browse(&project.world, Scripts::Off, async |page| {
        ask(&project, page, "back_off_after").await;
        see_the_answer(&project, page).await;
        let remove = format!("{}//button[text()='Remove']", index_row(&project));
        wait_for_xpath(page, &remove).await.click().await.unwrap();
        let notice = wait_for_xpath(page, "//div[@class='notice good']").await;
        let text = notice.text().await.unwrap();
        assert!(text.ends_with(" was removed."), "{text}");
        assert!(
            page.find(Locator::XPath(&index_row(&project))).await.is_err(),
            "it is still there"
        );

        // What cannot be asked is said on the page itself.
        fill(page, "context-directory", "/nowhere/at/all").await;
        fill(page, "context-query", "x").await;
        page.find(Locator::Id("ask"))
            .await
            .unwrap()
            .click()
            .await
            .unwrap();
        wait_for_xpath(page, "//*[@id='context-refused']").await;
    });
}
