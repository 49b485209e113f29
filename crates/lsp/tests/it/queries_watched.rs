//! Which changes of files a server wants to hear of.

use std::path::Path;

use lsp::{
    FileEvent::{self, Changed, Created, Deleted},
    WatchError, WatchedFiles,
};
use serde_json::{Value, json};

fn watching(watchers: Value) -> WatchedFiles {
    let mut watched = WatchedFiles::new("/project".into());
    watched.register("1", &json!({ "watchers": watchers })).unwrap();
    watched
}

#[test]
fn patterns_mean_what_the_protocol_says() {
    let cases = [
        ("**/*.rs", "/project/a.rs", true),
        ("**/*.rs", "/project/src/deep/a.rs", true),
        ("**/*.rs", "/elsewhere/a.rs", true),
        ("**/*.rs", "/project/a.rss", false),
        ("*.rs", "/project/a.rs", true),
        ("*.rs", "/project/src/a.rs", false),
        ("src/*/a.rs", "/project/src/x/a.rs", true),
        ("src/*/a.rs", "/project/src/x/y/a.rs", false),
        ("src/**/a.rs", "/project/src/a.rs", true),
        ("src/**/a.rs", "/project/src/x/y/a.rs", true),
        ("**/{Cargo.toml,*.{rs,ron}}", "/project/x/Cargo.toml", true),
        ("**/{Cargo.toml,*.{rs,ron}}", "/project/x/a.ron", true),
        ("**/{Cargo.toml,*.{rs,ron}}", "/project/x/a.toml", false),
        ("a?.rs", "/project/ab.rs", true),
        ("a?.rs", "/project/a/.rs", false),
        ("[0-9].rs", "/project/7.rs", true),
        ("[!0-9].rs", "/project/7.rs", false),
        ("[!0-9].rs", "/project/x.rs", true),
        ("/project/src/**", "/project/src/a/b", true),
        ("/project/src/**", "/project/other", false),
        ("**", "/project/any/thing", true),
        ("**/.env", "/project/.env", true),
    ];
    for (pattern, path, expected) in cases {
        let watched = watching(json!([{ "globPattern": pattern }]));
        assert_eq!(
            watched.matches(Path::new(path), Changed),
            expected,
            "{pattern} {path}"
        );
    }
}

#[test]
fn relative_patterns_have_a_base() {
    let bases = [
        json!("file:///elsewhere"),
        json!({ "uri": "file:///elsewhere", "name": "folder" }),
    ];
    for base in bases {
        let watched = watching(json!([{ "globPattern": { "baseUri": base, "pattern": "*.json" } }]));
        for (path, expected) in [
            ("/elsewhere/a.json", true),
            ("/elsewhere/b/a.json", false),
            ("/project/a.json", false),
        ] {
            assert_eq!(watched.matches(Path::new(path), Created), expected, "{path}");
        }
        assert_eq!(Vec::from_iter(watched.bases_outside()), [Path::new("/elsewhere")]);
    }
    let inside = watching(json!([{ "globPattern": { "baseUri": "file:///project/x", "pattern": "*" } }]));
    assert!(inside.bases_outside().is_empty());
}

#[test]
fn only_the_events_that_were_asked_for() {
    let cases: [(Option<u64>, &[FileEvent]); 6] = [
        (None, &[Created, Changed, Deleted]),
        (Some(7), &[Created, Changed, Deleted]),
        (Some(1), &[Created]),
        (Some(2), &[Changed]),
        (Some(4), &[Deleted]),
        (Some(5), &[Created, Deleted]),
    ];
    for (kind, expected) in cases {
        let watched = watching(json!([{ "globPattern": "*", "kind": kind }]));
        let heard: Vec<FileEvent> = [Created, Changed, Deleted]
            .into_iter()
            .filter(|event| watched.matches(Path::new("/project/a"), *event))
            .collect();
        assert_eq!(heard, expected, "{kind:?}");
    }
}

#[test]
fn registrations_come_and_go_by_their_id() {
    let mut watched = WatchedFiles::new("/project".into());
    let pattern = |pattern: &str| json!({ "watchers": [{ "globPattern": pattern }] });
    let heard = |watched: &WatchedFiles| {
        ["a", "b", "c"]
            .into_iter()
            .filter(|name| watched.matches(&Path::new("/project").join(name), Changed))
            .collect::<Vec<_>>()
    };
    assert!(watched.is_empty());
    watched.register("1", &pattern("a")).unwrap();
    watched.register("2", &pattern("b")).unwrap();
    assert_eq!(heard(&watched), ["a", "b"]);
    watched.register("1", &pattern("c")).unwrap();
    assert_eq!(heard(&watched), ["b", "c"]);
    watched.unregister("unknown");
    watched.unregister("2");
    assert_eq!(heard(&watched), ["c"]);
    // What cannot be taken changes nothing.
    let bad = [
        pattern("a[").to_owned(),
        json!({ "watchers": [{ "globPattern": "a" }, { "globPattern": { "pattern": "b" } }] }),
        json!({ "watchers": [{ "globPattern": { "baseUri": "http://a/b", "pattern": "b" } }] }),
        json!({}),
        pattern(&"x".repeat(5000)),
    ];
    for options in bad {
        assert!(watched.register("1", &options).is_err(), "{options}");
        assert_eq!(heard(&watched), ["c"]);
    }
}

#[test]
fn the_number_of_patterns_is_bounded() {
    let mut watched = WatchedFiles::new("/project".into());
    let patterns = |count: usize| {
        let watchers: Vec<Value> = (0..count)
            .map(|number| json!({ "globPattern": format!("f{number}") }))
            .collect();
        json!({ "watchers": watchers })
    };
    watched.register("1", &patterns(4000)).unwrap();
    let refused = watched.register("2", &patterns(97));
    assert_eq!(refused, Err(WatchError::TooMany { limit: 4096 }));
    watched.register("2", &patterns(96)).unwrap();
    // Its own old patterns do not count against a registration that is replaced.
    watched.register("1", &patterns(4000)).unwrap();
}
