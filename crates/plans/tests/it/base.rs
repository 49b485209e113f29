//! What a base holds, and how the next one comes from it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::time::{Duration, SystemTime};

use plans::{Entry, Manifest, RelPath, WhyLeftOut};

use crate::base_support::{
    Site, file, files_of, git, inode, left_out_of, let_the_clock_of_files_move, link, naive_walk, path, texts,
};

fn entries(manifest: &Manifest) -> BTreeMap<RelPath, Entry> {
    manifest
        .iter()
        .map(|(path, entry)| (path.clone(), entry.clone()))
        .collect()
}

#[test]
fn a_base_holds_every_kind_of_entry() {
    let site = Site::new();
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n";
    site.write("plain.txt", "one\n");
    site.write("windows.txt", "one\r\ntwo\r\n");
    site.write("data.bin", pointer);
    site.write("deep/er/script.sh", "#!/bin/sh\n");
    site.write("empty-file", "");
    for (name, mode) in [("plain.txt", 0o644), ("windows.txt", 0o600), ("data.bin", 0o444)] {
        fs::set_permissions(site.at(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::set_permissions(site.at("empty-file"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::set_permissions(site.at("deep/er/script.sh"), fs::Permissions::from_mode(0o4755)).unwrap();
    fs::create_dir_all(site.at("hollow/inner")).unwrap();
    symlink("plain.txt", site.at("to-file")).unwrap();
    symlink("deep", site.at("to-directory")).unwrap();
    symlink("nowhere/at all", site.at("dangling")).unwrap();
    symlink("/etc/passwd", site.at("out")).unwrap();
    let odd = site.workspace().join(OsStr::from_bytes(b"\xff\xfe\n.txt"));
    fs::write(&odd, "odd").unwrap();
    fs::set_permissions(&odd, fs::Permissions::from_mode(0o644)).unwrap();

    let taken = site.take();

    let expected = [
        ("dangling", link(b"nowhere/at all")),
        ("data.bin", file(pointer, 0o444)),
        ("deep", Entry::Directory),
        ("deep/er", Entry::Directory),
        // The permission to run as somebody else is not carried.
        ("deep/er/script.sh", file("#!/bin/sh\n", 0o755)),
        ("empty-file", file("", 0o640)),
        ("hollow", Entry::Directory),
        ("hollow/inner", Entry::Directory),
        ("out", link(b"/etc/passwd")),
        ("plain.txt", file("one\n", 0o644)),
        ("to-directory", link(b"deep")),
        ("to-file", link(b"plain.txt")),
        ("windows.txt", file("one\r\ntwo\r\n", 0o600)),
        ("\\xff\\xfe\\x0a.txt", file("odd", 0o644)),
    ];
    let expected: BTreeMap<RelPath, Entry> = expected.map(|(text, entry)| (path(text), entry)).into();
    assert_eq!(entries(&taken.base.manifest), expected);
    assert_eq!(
        (taken.files_read, taken.left_out, taken.ignored),
        (6, vec![], Default::default())
    );
}

#[test]
fn what_cannot_be_carried_is_told() {
    let site = Site::with_git();
    site.write("kept", "");
    let _listener = UnixListener::bind(site.at("socket")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, site.at("pipe"), rustix::fs::Mode::RUSR).unwrap();
    site.write("names/git~1/x", "");
    site.write(".tidelock/landing", "");
    site.write("deep/.tidelock-passing-1", "");
    // A submodule has a `.git` that is a file.
    site.write("module/.git", "gitdir: ../elsewhere");
    site.write("module/inside", "");
    site.write("vendor/repository/inside", "");
    git(&site.at("vendor/repository"), &["init", "--quiet"]);

    let taken = site.take();

    assert_eq!(files_of(&taken.base.manifest), ["kept"]);
    let expected = [
        ("module", WhyLeftOut::Repository),
        ("names/git~1", WhyLeftOut::Name),
        ("pipe", WhyLeftOut::Special),
        ("socket", WhyLeftOut::Special),
        ("vendor/repository", WhyLeftOut::Repository),
    ];
    assert_eq!(
        left_out_of(&taken),
        expected.map(|(path, why)| (path.to_owned(), why))
    );
    assert_eq!(texts(&taken.ignored.directories), ["module", "vendor/repository"]);
    assert_eq!(taken.base.manifest.get(&path("module")), None);
}

#[test]
fn permissions_and_times_are_those_of_the_workspace() {
    let site = Site::new();
    site.write("d/f", "content");
    let then = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    fs::File::open(site.at("d/f"))
        .unwrap()
        .set_modified(then)
        .unwrap();
    fs::set_permissions(site.at("d"), fs::Permissions::from_mode(0o750)).unwrap();
    fs::File::open(site.at("d")).unwrap().set_modified(then).unwrap();
    let tree = site.take().base.tree;
    for (path, mode) in [("d/f", 0o644), ("d", 0o750)] {
        fs::set_permissions(site.at("d/f"), fs::Permissions::from_mode(0o644)).unwrap();
        let found = fs::metadata(tree.join(path)).unwrap();
        assert_eq!(
            (found.modified().unwrap(), found.mode() & 0o777),
            (then, mode),
            "{path}"
        );
    }
    let above = fs::metadata(site.store()).unwrap();
    assert_eq!(above.mode() & 0o777, 0o700, "nobody else sees an image");
}

#[test]
fn what_has_not_changed_is_neither_read_nor_copied() {
    let site = Site::new();
    for number in 0..50 {
        site.write(&format!("d{}/f{number}", number % 7), format!("{number}"));
    }
    symlink("x", site.at("l")).unwrap();
    let_the_clock_of_files_move(&site);
    let first = site.take();
    assert_eq!(first.files_read, 50);

    let again = site.take();
    assert_eq!((again.files_read, again.base.id), (0, first.base.id));
    assert_eq!(again.base.tree, first.base.tree);

    site.write("d1/f8", "changed");
    site.write("d9/new", "new");
    fs::remove_file(site.at("d0/f0")).unwrap();
    let next = site.take();
    assert_eq!(next.files_read, 2);
    assert_eq!(*next.base.manifest, naive_walk(&site.workspace()));
    let shared = |path: &str| inode(&first.base.tree.join(path)) == inode(&next.base.tree.join(path));
    assert!(shared("d1/f1") && !shared("d1/f8"));
    assert_eq!(
        fs::read(first.base.tree.join("d1/f8")).unwrap(),
        b"8",
        "the old image is as it was"
    );
    assert_eq!(*first.base.manifest, naive_walk(&first.base.tree));
}

#[test]
fn a_change_without_a_trace_in_size_and_time_is_found() {
    let site = Site::new();
    site.write("f", "one");
    let_the_clock_of_files_move(&site);
    let first = site.take();
    let time = fs::metadata(site.at("f")).unwrap().modified().unwrap();
    // The same size, and the time set back. Only the time of the last change of status tells.
    site.write("f", "two");
    fs::File::open(site.at("f")).unwrap().set_modified(time).unwrap();
    let next = site.take();
    assert_eq!(next.base.manifest.get(&path("f")), Some(&file("two", 0o644)));
    assert_ne!(next.base.id, first.base.id);
}

#[test]
fn writes_in_the_same_tick_as_the_scan_are_found() {
    let site = Site::new();
    for round in 0..200 {
        let content = format!("{:03}", round % 10);
        site.write("f", &content);
        let taken = site.take();
        let expected = file(&content, 0o644);
        assert_eq!(
            taken.base.manifest.get(&path("f")),
            Some(&expected),
            "round {round}"
        );
    }
}

#[test]
fn a_touched_file_is_the_same_base_and_its_time_goes_forward_only() {
    let site = Site::new();
    site.write("f", "same");
    site.write("g", "same");
    let first = site.take();
    let times = |at: &std::path::Path| fs::metadata(at).unwrap().modified().unwrap();
    let (later, earlier) = (
        SystemTime::now() + Duration::from_secs(1000),
        SystemTime::UNIX_EPOCH,
    );
    fs::File::open(site.at("f")).unwrap().set_modified(later).unwrap();
    let before = times(&first.base.tree.join("g"));
    fs::File::open(site.at("g"))
        .unwrap()
        .set_modified(earlier)
        .unwrap();
    let next = site.take();
    assert_eq!((next.base.id, next.files_read), (first.base.id, 2));
    assert_eq!(times(&next.base.tree.join("f")), later);
    assert_eq!(times(&next.base.tree.join("g")), before);
}

#[test]
fn a_workspace_that_goes_back_has_its_old_base_with_new_times() {
    let site = Site::new();
    site.write("f", "one");
    site.write("other", "");
    let first = site.take();
    site.write("f", "two");
    let second = site.take();
    assert_ne!(second.base.id, first.base.id);
    site.write("f", "one");
    // What was built from `two` must not look newer than `one`.
    let later = SystemTime::now() + Duration::from_secs(1000);
    fs::File::open(site.at("f")).unwrap().set_modified(later).unwrap();
    let third = site.take();
    assert_eq!(third.base.id, first.base.id);
    assert_eq!(
        fs::metadata(third.base.tree.join("f"))
            .unwrap()
            .modified()
            .unwrap(),
        later
    );
}

#[test]
fn names_and_kinds_may_change_between_two_takes() {
    let site = Site::new();
    site.write("Readme", "r");
    site.write("thing/inside", "i");
    let_the_clock_of_files_move(&site);
    let first = site.take();
    type Step = fn(&Site);
    let steps: [(Step, &[&str]); 6] = [
        (
            |site| fs::rename(site.at("Readme"), site.at("README")).unwrap(),
            &["README", "thing/inside"],
        ),
        (
            |site| {
                fs::remove_dir_all(site.at("thing")).unwrap();
                site.write("thing", "a file now");
            },
            &["README", "thing"],
        ),
        (
            |site| {
                fs::remove_file(site.at("thing")).unwrap();
                symlink("README", site.at("thing")).unwrap();
            },
            &["README", "thing"],
        ),
        (
            |site| {
                fs::remove_file(site.at("thing")).unwrap();
                site.write("thing/inside", "i");
            },
            &["README", "thing/inside"],
        ),
        (
            |site| fs::rename(site.at("README"), site.at("Readme")).unwrap(),
            &["Readme", "thing/inside"],
        ),
        (
            |site| fs::set_permissions(site.at("Readme"), fs::Permissions::from_mode(0o755)).unwrap(),
            &["Readme", "thing/inside"],
        ),
    ];
    let mut ids = Vec::new();
    for (number, (step, expected)) in steps.iter().enumerate() {
        step(&site);
        let taken = site.take();
        assert_eq!(files_of(&taken.base.manifest), *expected, "step {number}");
        assert_eq!(
            *taken.base.manifest,
            naive_walk(&site.workspace()),
            "step {number}"
        );
        ids.push(taken.base.id);
    }
    assert_eq!(ids[4], first.base.id, "everything was as at first");
    assert_ne!(ids[5], first.base.id, "permissions are part of it");
}

#[test]
fn a_large_file_is_streamed_and_stays_sparse() {
    let site = Site::new();
    let size = 150 * 1024 * 1024;
    let large = fs::File::create(site.at("large")).unwrap();
    large.set_len(size).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&large, b"in the middle", 77 * 1024 * 1024 + 5).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&large, b"end", size - 3).unwrap();
    let taken = site.try_take().unwrap();
    let copy = fs::metadata(taken.base.tree.join("large")).unwrap();
    assert_eq!(copy.len(), size);
    assert!(copy.blocks() * 512 < 4 * 1024 * 1024, "holes stay holes");
    let mut hasher = eventlog::BlobHasher::default();
    let mut opened = fs::File::open(taken.base.tree.join("large")).unwrap();
    let mut buffer = vec![0; 1024 * 1024];
    loop {
        match std::io::Read::read(&mut opened, &mut buffer).unwrap() {
            0 => break,
            read => hasher.update(&buffer[..read]),
        };
    }
    let content = taken
        .base
        .manifest
        .get(&path("large"))
        .and_then(Entry::content)
        .unwrap();
    assert_eq!(content, hasher.finish());
}

#[test]
fn twenty_thousand_small_files() {
    let site = Site::new();
    for directory in 0..100 {
        fs::create_dir_all(site.at(&format!("d{}/e{directory}", directory % 10))).unwrap();
        for number in 0..200 {
            let name = format!("d{}/e{directory}/f{number}", directory % 10);
            fs::write(site.at(&name), format!("{}", number % 50)).unwrap();
        }
    }
    let_the_clock_of_files_move(&site);
    let first = site.try_take().unwrap();
    assert_eq!((first.files_read, first.base.manifest.len()), (20_000, 20_110));
    assert_eq!(site.try_take().unwrap().files_read, 0);
    site.write("d3/e3/f7", "changed");
    let next = site.take();
    assert_eq!(next.files_read, 1);
    assert_eq!(first.base.manifest.changes_to(&next.base.manifest).len(), 1);
}

#[test]
fn a_store_inside_the_workspace_is_no_part_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let bases = plans::Bases::open(directory.path().join("data/plans/bases"), u64::MAX).unwrap();
    fs::write(directory.path().join("f"), "").unwrap();
    let cache = directory.path().join("data/plans/cache");
    let scope = kernel::CancellationToken::new().scope();
    for _ in 0..2 {
        let taken = bases.take(directory.path(), &cache, &scope).unwrap();
        assert_eq!(files_of(&taken.base.manifest), ["f"]);
    }
}
