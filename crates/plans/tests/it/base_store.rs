//! The store of images: who gets which, what survives, what goes.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::thread;

use kernel::CancellationToken;
use plans::{Base, BaseError, Bases, Change, CollectMode, Entry, Freed, ManifestId, RelPath};

use crate::base_support::{Site, file, inode, let_the_clock_of_files_move, link, naive_walk, path};

/// Takes a base of the workspace with this content in a file of 64 KiB, beside one that all have in common.
fn base_with(site: &Site, content: u8) -> Base {
    site.write("own", vec![content; 64 * 1024]);
    site.write("common", vec![0xC0; 64 * 1024]);
    site.take().base
}

fn ids(store: &Path) -> HashSet<String> {
    let names = fs::read_dir(store).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.len() == 64).collect()
}

#[test]
fn takes_at_the_same_time_all_work() {
    let site = Site::new();
    for number in 0..300 {
        site.write(&format!("d{}/f{number}", number % 9), format!("{number}"));
    }
    for round in 0..3 {
        site.write("changing", format!("{round}"));
        let taken: Vec<_> = thread::scope(|threads| {
            let taking: Vec<_> = (0..6).map(|_| threads.spawn(|| site.take())).collect();
            taking.into_iter().map(|taking| taking.join().unwrap()).collect()
        });
        let expected = naive_walk(&site.workspace());
        for taken in &taken {
            assert_eq!(*taken.base.manifest, expected);
        }
        assert!(site.leftovers().is_empty());
    }
    assert_eq!(ids(&site.store()).len(), 3);
}

#[test]
fn an_image_is_found_again_by_the_next_daemon() {
    let site = Site::new();
    site.write("f", "content");
    let id = site.take().base.id;
    let nobody: ManifestId = serde_json::from_str(&format!("\"{}\"", "0".repeat(64))).unwrap();
    for directory in ["making-1234/tree", "leaving-1234/tree"] {
        fs::create_dir_all(site.store().join(directory)).unwrap();
    }
    let next = Bases::open(site.store(), u64::MAX).unwrap();
    assert!(site.leftovers().is_empty(), "what was half done is gone");
    assert_eq!(
        next.find(id).unwrap().unwrap().tree,
        site.store().join(id.to_string()).join("tree")
    );
    assert!(next.find(nobody).unwrap().is_none());
}

/// What may become of an image when the power goes while it is being written.
#[test]
fn an_image_that_is_not_whole_is_never_used() {
    type Damage = fn(&Path);
    const SETTLED: bool = true;
    let cases: &[(&str, Damage, bool, bool)] = &[
        ("sound", |_| {}, !SETTLED, true),
        ("sound and settled", |_| {}, SETTLED, true),
        (
            "no information",
            |image| fs::remove_file(image.join("info")).unwrap(),
            !SETTLED,
            true,
        ),
        (
            "empty information",
            |image| fs::write(image.join("info"), "").unwrap(),
            SETTLED,
            true,
        ),
        (
            "no manifest",
            |image| fs::remove_file(image.join("manifest")).unwrap(),
            SETTLED,
            false,
        ),
        (
            "empty manifest",
            |image| fs::write(image.join("manifest"), "").unwrap(),
            SETTLED,
            false,
        ),
        (
            "empty file",
            |image| fs::write(image.join("tree/d/f"), "").unwrap(),
            !SETTLED,
            false,
        ),
        (
            "zeros",
            |image| fs::write(image.join("tree/d/f"), [0; 7]).unwrap(),
            !SETTLED,
            false,
        ),
        (
            "missing file",
            |image| fs::remove_file(image.join("tree/d/f")).unwrap(),
            !SETTLED,
            false,
        ),
        (
            "missing directory",
            |image| fs::remove_dir_all(image.join("tree/d")).unwrap(),
            !SETTLED,
            false,
        ),
        (
            "missing tree",
            |image| fs::remove_dir_all(image.join("tree")).unwrap(),
            !SETTLED,
            false,
        ),
        (
            "missing link",
            |image| fs::remove_file(image.join("tree/l")).unwrap(),
            !SETTLED,
            false,
        ),
    ];
    for (name, damage, settled, expected) in cases {
        let site = Site::new();
        site.write("d/f", "content");
        symlink("d/f", site.at("l")).unwrap();
        let id = site.take().base.id;
        let image = site.store().join(id.to_string());
        let base = site.bases.find(id).unwrap().unwrap();
        if *settled {
            site.bases.settle(&base).unwrap();
        }
        let info = fs::read_to_string(image.join("info")).unwrap();
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        assert!(
            info.contains(boot.trim()),
            "the next line makes it one of another boot"
        );
        fs::write(image.join("info"), info.replace(boot.trim(), "another-boot")).unwrap();
        damage(&image);

        let next = Bases::open(site.store(), u64::MAX).unwrap();
        assert_eq!(next.find(id).unwrap().is_some(), *expected, "{name}");
        assert_eq!(image.exists(), *expected, "{name}: what is not whole is removed");
        // A take does not stumble over it either, whatever the cache says.
        let scope = CancellationToken::new().scope();
        let taken = next.take(&site.workspace(), &site.cache(), &scope).unwrap();
        assert_eq!(
            (taken.base.id, naive_walk(&taken.base.tree)),
            (id, naive_walk(&site.workspace())),
            "{name}"
        );
        // Once found sound it is not read through again in this boot.
        assert!(
            fs::read_to_string(image.join("info"))
                .unwrap()
                .contains(boot.trim())
                || *settled
        );
    }
}

#[test]
fn a_take_without_the_last_image_begins_anew() {
    let site = Site::new();
    site.write("f", "content");
    let_the_clock_of_files_move(&site);
    let first = site.take();
    fs::remove_dir_all(first.base.tree.parent().unwrap()).unwrap();
    let id = first.base.id;
    drop(first);
    let again = site.take();
    assert_eq!((again.base.id, again.files_read), (id, 1));
}

#[test]
fn collection_spares_what_is_held_kept_or_within_the_quota() {
    let site = Site::new();
    let [first, second, third] = [1, 2, 3].map(|content| {
        let_the_clock_of_files_move(&site);
        base_with(&site, content)
    });
    let [a, b, c] = [first.id, second.id, third.id];
    let keep = |ids: &[ManifestId]| ids.iter().copied().collect::<HashSet<_>>();
    let none = keep(&[]);

    // Within the quota nothing goes.
    let freed = site.bases.collect(&none, CollectMode::Remove).unwrap();
    assert_eq!((&freed.images[..], freed.bytes), (&[][..], 0));
    assert!(site.bases.bytes_at_most().unwrap() >= 6 * 64 * 1024);

    let strict = Bases::open(site.store(), 0).unwrap();
    let held = strict.find(b).unwrap().unwrap();
    let planned = strict.collect(&keep(&[c]), CollectMode::DryRun).unwrap();
    assert_eq!(planned.images, [a]);
    assert!(
        (64 * 1024..128 * 1024).contains(&planned.bytes),
        "what others share is not freed: {planned:?}"
    );
    assert_eq!(ids(&site.store()).len(), 3, "a dry run removes nothing");
    assert_eq!(strict.collect(&keep(&[c]), CollectMode::Remove).unwrap(), planned);
    assert_eq!(ids(&site.store()), [b, c].map(|id| id.to_string()).into());
    assert_eq!(
        naive_walk(&third.tree),
        *third.manifest,
        "the shared file is still there"
    );

    // What was used least recently goes first: by now that is the third.
    let_the_clock_of_files_move(&site);
    drop(strict.find(b).unwrap());
    drop(held);
    let quota = 200 * 1024;
    let limited = Bases::open(site.store(), quota).unwrap();
    let freed = limited.collect(&none, CollectMode::Remove).unwrap();
    assert_eq!(freed.images, [c]);
    assert!(freed.kept_bytes <= quota);

    // The last one takes the shared file with it.
    let freed = strict.collect(&none, CollectMode::Remove).unwrap();
    assert_eq!((&freed.images[..], freed.kept_bytes), (&[b][..], 0));
    assert!(freed.bytes >= 128 * 1024);
    assert_eq!(
        strict.collect(&none, CollectMode::Remove).unwrap(),
        Freed::default()
    );
    assert!(site.leftovers().is_empty());
}

#[test]
fn a_base_is_derived_from_another_one() {
    let site = Site::new();
    for (path, content) in [
        ("keep/a", "a"),
        ("keep/b", "b"),
        ("gone/c", "c"),
        ("moved", "m"),
        ("kind", "file"),
    ] {
        site.write(path, content);
    }
    let from = site.take().base;
    let source = tempfile::tempdir().unwrap();
    let change = |path: &RelPath, after: Option<Entry>, renamed: Option<&str>| Change {
        path: path.clone(),
        before: None,
        after,
        from: renamed.map(|from| from.parse().unwrap()),
    };
    let changes = [
        change(&path("gone"), None, None),
        change(&path("gone/c"), None, None),
        change(&path("keep/a"), Some(file("changed", 0o755)), None),
        change(&path("kind"), Some(Entry::Directory), None),
        change(&path("kind/inside"), Some(link(b"../keep/a")), None),
        change(&path("new/deep/moved"), Some(file("m", 0o644)), Some("moved")),
    ];
    for (path, content, mode) in [("keep/a", "changed", 0o755), ("new/deep/moved", "m", 0o644)] {
        let at = source.path().join(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(&at, content).unwrap();
        fs::set_permissions(&at, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    }
    let read =
        |path: &RelPath| -> io::Result<fs::File> { fs::File::open(source.path().join(path.as_path())) };
    let scope = CancellationToken::new().scope();
    let derived = site.bases.derive(&from, &changes, &read, &scope).unwrap();

    let expected = from.manifest.with(&changes);
    assert_eq!(
        (&*derived.manifest, naive_walk(&derived.tree)),
        (&expected, expected.clone())
    );
    assert_eq!(
        inode(&derived.tree.join("keep/b")),
        inode(&from.tree.join("keep/b"))
    );
    assert_eq!(
        naive_walk(&from.tree),
        *from.manifest,
        "the other base is as it was"
    );
    let again = site.bases.derive(&from, &changes, &read, &scope).unwrap();
    assert_eq!(again.tree, derived.tree);

    fs::write(source.path().join("keep/a"), "moved on").unwrap();
    let other = [change(&path("keep/a"), Some(file("changed again", 0o755)), None)];
    let refused = site.bases.derive(&from, &other, &read, &scope);
    assert!(matches!(refused, Err(BaseError::Differs { path: at }) if at == path("keep/a")));
    assert!(site.leftovers().is_empty());
}
