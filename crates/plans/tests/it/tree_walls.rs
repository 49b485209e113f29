//! Nothing outside of a tree can be reached through it.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use plans::{Entry, LinkTarget, RelPath, Tree, TreeError};
use tempfile::TempDir;

use crate::landing_kit::path;

/// A tree beside a directory that must not change, with symlinks of every kind into that directory.
fn beside() -> (TempDir, Tree) {
    let directory = TempDir::with_prefix("tidelock-tree-").unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir_all(at("tree/real/deep")).unwrap();
    fs::create_dir_all(at("outside/deep")).unwrap();
    for name in ["outside/file", "outside/deep/file", "tree/real/file"] {
        fs::write(at(name), "as it was\n").unwrap();
    }
    let outside = at("outside");
    for (name, target) in [
        ("tree/absolute", outside.as_path()),
        ("tree/upwards", Path::new("../outside")),
        ("tree/real/upwards", Path::new("../../outside")),
        ("tree/inside", Path::new("real")),
        ("tree/itself", Path::new("itself")),
        ("tree/process", Path::new("/proc/self/root")),
        ("tree/to-file", Path::new("../outside/file")),
    ] {
        symlink(target, at(name)).unwrap();
    }
    let tree = Tree::open(&at("tree")).unwrap();
    (directory, tree)
}

/// Everything outside, with contents, permissions and numbers of links.
fn outside(directory: &TempDir) -> Vec<(String, Vec<u8>, u32, u64)> {
    let mut found = Vec::new();
    for name in ["outside", "outside/deep"] {
        for item in fs::read_dir(directory.path().join(name)).unwrap() {
            let item = item.unwrap();
            let metadata = item.metadata().unwrap();
            let content = fs::read(item.path()).unwrap_or_default();
            found.push((
                item.path().display().to_string(),
                content,
                metadata.mode(),
                metadata.nlink(),
            ));
        }
    }
    found.sort();
    found
}

/// Everything that can be done to a path; what came of it, by name.
fn everything(tree: &Tree, at: &RelPath) -> Vec<(&'static str, Result<(), TreeError>)> {
    let own = path("own");
    tree.write(&own, &b"own\n"[..], 0o600).unwrap();
    vec![
        ("open_file", tree.open_file(at).map(drop)),
        ("read", tree.read(at, 100).map(drop)),
        ("link_target", tree.link_target(at).map(drop)),
        ("list", tree.list(Some(at)).map(drop)),
        ("below", tree.below(at).map(drop)),
        ("make_directory", tree.make_directory(at)),
        ("make_directories", tree.make_directories(at)),
        ("write", tree.write(at, &b"written\n"[..], 0o777).map(drop)),
        ("symlink", tree.symlink(at, &LinkTarget(b"x".as_slice().into()))),
        ("set_mode", tree.set_mode(at, 0o777)),
        ("exchange", tree.exchange(&own, at)),
        ("rename in", tree.rename_noreplace(&own, at)),
        ("rename out", tree.rename_noreplace(at, &path("own-2"))),
        ("sync_directory", tree.sync_directory(Some(at))),
        ("remove_directory", tree.remove_directory(at)),
        ("remove", tree.remove(at)),
        ("remove_all", tree.remove_all(at)),
    ]
}

#[test]
fn no_symlink_on_the_way_is_followed() {
    for at in [
        "absolute/file",
        "absolute/new",
        "absolute/deep/file",
        "upwards/file",
        "real/upwards/file",
        "real/upwards/deep/file",
        "inside/file",
        "process/etc/passwd",
        "itself/file",
    ] {
        let (directory, tree) = beside();
        let before = outside(&directory);
        let at = path(at);
        assert_eq!(tree.entry(&at).unwrap(), None, "{at}");
        assert_eq!(tree.stat(&at).unwrap(), None, "{at}");
        for (what, done) in everything(&tree, &at) {
            assert!(
                matches!(done, Err(TreeError::LeadsOut { .. })),
                "{what} of {at}: {done:?}"
            );
        }
        assert_eq!(outside(&directory), before, "{at}");
        assert_eq!(tree.read(&path("real/file"), 100).unwrap(), b"as it was\n");
    }
}

#[test]
fn a_symlink_at_the_end_is_itself_and_never_what_it_points_to() {
    for at in ["to-file", "absolute", "upwards", "real/upwards"] {
        let (directory, tree) = beside();
        let before = outside(&directory);
        let at = path(at);
        assert!(matches!(tree.entry(&at).unwrap(), Some(Entry::Symlink { .. })));
        for (what, done) in everything(&tree, &at) {
            let refused = matches!(
                done,
                Err(TreeError::NotAFile { .. }
                    | TreeError::LeadsOut { .. }
                    | TreeError::NotADirectory { .. }
                    | TreeError::Exists { .. })
            );
            match what {
                // These are done to the symlink, and later ones to what was put in its place.
                "open_file" | "read" | "list" | "below" | "make_directory" | "make_directories" => {
                    assert!(refused, "{what} of {at}: {done:?}");
                }
                _ => {}
            }
        }
        assert_eq!(outside(&directory), before, "{at}");
    }
}

#[test]
fn hard_links_out_of_the_tree_are_replaced_and_not_written() {
    let (directory, tree) = beside();
    let outside = directory.path().join("outside/file");
    fs::hard_link(&outside, directory.path().join("tree/hard")).unwrap();
    tree.write(&path("hard"), &b"mine\n"[..], 0o600).unwrap();
    assert_eq!(fs::read_to_string(&outside).unwrap(), "as it was\n");
    assert_eq!(outside.metadata().unwrap().nlink(), 1);
    assert_eq!(tree.read(&path("hard"), 100).unwrap(), b"mine\n");
}

#[test]
fn pipes_sockets_and_devices_hold_nobody_up() {
    let (directory, tree) = beside();
    let root = directory.path().join("tree");
    let made = std::process::Command::new("mkfifo")
        .arg(root.join("pipe"))
        .status()
        .unwrap();
    assert!(made.success());
    let _socket = UnixListener::bind(root.join("socket")).unwrap();
    for at in ["pipe", "socket"] {
        let at = path(at);
        for failed in [
            tree.open_file(&at).map(drop),
            tree.read(&at, 100).map(drop),
            tree.entry(&at).map(drop),
            tree.set_mode(&at, 0o777),
        ] {
            assert!(
                matches!(failed, Err(TreeError::NotAFile { .. })),
                "{at}: {failed:?}"
            );
        }
        tree.write(&at, &b"a file now\n"[..], 0o644).unwrap();
        assert_eq!(tree.read(&at, 100).unwrap(), b"a file now\n");
    }
    // A device that would never end.
    let devices = Tree::open(Path::new("/dev")).unwrap();
    let failed = devices.read(&path("zero"), 100).unwrap_err();
    assert!(matches!(failed, TreeError::NotAFile { .. }), "{failed:?}");
}

#[test]
fn errors_name_the_path_and_tell_apart() {
    let (_directory, tree) = beside();
    let text = |failed: TreeError| (failed.to_string(), failed.kind());
    use std::io::ErrorKind;
    for (failed, expected) in [
        (
            tree.open_file(&path("no/thing")).unwrap_err(),
            ("`no/thing` does not exist", ErrorKind::NotFound),
        ),
        (
            tree.open_file(&path("real")).unwrap_err(),
            ("`real` is a directory", ErrorKind::IsADirectory),
        ),
        (
            tree.open_file(&path("to-file")).unwrap_err(),
            ("`to-file` is not a regular file", ErrorKind::InvalidInput),
        ),
        (
            tree.open_file(&path("absolute/file")).unwrap_err(),
            (
                "`absolute/file` leads through a symlink or out of the tree",
                ErrorKind::PermissionDenied,
            ),
        ),
        (
            tree.open_file(&path("real/file/x")).unwrap_err(),
            (
                "`real/file/x` or what it is in is not a directory",
                ErrorKind::NotADirectory,
            ),
        ),
        (
            tree.make_directory(&path("real")).unwrap_err(),
            ("`real` is there already", ErrorKind::AlreadyExists),
        ),
        (
            tree.remove(&path("real")).unwrap_err(),
            ("the directory `real` is not empty", ErrorKind::DirectoryNotEmpty),
        ),
        (
            tree.read(&path("real/file"), 9).unwrap_err(),
            ("`real/file` is larger than 9 bytes", ErrorKind::FileTooLarge),
        ),
        (
            tree.write(&path("real"), &b""[..], 0o644).unwrap_err(),
            ("`real` is a directory", ErrorKind::IsADirectory),
        ),
    ] {
        assert_eq!(text(failed), (expected.0.to_owned(), expected.1));
    }
    assert_eq!(tree.read(&path("real/file"), 10).unwrap(), b"as it was\n");
}

#[test]
fn what_is_removed_whole_takes_nothing_along() {
    let (directory, tree) = beside();
    let before = outside(&directory);
    let locked = directory.path().join("tree/real/deep/locked");
    fs::create_dir_all(locked.join("below")).unwrap();
    fs::write(locked.join("below/file"), "x").unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o500)).unwrap();
    tree.remove_all(&path("real")).unwrap();
    assert_eq!(tree.entry(&path("real")).unwrap(), None);
    tree.remove_all(&path("real")).unwrap();
    tree.remove_all(&path("not/there")).unwrap();
    assert_eq!(outside(&directory), before);
}

#[test]
fn a_write_is_whole_or_not_there() {
    struct Breaks(u32);
    impl std::io::Read for Breaks {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0 -= 1;
            match self.0 {
                0 => Err(std::io::Error::other("it broke")),
                _ => {
                    buffer[0] = b'x';
                    Ok(1)
                }
            }
        }
    }
    let (_directory, tree) = beside();
    let failed = tree.write(&path("real/file"), Breaks(5), 0o644).unwrap_err();
    assert!(matches!(failed, TreeError::Source { .. }), "{failed:?}");
    assert_eq!(tree.read(&path("real/file"), 100).unwrap(), b"as it was\n");
    assert_eq!(tree.list(Some(&path("real"))).unwrap().len(), 3);
    let written = tree.write(&path("real/file"), &b"new\n"[..], 0o4751).unwrap();
    assert_eq!(tree.entry(&path("real/file")).unwrap(), Some(written));
    assert_eq!(tree.stat(&path("real/file")).unwrap().unwrap().mode, 0o751);
}

/// Writes through a path of the system after comparing texts, as it is often done.
fn write_naively(root: &Path, at: &RelPath) {
    let joined = root.join(at.as_path());
    let Ok(parent) = joined.parent().unwrap().canonicalize() else {
        return;
    };
    if parent.starts_with(root) {
        fs::write(joined, "escaped\n").ok();
    }
}

/// One thread flips a directory to a symlink that leads out, another writes into it.
fn raced(for_at_most: Duration, write: impl Fn(&Path, &Tree, &RelPath)) -> bool {
    let (directory, tree) = beside();
    let root = directory.path().join("tree").canonicalize().unwrap();
    let before = outside(&directory);
    let stop = AtomicBool::new(false); // tidy: a test tells its thread to stop.
    let (flipping, real) = (root.join("flipping"), root.join("set-aside"));
    fs::create_dir(&flipping).unwrap();
    symlink("../outside", &real).unwrap();
    thread::scope(|scope| {
        let flip = scope.spawn(|| {
            let both = Tree::open(&root).unwrap();
            while !stop.load(Ordering::Relaxed) {
                both.exchange(&path("flipping"), &path("set-aside")).unwrap();
            }
        });
        let begun = Instant::now();
        for number in 0.. {
            write(&root, &tree, &path("flipping/file"));
            if begun.elapsed() > for_at_most || (number % 16 == 0 && outside(&directory) != before) {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
        flip.join().unwrap();
    });
    outside(&directory) != before
}

#[test]
fn a_raced_symlink_leads_nowhere() {
    let escaped = raced(Duration::from_secs(2), |_, tree, at| {
        for (what, done) in [
            ("write", tree.write(at, &b"escaped\n"[..], 0o644).map(drop)),
            ("set_mode", tree.set_mode(at, 0o777)),
            ("remove", tree.remove(at)),
        ] {
            let fine = matches!(
                done,
                Ok(()) | Err(TreeError::LeadsOut { .. } | TreeError::NotFound { .. })
            );
            assert!(fine, "{what}: {done:?}");
        }
    });
    assert!(!escaped);
    // The same race catches the algorithm that compares texts.
    assert!(raced(Duration::from_secs(60), |root, _, at| write_naively(
        root, at
    )));
}

#[test]
fn a_directory_that_is_moved_about_breaks_nothing() {
    let (directory, tree) = beside();
    let stop = AtomicBool::new(false); // tidy: a test tells its thread to stop.
    let root = directory.path().join("tree");
    thread::scope(|scope| {
        let mover = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                fs::rename(root.join("real"), root.join("moved")).unwrap();
                fs::rename(root.join("moved"), root.join("real")).unwrap();
            }
        });
        let (mut written, mut missed) = (0, 0);
        let begun = Instant::now();
        while (written < 50 || missed < 5) && begun.elapsed() < Duration::from_secs(20) {
            match tree.write(&path("real/deep/new"), &b"new\n"[..], 0o644) {
                Ok(_) => written += 1,
                Err(TreeError::NotFound { .. }) => missed += 1,
                Err(other) => panic!("{other:?}"),
            }
        }
        stop.store(true, Ordering::Relaxed);
        mover.join().unwrap();
        assert!(written > 0);
    });
    assert_eq!(tree.read(&path("real/deep/new"), 100).unwrap(), b"new\n");
    assert_eq!(tree.list(Some(&path("real/deep"))).unwrap().len(), 1);
}

/// Whether something is at hand is up to the kernel's memory; what is never read so is up to us.
#[test]
fn what_is_at_hand_is_what_is_there_and_nothing_else_is() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    fs::create_dir(root.join("d")).unwrap();
    fs::write(root.join("d/small"), "small\n").unwrap();
    fs::write(root.join("large"), vec![b'x'; 64 * 1024 + 1]).unwrap();
    symlink("d/small", root.join("link")).unwrap();
    symlink("d", root.join("way")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let tree = Tree::open(root).unwrap();
    let there = tree.file(&path("d/small"), 100).unwrap();
    assert_eq!(there.1, b"small\n");
    assert_eq!(Some(&there.0), tree.entry(&path("d/small")).unwrap().as_ref());
    let at_hand = (0..100).find_map(|_| tree.file_at_hand(&path("d/small")));
    assert_eq!(at_hand, Some(there));
    for other in ["large", "link", "way/small", "d", "pipe", "none", "d/small/x"] {
        assert_eq!(tree.file_at_hand(&path(other)), None, "{other}");
    }
}
