//! How landings end when nobody kills them.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Mutex;

use bytes::Bytes;
use eventlog::BlobId;
use kernel::CancellationToken;
use plans::landing::{
    Exchange, LandError, Landing, LandingEnd, LandingSite, Leftover, LeftoverSource, NoRemerge, NoSteps,
    StepKind, WhyRolledBack,
};
use plans::{ConflictKind, Contents, Entry, FileKind, RelPath};

use crate::landing_kit::{
    Image, Place, Renames, When, after, effect, every_kind, landing, link, live, path, save,
};

fn landed(outcome: LandingEnd) -> (Vec<plans::Effect>, Vec<plans::landing::Leftover>) {
    match outcome {
        LandingEnd::Landed { effects, kept } => (effects, kept),
        LandingEnd::TakenBack { .. } => panic!("{outcome:?}"),
    }
}

fn taken_back(outcome: LandingEnd) -> (Vec<(String, ConflictKind)>, Vec<plans::landing::Leftover>) {
    match outcome {
        LandingEnd::TakenBack {
            why: WhyRolledBack::Conflicts(conflicts),
            kept,
        } => {
            let conflicts = conflicts.into_iter();
            let conflicts = conflicts.map(|conflict| (conflict.path.to_string(), conflict.kind));
            (conflicts.collect(), kept)
        }
        outcome => panic!("{outcome:?}"),
    }
}

#[test]
fn every_kind_of_effect_lands() {
    let (place, landing) = every_kind();
    let new = after(&place.image(), &landing.effects);
    let (effects, kept) = landed(place.land(&landing, &NoRemerge, &NoSteps));
    assert_eq!(place.image(), new);
    assert_eq!(kept, []);
    let mut expected = landing.effects.clone();
    expected.sort_by(|one, other| one.path.cmp(&other.path));
    assert_eq!(effects, expected);
    place.clean(&landing);
    place.clean(&landing);
}

#[test]
fn without_a_staging_directory_on_its_file_system_a_tree_has_its_own_for_a_while() {
    let Ok(elsewhere) = tempfile::TempDir::with_prefix_in("tidelock-staging-", "/dev/shm") else {
        return;
    };
    let (place, landing) = every_kind();
    if elsewhere.path().metadata().unwrap().dev() == place.root().metadata().unwrap().dev() {
        return;
    }
    let new = after(&place.image(), &landing.effects);
    let site = place.site(elsewhere.path(), &NoRemerge, &NoSteps);
    let staged = site.stage(&landing, &live()).unwrap();
    let inside = place.root().join(".tidelock/staging");
    assert!(inside.join(landing.id.as_str()).join("complete").exists());
    assert_eq!(fs::read_to_string(inside.join(".gitignore")).unwrap(), "*\n");
    landed(site.carry_out(staged).unwrap());
    assert_eq!(place.image(), new);
    landed(site.recover(&landing).unwrap());
    clean(&site, &landing, &[]);
    assert!(!place.root().join(".tidelock").exists());
}

#[test]
fn it_is_found_out_whether_the_file_system_can_exchange() {
    for (renames, expected) in [
        (Renames::Any, Exchange::OneStep),
        (Renames::Plain, Exchange::ThreeSteps),
    ] {
        let place = Place::new().with(renames);
        let staging = place.staging();
        let site = place.site(&staging, &NoRemerge, &NoSteps);
        // Where it is staged inside the tree: what is asked there is what the tree says.
        let inside = place.site(Path::new("/proc/nowhere"), &NoRemerge, &NoSteps);
        assert_eq!(inside.probe().unwrap(), expected);
        assert_eq!(place.image(), Image::new(), "nothing stays");
        assert!(!place.root().join(".tidelock").exists());
        site.probe().unwrap();
        assert_eq!(fs::read_dir(&staging).unwrap().count(), 0);
    }
}

#[test]
fn what_cannot_be_staged_leaves_nothing() {
    type Break = fn(&mut Place, &mut plans::landing::Landing, &CancellationToken);
    let cases: [(Break, &str); 4] = [
        (
            |_, _, token| assert!(token.cancel(kernel::Cause::new("a test", "enough"))),
            "cancelled",
        ),
        (
            |place, _, _| place.contents.clear(),
            "the new content of `README` cannot be had",
        ),
        (
            |place, _, _| {
                for content in place.contents.values_mut() {
                    *content = "something else".into();
                }
            },
            "the new content of `README` cannot be had",
        ),
        (
            |_, landing, _| landing.effects.push(landing.effects[0].clone()),
            "two effects have the path `edit.txt`",
        ),
    ];
    for (break_it, expected) in cases {
        let (mut place, mut landing) = every_kind();
        let (old, token) = (place.image(), CancellationToken::new());
        let scope = token.scope();
        break_it(&mut place, &mut landing, &token);
        let staging = place.staging();
        let site = place.site(&staging, &NoRemerge, &NoSteps);
        let error = site.stage(&landing, &scope).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(place.image(), old);
        assert!(!staging.join(landing.id.as_str()).exists());
    }
}

/// Contents that remember how they were asked for.
struct Asked<'a> {
    contents: &'a dyn Contents,
    /// Guards how many were asked for together, each time; 0 for one that was copied.
    together: Mutex<Vec<usize>>,
}

impl Contents for Asked<'_> {
    fn get(&self, id: BlobId) -> std::io::Result<Bytes> {
        self.contents.get(id)
    }

    fn get_all(&self, ids: &[BlobId]) -> std::io::Result<Vec<Bytes>> {
        self.together.lock().unwrap().push(ids.len());
        self.contents.get_all(ids)
    }

    fn copy_to(&self, id: BlobId, to: &mut dyn plans::ContentSink) -> std::io::Result<()> {
        self.together.lock().unwrap().push(0);
        self.contents.copy_to(id, to)
    }
}

#[test]
fn small_contents_are_read_together_and_one_that_is_missing_is_named() {
    let mut place = Place::in_memory();
    let large = "large".repeat(20_000);
    let mut effects: Vec<_> = (0..150)
        .map(|number| {
            let content = match number {
                3 => large.clone(),
                // Two of a kind.
                number => format!("content {}\n", number / 2),
            };
            effect(&format!("{number:03}"), None, place.file(&content, 0o644))
        })
        .collect();
    effects.push(effect("150", None, Some(Entry::Directory)));
    let landing = landing(effects);
    let new = after(&Image::new(), &landing.effects);
    let staging = place.staging();
    let asked = Asked {
        contents: &place.contents,
        together: Mutex::default(),
    };
    let site = LandingSite {
        contents: &asked,
        ..place.site(&staging, &NoRemerge, &NoSteps)
    };
    landed(site.carry_out(site.stage(&landing, &live()).unwrap()).unwrap());
    assert_eq!(place.image(), new);
    assert_eq!(*asked.together.lock().unwrap(), [63, 0, 64, 22]);
    assert_eq!(clean(&site, &landing, &[]), []);

    let content = landing.effects[100].after.as_ref().and_then(Entry::content);
    let gone = place.contents.remove(&content.unwrap());
    assert!(gone.is_some());
    let again = place.site(&staging, &NoRemerge, &NoSteps);
    match again.stage(&landing, &live()) {
        Err(LandError::Content { path, source }) => {
            assert_eq!((&*path, source.kind()), ("100", std::io::ErrorKind::NotFound));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read_dir(&staging).unwrap().count(), 0);
}

#[test]
fn a_landing_that_is_staged_is_not_staged_over() {
    let (place, landing) = every_kind();
    let staging = place.staging();
    let site = place.site(&staging, &NoRemerge, &NoSteps);
    site.stage(&landing, &live()).unwrap();
    let again = site.stage(&landing, &live()).unwrap_err();
    assert!(matches!(again, LandError::StagedAlready), "{again:?}");
    site.discard(&landing.id).unwrap();
    site.stage(&landing, &live()).unwrap();
}

/// Somebody does something at a step, and everything is taken back but that.
#[test]
fn what_others_do_meanwhile_is_in_the_way_and_stays() {
    type Act = fn(&Path);
    let edit: Act = |root| save(&root.join("edit.txt"), "saved\n");
    let cases: &[(StepKind, &str, Act, &str, ConflictKind)] = &[
        (
            StepKind::Exchanging,
            "edit.txt",
            edit,
            "edit.txt",
            ConflictKind::Moving,
        ),
        (
            StepKind::ContentsSynced,
            "",
            edit,
            "edit.txt",
            ConflictKind::Moving,
        ),
        (
            StepKind::Exchanging,
            "edit.txt",
            |root| fs::remove_file(root.join("edit.txt")).unwrap(),
            "edit.txt",
            ConflictKind::Moving,
        ),
        (
            StepKind::TakingOut,
            "gone.txt",
            |root| save(&root.join("gone.txt"), "saved\n"),
            "gone.txt",
            ConflictKind::Moving,
        ),
        (
            StepKind::PuttingIn,
            "README",
            |root| save(&root.join("README"), "saved\n"),
            "README",
            ConflictKind::Moving,
        ),
        (
            StepKind::Exchanging,
            "becomes-dir",
            |root| save(&root.join("becomes-dir"), "saved\n"),
            "becomes-dir",
            ConflictKind::DirectoryAndFile,
        ),
        (
            StepKind::StandInMade,
            "becomes-file",
            |root| save(&root.join("becomes-file/other"), "saved\n"),
            "becomes-file",
            ConflictKind::DirectoryAndFile,
        ),
        (
            StepKind::PuttingIn,
            "new/deep/file.txt",
            |root| fs::remove_dir_all(root.join("new")).unwrap(),
            "new/deep/file.txt",
            ConflictKind::Moving,
        ),
        (
            StepKind::Exchanging,
            "stays/edit.txt",
            |root| {
                fs::rename(root.join("stays"), root.join("moved")).unwrap();
                std::os::unix::fs::symlink("moved", root.join("stays")).unwrap();
            },
            "stays/edit.txt",
            ConflictKind::DirectoryAndFile,
        ),
        (
            StepKind::Exchanging,
            "edit.txt",
            |root| {
                fs::remove_file(root.join("edit.txt")).unwrap();
                fs::create_dir(root.join("edit.txt")).unwrap();
                save(&root.join("edit.txt/inside"), "saved\n");
            },
            "edit.txt",
            ConflictKind::DirectoryAndFile,
        ),
    ];
    for (number, (kind, at, act, conflict, why)) in cases.iter().enumerate() {
        // What the tree is if only the act happens.
        let (undisturbed, _) = every_kind();
        if !conflict.starts_with("new/") {
            act(&undisturbed.root());
        }
        let (place, landing) = every_kind();
        let (root, act) = (place.root(), *act);
        let when = When::new(*kind, at, move || act(&root));
        let (conflicts, kept) = taken_back(place.land(&landing, &NoRemerge, &when));
        assert!(when.happened());
        assert_eq!(conflicts, [((*conflict).to_owned(), *why)], "case {number}");
        assert_eq!(kept, [], "case {number}");
        assert_eq!(place.image(), undisturbed.image(), "case {number}");
        place.clean(&landing);
    }
}

/// Somebody does something that is in nobody's way.
#[test]
fn what_others_do_meanwhile_and_fits_is_let_be() {
    type Act = fn(&Path);
    type Expect = fn(&mut Image, &Image);
    let cases: &[(StepKind, &str, Act, Expect)] = &[
        (
            StepKind::PuttingIn,
            "new",
            |root| {
                fs::create_dir(root.join("new")).unwrap();
                save(&root.join("new/mine"), "saved\n");
            },
            |new, found| drop(new.insert(path("new/mine"), found[&path("new/mine")].clone())),
        ),
        (
            StepKind::StandInMade,
            "dir/sub",
            |root| save(&root.join("dir/sub/mine"), "saved\n"),
            |new, found| {
                for stays in ["dir", "dir/sub", "dir/sub/mine"] {
                    new.insert(path(stays), found[&path(stays)].clone());
                }
            },
        ),
        (
            StepKind::TakingOut,
            "gone.txt",
            |root| fs::remove_file(root.join("gone.txt")).unwrap(),
            |_, _| {},
        ),
        (
            StepKind::Exchanging,
            "edit.txt",
            |root| save(&root.join("edit.txt"), "new\n"),
            |_, _| {},
        ),
        (
            StepKind::Exchanged,
            "edit.txt",
            |root| save(&root.join("edit.txt"), "on top\n"),
            |new, found| drop(new.insert(path("edit.txt"), found[&path("edit.txt")].clone())),
        ),
    ];
    for (number, (kind, at, act, expect)) in cases.iter().enumerate() {
        let (place, landing) = every_kind();
        let mut new = after(&place.image(), &landing.effects);
        let (root, act) = (place.root(), *act);
        let when = When::new(*kind, at, move || act(&root));
        let (_, kept) = landed(place.land(&landing, &NoRemerge, &when));
        assert!(when.happened());
        let found = place.image();
        expect(&mut new, &found);
        assert_eq!(found, new, "case {number}");
        assert_eq!(kept, [], "case {number}");
        place.clean(&landing);
    }
}

#[test]
fn the_last_save_keeps_the_path_when_all_is_taken_back_and_what_was_there_is_kept() {
    // What was replaced, was new, or had gone when somebody saves it.
    for (name, was) in [
        ("edit.txt", Some("old\n")),
        ("README", None),
        ("gone.txt", Some("gone\n")),
    ] {
        let (mut place, landing) = every_kind();
        // The last path is in the way, and while everything is taken back somebody saves.
        save(&place.root().join("stays/link"), "in the way\n");
        let root = place.root();
        let when = When::new(StepKind::TakingBack, name, move || {
            save(&root.join(name), "saved\n");
        });
        let mut expected = place.image();
        expected.insert(path(name), place.file("saved\n", 0o644).unwrap());
        let (conflicts, kept) = taken_back(place.land(&landing, &NoRemerge, &when));
        assert_eq!(conflicts, [("stays/link".to_owned(), ConflictKind::Moving)]);
        assert_eq!(place.image(), expected, "{name}");
        let entries = kept
            .iter()
            .map(|kept| (kept.path.clone(), kept.entry.clone(), kept.was_there));
        let old = was.map(|was| (path(name), place.file(was, 0o644), true));
        assert_eq!(entries.collect::<Vec<_>>(), Vec::from_iter(old), "{name}");
        let staging = place.staging();
        let site = place.site(&staging, &NoRemerge, &NoSteps);
        assert_eq!(clean(&site, &landing, &kept), []);
    }
}

/// A symlink, a directory with something in it and a pipe that somebody has put to a path are kept as what they are.
#[test]
fn what_is_no_file_is_kept_as_what_it_is() {
    let (place, landing) = every_kind();
    // The last path is in the way. While everything is taken back, somebody takes the place of a symlink that had gone.
    save(&place.root().join("stays/link"), "in the way\n");
    let (mut landing, root) = (landing, place.root());
    landing.effects.retain(|effect| effect.path != path("link"));
    landing.effects.push(effect("link", link("keep.txt"), None));
    let when = When::new(StepKind::TakingBack, "link", move || {
        save(&root.join("link"), "saved\n")
    });
    let (_, kept) = taken_back(place.land(&landing, &NoRemerge, &when));
    assert!(when.happened());
    let [kept] = kept.as_slice() else {
        panic!("{kept:?}");
    };
    assert_eq!(
        (&kept.path, kept.kind, &kept.entry, kept.was_there),
        (&path("link"), FileKind::Symlink, &link("keep.txt"), true)
    );
    let staging = place.staging();
    let site = place.site(&staging, &NoRemerge, &NoSteps);
    let target = site.with_kept(&landing.id, kept, fs::read_link);
    assert_eq!(target.unwrap(), std::path::Path::new("keep.txt"));
    // What others put into the staging directory under a name of ours stands for what came out in an instant.
    let area = staging.join(landing.id.as_str());
    let number = landing
        .effects
        .iter()
        .position(|effect| effect.path == path("edit.txt"));
    let name = area.join(format!("{}.0.old", number.unwrap()));
    fs::create_dir_all(name.join("deep")).unwrap();
    fs::write(name.join("deep/file"), "somebody's").unwrap();
    let cleaned = clean(&site, &landing, std::slice::from_ref(kept));
    assert_eq!(cleaned, [(path("edit.txt"), "directory with deep".to_owned())]);
}

/// Who has the old file open writes into it after it was exchanged, at each moment until it is gone.
#[test]
fn what_is_written_into_an_old_file_is_kept() {
    let text = "old\nin place\n";
    for (kind, at) in [
        (StepKind::Exchanged, "edit.txt"),
        (StepKind::AllCarriedOut, ""),
        // Before what came out of any path is looked at for the last time, and after that of another one was.
        (StepKind::Removing, "Readme"),
        (StepKind::Removed, "Readme"),
        // After it was looked at itself, and after its name was removed.
        (StepKind::Removing, "edit.txt"),
        (StepKind::Removed, "edit.txt"),
    ] {
        let (mut place, landing) = every_kind();
        let mut writer = fs::File::options()
            .append(true)
            .open(place.root().join("edit.txt"))
            .unwrap();
        let when = When::new(kind, at, move || writer.write_all(b"in place\n").unwrap());
        let staging = place.staging();
        let expected = place.file(text, 0o644);
        let site = place.site(&staging, &NoRemerge, &when);
        let outcome = site.carry_out(site.stage(&landing, &live()).unwrap()).unwrap();
        if kind == StepKind::Exchanged {
            // Found when it came out: it is put back, and in the way.
            let (conflicts, kept) = taken_back(outcome);
            assert_eq!(conflicts, [("edit.txt".to_owned(), ConflictKind::Moving)]);
            assert_eq!(place.tree.entry(&path("edit.txt")).unwrap(), expected);
            assert_eq!(kept, []);
            continue;
        }
        let (_, kept) = landed(outcome);
        let late = clean(&site, &landing, &kept);
        assert!(when.happened(), "{kind:?}");
        if kind == StepKind::AllCarriedOut {
            assert_eq!(
                (kept.len(), &kept[0].path, &kept[0].entry),
                (1, &path("edit.txt"), &expected)
            );
            assert!(!kept[0].was_there);
            assert_eq!(late, []);
        } else {
            assert_eq!(kept, []);
            assert_eq!(late, [(path("edit.txt"), text.to_owned())], "{kind:?} {at}");
        }
        let now = place.tree.read(&path("edit.txt"), 100).unwrap();
        assert_eq!(now, b"new\n");
        assert!(!staging.join(landing.id.as_str()).exists());
    }
}

/// Cleans, and says what had to be kept: the path and what is in it.
fn clean(site: &LandingSite<'_>, landing: &Landing, seen: &[Leftover]) -> Vec<(RelPath, String)> {
    let mut found = Vec::new();
    let mut keep = |kept: &Leftover, at: LeftoverSource| {
        let text = match at {
            LeftoverSource::File(file) => std::io::read_to_string(file)?,
            LeftoverSource::Path(path) if kept.kind == FileKind::Directory => {
                let names = fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.file_name()));
                let names = names.collect::<std::io::Result<Vec<_>>>()?;
                format!("directory with {}", names[0].display())
            }
            LeftoverSource::Path(path) => fs::read_to_string(path)?,
        };
        found.push((kept.path.clone(), text));
        Ok(())
    };
    site.clean(landing, seen, &mut keep).unwrap();
    found
}

#[test]
fn builds_see_that_a_file_is_new() {
    let (place, landing) = every_kind();
    let root = place.root();
    // A build that begins when everything is staged takes the time of this file.
    let when = When::new(StepKind::Complete, "", move || {
        fs::write(root.join("keep.txt"), "built\n").unwrap();
    });
    landed(place.land(&landing, &NoRemerge, &when));
    let modified = |name: &str| place.tree.stat(&path(name)).unwrap().unwrap().modified_ns;
    for name in ["edit.txt", "new/deep/file.txt", "mode.sh"] {
        assert!(modified(name) >= modified("keep.txt"), "{name}");
    }
}

#[test]
fn of_two_landings_on_the_same_path_one_is_refused_and_others_both_land() {
    for round in 0..40 {
        let mut place = Place::in_memory();
        for name in ["a", "b", "both"] {
            save(&place.root().join(name), "old\n");
        }
        let old = place.file("old\n", 0o644);
        let [one, other] = ["one\n", "other\n"].map(|content| place.file(content, 0o644));
        let overlap = round % 2 == 0;
        let landings = [("a", &one), ("b", &other)].map(|(name, new)| {
            let mut effects = vec![effect(name, old.clone(), new.clone())];
            if overlap {
                effects.push(effect("both", old.clone(), new.clone()));
            }
            landing(effects)
        });
        let place = &place;
        let landed = std::thread::scope(|scope| {
            let running = landings.each_ref().map(|landing| {
                scope.spawn(move || {
                    matches!(
                        place.land(landing, &NoRemerge, &NoSteps),
                        LandingEnd::Landed { .. }
                    )
                })
            });
            running.map(|thread| thread.join().unwrap())
        });
        let now = |name: &str| place.tree.entry(&path(name)).unwrap();
        let [a, b] = landed;
        assert_eq!(now("a"), if a { one.clone() } else { old.clone() });
        assert_eq!(now("b"), if b { other.clone() } else { old.clone() });
        if overlap {
            assert!(!(a && b), "round {round}");
            let both = if a {
                one
            } else if b {
                other
            } else {
                old
            };
            assert_eq!(now("both"), both, "round {round}");
        } else {
            assert!(a && b, "round {round}");
        }
        landings.iter().for_each(|landing| place.clean(landing));
    }
}

#[test]
fn a_tree_that_cannot_be_written_is_taken_back() {
    let (place, landing) = every_kind();
    let old = place.image();
    let staging = place.staging();
    let when = When::new(StepKind::PuttingIn, "new/deep", {
        let staging = staging.clone();
        let id = landing.id.clone();
        // The staged file is gone, by somebody's hand.
        move || {
            let area = staging.join(id.as_str());
            let index = fs::read_dir(&area).unwrap().map(|item| item.unwrap().path());
            for item in index.filter(|item| item.is_dir()) {
                fs::remove_dir(item).ok();
            }
        }
    });
    let site: LandingSite<'_> = place.site(&staging, &NoRemerge, &when);
    let staged = site.stage(&landing, &live()).unwrap();
    let outcome = site.carry_out(staged).unwrap();
    assert!(matches!(outcome, LandingEnd::TakenBack { .. }), "{outcome:?}");
    // The stand-ins went as well; a directory is no content, and the files in it need theirs.
    let mut now = place.image();
    let directories = |image: &Image| {
        let mut image = image.clone();
        image.retain(|_, entry| *entry != Entry::Directory);
        image
    };
    now = directories(&now);
    assert_eq!(now, directories(&old));
}
