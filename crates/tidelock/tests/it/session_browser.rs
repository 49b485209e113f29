//! The pages of sessions in a real browser: a turn is watched, left, found again, answered, stopped, applied and
//! interrupted, and the page never loses or doubles a word.

use std::fs;

use fantoccini::elements::Element;
use fantoccini::{Client, Locator};
use serde_json::{Value, json};

use crate::browser::{PAGE_LIMIT, Scripts, browse, take_screenshot, wait_for_heading};
use crate::harness::finish;
use crate::job_stage::{NOBODY, left_behind};
use crate::plan_stage::Project;
use crate::requests::send;
use crate::session_stage::BEFORE;

/// Would run in the page if the words of an agent were taken for markup.
const HOSTILE: &str = "<script>document.title='taken over'</script><b id='hostile'>bold</b>";

/// So many words take some seconds: time to reload the page and to open another one.
const WORDS: usize = 250;

/// Says many words one by one, then asks, then says a little more.
fn long_script() -> String {
    let mut words: Vec<String> = (1..=WORDS).map(|number| format!("word{number}")).collect();
    words[20] = HOSTILE.to_owned();
    words[60] = "\n\n  größe – 語 – 🌊".to_owned();
    let text = words.join(" ");
    json!({ "steps": [
        { "think": "first I think" },
        { "say": { "text": text, "every": "20ms" } },
        { "read": "a.txt" },
        { "ask": "may I go on?" },
        { "say": "and that was all" },
    ] })
    .to_string()
}

/// Changes a file after a question.
const HELD: &str = "
steps:
  - say: begun
  - ask: may I change it?
  - write: {path: a.txt, text: \"one\\n2\\n\"}
  - say: changed
";

/// Starts a turn that nobody waits for, and returns the id of its session.
#[track_caller]
fn start(project: &Project, script: &str) -> String {
    finish(project.talk(script, &["--detach", "--json"])).expect(0);
    project.session("@")["id"].as_str().unwrap().to_owned()
}

/// The transcript of the newest turn that has begun.
#[track_caller]
fn transcript(project: &Project, session: &str) -> Value {
    let turn = project.session(session)["last_turn"].as_str().unwrap().to_owned();
    let path = format!("/v1/sessions/{session}/turns/{turn}/transcript");
    let answer = send(&project.world.home(), "GET", &path, "").unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body
}

/// What the agent said and thought, item by item, as the log has it.
#[track_caller]
fn said_in_the_log(project: &Project, session: &str) -> Vec<String> {
    let transcript = transcript(project, session);
    let items = transcript["items"].as_array().unwrap().iter();
    let spoken = items.filter(|item| item["type"] == "text" || item["type"] == "reasoning");
    spoken
        .map(|item| item["text"].as_str().unwrap().to_owned())
        .collect()
}

/// The same as the page has it, in the last turn there.
async fn said_on_the_page(page: &Client) -> Vec<String> {
    let script = "const turn = [...document.querySelectorAll('[data-turn]')].at(-1);
        const items = turn?.querySelectorAll('.item-text, .item-reasoning .item-body') ?? [];
        return [...items].map((item) => item.textContent);";
    let found = page.execute(script, Vec::new()).await.unwrap();
    serde_json::from_value(found).unwrap()
}

async fn wait_for_xpath(page: &Client, path: &str) -> Element {
    let found = page.wait().at_most(PAGE_LIMIT);
    match found.for_element(Locator::XPath(path)).await {
        Ok(element) => element,
        Err(_) => panic!("{path} is not on the page: {}", page.source().await.unwrap()),
    }
}

async fn click(page: &Client, path: &str) {
    wait_for_xpath(page, path).await.click().await.unwrap();
}

/// The word for what the session does, beside the conversation.
async fn wait_for_state(page: &Client, word: &str) {
    wait_for_xpath(page, &format!("//*[@data-active-turn]//span[text()='{word}']")).await;
}

/// The word at the end of the turn of this number on the page.
async fn wait_for_turn(page: &Client, number: usize, word: &str) {
    wait_for_xpath(
        page,
        &format!("//article[{number}]/p[@data-end]/span[text()='{word}']"),
    )
    .await;
}

async fn wait_for_text(page: &Client, text: &str) {
    wait_for_xpath(
        page,
        &format!("//*[contains(@class, 'item-text') and contains(., '{text}')]"),
    )
    .await;
}

async fn nothing_was_taken_over(page: &Client) {
    assert!(
        page.find(Locator::Id("hostile")).await.is_err(),
        "it became markup"
    );
    let title = page.title().await.unwrap();
    assert!(!title.starts_with("taken over"), "{title}");
}

async fn sign_in(project: &Project, page: &Client) {
    let up = project.world.run(&["up", "--json"]).expect(0).json();
    page.goto(up["page"]["url"].as_str().unwrap()).await.unwrap();
    wait_for_heading(page, "Overview").await;
}

async fn open_sessions(project: &Project, page: &Client) {
    sign_in(project, page).await;
    let link = page.find(Locator::LinkText("Sessions")).await.unwrap();
    link.click().await.unwrap();
    wait_for_heading(page, "Sessions").await;
}

async fn open_session(page: &Client, id: &str) {
    click(
        page,
        &format!("//tr[@data-session='{id}']//a[@class='job-title']"),
    )
    .await;
    wait_for_xpath(page, "//*[@data-conversation]").await;
}

async fn write_prompt(page: &Client, text: &str) {
    wait_for_xpath(page, "//*[@id='prompt']")
        .await
        .send_keys(text)
        .await
        .unwrap();
    click(page, "//*[@id='send']").await;
}

#[test]
fn a_turn_is_watched_reloaded_and_watched_twice_and_no_word_is_lost_or_doubled() {
    let project = Project::with_git(&BEFORE);
    let world = &project.world;
    browse(world, Scripts::On, async |page| {
        open_sessions(&project, page).await;
        wait_for_xpath(page, "//h2[text()='No sessions yet']").await;

        // Nobody touches the page; it follows what happens.
        let id = start(&project, &long_script());
        wait_for_xpath(
            page,
            &format!("//tr[@data-session='{id}']//span[text()='Running']"),
        )
        .await;
        take_screenshot(world, page, "sessions.png").await;
        open_session(page, &id).await;
        wait_for_text(page, "word30").await;
        page.refresh().await.unwrap();
        wait_for_text(page, "word80").await;
        take_screenshot(world, page, "running.png").await;

        // Another tab begins in the middle as well.
        let first = page.window().await.unwrap();
        let second = page.new_window(true).await.unwrap().handle;
        let address = page.current_url().await.unwrap();
        page.switch_to_window(second.clone()).await.unwrap();
        page.goto(address.as_str()).await.unwrap();

        // While it waits for an answer, the pages have what came event by event.
        for window in [&second, &first] {
            page.switch_to_window(window.clone()).await.unwrap();
            wait_for_state(page, "Waiting for you").await;
            wait_for_xpath(page, "//*[@data-items]/p[contains(., 'may I go on?')]").await;
            let said = said_on_the_page(page).await;
            assert_eq!(said, said_in_the_log(&project, &id));
            assert_eq!(said[1].split_whitespace().count(), long_words(), "{said:?}");
            nothing_was_taken_over(page).await;
        }
        take_screenshot(world, page, "asking.png").await;

        // It is answered in one, and goes on in both.
        click(page, "//button[@data-answer-button='allow']").await;
        for window in [&first, &second] {
            page.switch_to_window(window.clone()).await.unwrap();
            wait_for_turn(page, 1, "Done").await;
            wait_for_text(page, "and that was all").await;
            assert_eq!(said_on_the_page(page).await, said_in_the_log(&project, &id));
            nothing_was_taken_over(page).await;
        }
        take_screenshot(world, page, "done.png").await;
    });
}

/// How many words the long script says, as a reader counts them.
fn long_words() -> usize {
    let script: Value = serde_json::from_str(&long_script()).unwrap();
    let text = script["steps"][1]["say"]["text"].as_str().unwrap();
    text.split_whitespace().count()
}

#[test]
fn prompts_wait_questions_are_answered_turns_are_stopped_and_changes_applied() {
    let project = Project::with_git(&BEFORE);
    let world = &project.world;
    browse(world, Scripts::On, async |page| {
        let id = start(&project, HELD);
        open_sessions(&project, page).await;
        open_session(page, &id).await;
        wait_for_state(page, "Waiting for you").await;

        // What is asked meanwhile waits, can be changed, and can be taken out again.
        write_prompt(page, "one more").await;
        wait_for_xpath(page, "//li[@data-queued][1]").await;
        write_prompt(page, HOSTILE).await;
        wait_for_xpath(page, "//li[@data-queued][2]").await;
        nothing_was_taken_over(page).await;
        let text = wait_for_xpath(page, "//li[@data-queued][1]//textarea").await;
        text.clear().await.unwrap();
        text.send_keys("another").await.unwrap();
        click(page, "//li[@data-queued][1]//button[@value='edit']").await;
        wait_for_xpath(page, "//li[@data-queued][1]//textarea[text()='another']").await;
        click(page, "//li[@data-queued][2]//button[@value='unqueue']").await;
        wait_for_xpath(page, "//ol[@class='queue'][count(li)=1]").await;
        take_screenshot(world, page, "queue.png").await;

        // The next one begins by itself when this one is over.
        click(page, "//button[@data-answer-button='allow']").await;
        wait_for_turn(page, 1, "Done").await;
        wait_for_xpath(page, "//article[2]//p[@class='turn-text' and text()='another']").await;
        wait_for_turn(page, 2, "Done").await;

        // A turn that was begun elsewhere is shown as well, and stopped here.
        let script = project.script("held", HELD);
        project
            .run(&["session", "send", &id, "--detach", "--script", &script, "hold"])
            .expect(0);
        wait_for_xpath(
            page,
            "//article[3]//*[@data-items]/p[contains(., 'may I change it?')]",
        )
        .await;
        wait_for_state(page, "Waiting for you").await;
        click(page, "//button[@id='stop']").await;
        wait_for_turn(page, 3, "Stopped").await;
        wait_for_state(page, "Stopped").await;
        assert_eq!(left_behind(world), NOBODY);

        // What was changed stands beside, and what somebody unfolds stays unfolded.
        let file = "//details[@data-key='file a.txt']";
        click(page, &format!("{file}/summary")).await;
        click(page, "//details[@data-key='manage']/summary").await;
        let rename = format!("/v1/sessions/{id}/rename");
        let title = json!({ "title": HOSTILE }).to_string();
        let renamed = send(&world.home(), "POST", &rename, &title).unwrap();
        assert_eq!(renamed.status, 200, "{renamed:?}");
        wait_for_xpath(page, "//h1[contains(., '<b id=')]").await;
        wait_for_xpath(page, &format!("{file}[@open]//td[text()='2']")).await;
        wait_for_xpath(page, "//details[@data-key='manage' and @open]").await;
        nothing_was_taken_over(page).await;
        take_screenshot(world, page, "changes.png").await;

        assert_eq!(
            fs::read_to_string(project.root.join("a.txt")).unwrap(),
            "one\ntwo\n"
        );
        click(page, "//button[@id='apply']").await;
        wait_for_xpath(page, "//*[@id='plan-state']//span[text()='Applied']").await;
        assert_eq!(
            fs::read_to_string(project.root.join("a.txt")).unwrap(),
            "one\n2\n"
        );
        nothing_was_taken_over(page).await;
    });
}

#[test]
fn after_a_crash_the_page_shows_what_came_and_that_it_was_interrupted() {
    let project = Project::with_git(&BEFORE);
    let world = &project.world;
    browse(world, Scripts::On, async |page| {
        let id = start(&project, &long_script());
        open_sessions(&project, page).await;
        open_session(page, &id).await;
        wait_for_text(page, "word40").await;
        let address = page.current_url().await.unwrap();
        let before = said_on_the_page(page).await;
        world.kill();
        wait_for_xpath(page, "//*[@id='stream-state' and contains(., 'Disconnected')]").await;

        // It comes back at the same place, and the page goes on by itself.
        let mut up = project.command(&["up", "--json"]);
        let place = format!("127.0.0.1:{}", address.port().unwrap());
        finish({
            up.env("TIDELOCK_LISTEN", place);
            up
        })
        .expect(0);
        wait_for_turn(page, 1, "Interrupted").await;
        wait_for_state(page, "Interrupted").await;
        let after = said_on_the_page(page).await;
        assert_eq!(after, said_in_the_log(&project, &id));
        assert_eq!(after.len(), before.len());
        for (after, before) in after.iter().zip(&before) {
            assert!(
                after.starts_with(before),
                "{before:?} was seen, and there is {after:?}"
            );
        }
        take_screenshot(world, page, "interrupted.png").await;

        // The session takes the next prompt, and this page follows it.
        write_prompt(page, "go on").await;
        wait_for_turn(page, 2, "Done").await;
        assert_eq!(said_on_the_page(page).await, said_in_the_log(&project, &id));
        assert_eq!(left_behind(world), NOBODY);
    });
}
