//! How a daemon is set up, over HTTP and on the page.

use kernel::SystemClock;
use protocol::{SettingList, SettingSource};
use serde_json::json;

use crate::page::Browser;
use crate::running::Running;

#[tokio::test]
async fn every_setting_is_told_with_its_source_and_without_secrets() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config.toml");
    let text = "[agents.mine]\ncommand = [\"<b>\\u0007\"]\nenvironment = { KEY = \"very-secret\" }\n";
    std::fs::write(&file, text).unwrap();
    let running = Running::start_with(SystemClock::shared(), |options| {
        options.configuration = Some(file.clone());
        let variables = [
            ("OPENAI_API_KEY", "very-secret"),
            ("OPENAI_BASE_URL", "http://me:very-secret@models/v1"),
        ];
        options
            .languages
            .environment
            .extend(variables.map(|(name, value)| (name.into(), value.into())));
    })
    .await;
    let answer = running.unix().get("/v1/config").send().await;
    let list: SettingList = answer.json();
    assert_eq!(list.file.as_deref(), file.to_str());
    let found = |key: &str| {
        let setting = list.settings.iter().find(|setting| setting.key == key).unwrap();
        (setting.value.clone(), setting.source.clone())
    };
    let by = |variable: &str| SettingSource::Environment {
        variable: variable.to_owned(),
    };
    for (key, value, source) in [
        ("model.key", json!("(not shown)"), by("OPENAI_API_KEY")),
        (
            "model.base_url",
            json!("http://(not shown)@models/v1"),
            by("OPENAI_BASE_URL"),
        ),
        (
            "agents.mine.command",
            json!(["<b>\u{7}"]),
            SettingSource::File { line: 2 },
        ),
        ("sessions.max_turns", json!(4096), SettingSource::Default),
    ] {
        assert_eq!(found(key), (value, source), "{key}");
    }
    let refused = running
        .unix()
        .get("/v1/config")
        .without("authorization")
        .send()
        .await;
    assert_eq!(refused.status, 401);

    let browser = Browser::sign_in(&running).await;
    let page = browser.get("/configuration").await;
    assert_eq!(page.status, 200);
    let page = page.body;
    for expected in ["sessions.max_turns", "line 2", "OPENAI_BASE_URL", "&lt;b&gt;"] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    for (told, what) in [(&page, "the page"), (&answer.body, "the answer")] {
        assert!(!told.contains("very-secret"), "{what}");
    }
}
