//! What is in an index, and what is not.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::{Duration, SystemTime};

use context::{FILE_LIMIT_BYTES, Key, SymbolKind};

use super::{Site, check, known, may_hold, path, up_to_date};

#[tokio::test]
async fn text_that_git_does_not_ignore_is_in_it_and_nothing_else() {
    let site = Site::new();
    site.write("src/lib.rs", "pub fn parse_config() { helper(); }\n");
    site.write("notes.txt", "Über NEEDLE in a haystack\n");
    site.write("empty", "");
    site.write("short", "ab");
    site.write("lossy", b"before \xff after\n");
    site.write("binary", b"needle\0");
    let limit = usize::try_from(FILE_LIMIT_BYTES).unwrap();
    site.write("huge", "needle ".repeat(limit / 7 + 1));
    site.write("largest", "x".repeat(limit));
    site.write(".gitignore", "*.log\n");
    site.write("needle.log", "needle");
    site.write(".hidden/needle", "needle");
    site.write("closed/needle", "needle");
    fs::write(
        site.root().join(std::ffi::OsStr::from_bytes(b"\xff.txt")),
        "needle",
    )
    .unwrap();
    symlink(site.root(), site.root().join("circle")).unwrap();
    symlink("notes.txt", site.root().join("link")).unwrap();
    symlink("loop", site.root().join("loop")).unwrap();
    // Whoever is root can read it all the same, and so may the index.
    fs::set_permissions(site.root().join("closed"), fs::Permissions::from_mode(0o000)).unwrap();

    let index = site.open();
    let snapshot = up_to_date(&index).await;
    check(
        &snapshot,
        &site.root(),
        &["needle", "NEEDLE in", "parse_config", "Über", "after"],
    );
    let mut found = may_hold(&snapshot, "needle");
    found.remove("closed/needle");
    assert_eq!(
        found.into_iter().collect::<Vec<_>>(),
        [".hidden/needle", "notes.txt"]
    );
    let file = snapshot.file(&path("notes.txt")).unwrap();
    assert_eq!(snapshot.bytes(file), 27);
    for missing in ["binary", "huge", "needle.log", "link", "none"] {
        assert_eq!(snapshot.file(&path(missing)), None, "{missing}");
    }

    let info = index.info();
    let bytes: u64 = snapshot.files().map(|file| snapshot.bytes(file)).sum();
    assert_eq!(
        (info.files, info.source_bytes, info.root),
        (known(&snapshot).len(), bytes, site.root())
    );
    fs::set_permissions(site.root().join("closed"), fs::Permissions::from_mode(0o755)).unwrap();
    check(&up_to_date(&index).await, &site.root(), &["needle"]);
    site.close(index).await;
}

#[tokio::test]
async fn names_are_found_by_what_they_are_and_by_their_words() {
    let site = Site::new();
    site.write("a.rs", "pub struct ParseConfig;\nfn run() { load_file(); }\n");
    site.write("b.rs", "pub fn load_file() -> ParseConfig { todo!() }\n");
    let index = site.open();
    for _ in 0..2 {
        let snapshot = up_to_date(&index).await;
        let of = |key| {
            let files = snapshot.with(key).unwrap();
            let paths: Vec<String> = files
                .iter()
                .map(|file| snapshot.path(*file).unwrap().to_string())
                .collect();
            paths.join(" ")
        };
        for (key, expected) in [
            (Key::defined("parseconfig"), "a.rs"),
            (Key::defined("load_file"), "b.rs"),
            (Key::mentioned("load_file"), "a.rs"),
            (Key::mentioned("ParseConfig"), "b.rs"),
            (Key::part("config"), "a.rs"),
            (Key::part("load"), "b.rs"),
            (Key::defined("none"), ""),
        ] {
            assert_eq!(of(key), expected, "{key:?}");
        }
        let outline = snapshot
            .outline(snapshot.file(&path("a.rs")).unwrap())
            .unwrap()
            .unwrap();
        let definitions: Vec<_> = outline
            .definitions
            .iter()
            .map(|definition| {
                (
                    definition.name.as_str(),
                    definition.kind,
                    definition.lines.first(),
                )
            })
            .collect();
        assert_eq!(
            definitions,
            [
                ("ParseConfig", SymbolKind::Type, 1),
                ("run", SymbolKind::Function, 2)
            ]
        );
        // Now the same from memory instead of from a segment.
        site.write("c.txt", "x");
        for name in ["a.rs", "b.rs"] {
            let text = fs::read_to_string(site.root().join(name)).unwrap();
            site.write(name, format!("{text}\n"));
        }
    }
    site.close(index).await;
}

#[tokio::test]
async fn what_changed_since_a_time_is_known() {
    let site = Site::new();
    let old = SystemTime::now() - Duration::from_secs(3600);
    for name in ["old.rs", "changed.rs", "removed.rs"] {
        site.write(name, "fn x() {}");
    }
    let index = site.open();
    assert_eq!(up_to_date(&index).await.changed_since(None), []);
    // The times of files are coarse: what happened long before is left out, not what happened a moment ago.
    let everything = up_to_date(&index).await.changed_since(Some(old));
    assert_eq!(
        everything,
        [path("changed.rs"), path("old.rs"), path("removed.rs")]
    );
    let later = SystemTime::now() + Duration::from_secs(3600);
    assert_eq!(up_to_date(&index).await.changed_since(Some(later)), []);

    site.write("changed.rs", "fn y() {}");
    fs::remove_file(site.root().join("removed.rs")).unwrap();
    let snapshot = up_to_date(&index).await;
    let since = snapshot.changed_since(Some(old));
    assert_eq!(since, [path("changed.rs"), path("old.rs"), path("removed.rs")]);
    assert_eq!(snapshot.changed_since(None), []);
    assert_eq!(snapshot.changed_since(Some(later)), []);
    site.close(index).await;
}

#[tokio::test]
async fn what_does_not_fit_is_said_to_be_beside_it() {
    let mut site = Site::new();
    site.limit_bytes = 0;
    for number in 0..100 {
        site.write(&format!("{number:02}.txt"), format!("needle {number}"));
    }
    let index = site.open();
    let snapshot = up_to_date(&index).await;
    assert_eq!((snapshot.len(), snapshot.changed_since(None).len()), (0, 100));
    fs::remove_file(site.root().join("07.txt")).unwrap();
    site.write("08.txt", "other");
    up_to_date(&index).await;
    site.close(index).await;

    site.limit_bytes = 1 << 30;
    let index = site.open();
    check(&up_to_date(&index).await, &site.root(), &["needle", "other"]);
    site.close(index).await;
}
