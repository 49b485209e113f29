//! Making a view: what can be asked for, what is refused, and what is left of it then.

use std::ffi::OsString;
use std::fs;
use std::future::Future;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use kernel::ManualClock;
use process::{KeeperProgram, Mount, StopPlan, ViewError, ViewSpec};

use crate::support::{Service, descriptors, is_alive, pid_in, until, within};
use crate::view_support::{Layers, makers, names};

#[tokio::test]
async fn any_path_can_be_a_layer_or_a_place() {
    let service = Service::new().await;
    let long = "l".repeat(200);
    let strange = [
        b"with,comma".to_vec(),
        b"with:colon".to_vec(),
        b"with\\backslash".to_vec(),
        b"with space and 'quotes\"".to_vec(),
        b"with\nnewline".to_vec(),
        b"not \xff utf-8".to_vec(),
        b",:\\ \\:".to_vec(),
        b"-o".to_vec(),
        format!("{long}/{long}/{long}").into_bytes(),
    ];
    for name in strange {
        let directory = service.directory.path().join(OsString::from_vec(name));
        let layers = Layers::new(&directory);
        let view = service.view(layers.spec()).await;
        let said = service.says_in(&view, &layers.place, "ls; echo x > made").await;
        assert_eq!(said, "base\n", "{}", directory.display());
        assert_eq!(names(&layers.upper), ["made"]);
        assert_eq!(names(&layers.place), ["real"]);
    }
}

#[tokio::test]
async fn there_can_be_many_layers_and_the_first_is_the_uppermost() {
    let service = Service::new().await;
    let layers = Layers::new(service.directory.path());
    let made = |number: usize| {
        let layer = service.path(&format!("layer-{number}"));
        fs::create_dir(&layer).unwrap();
        fs::write(layer.join(format!("of-{number}")), "").unwrap();
        fs::write(layer.join("top"), format!("{number}\n")).unwrap();
        layer
    };
    let lower: Vec<PathBuf> = (0..300).map(made).collect();
    let spec = |lower: Vec<PathBuf>| ViewSpec {
        mounts: vec![Mount::Overlay {
            lower,
            upper: layers.upper.clone(),
            work: layers.work.clone(),
            at: layers.place.clone(),
        }],
        root: layers.place.clone(),
    };
    let view = service.view(spec(lower.clone())).await;
    let said = service.says_in(&view, &layers.place, "ls | wc -l; cat top").await;
    assert_eq!(said, "301\n0\n");
    for refused in [vec![lower[0].clone(); 501], vec![]] {
        let error = service.processes.make_view(spec(refused)).await.unwrap_err();
        assert!(
            shown(&error, service.directory.path()).starts_with("Overlay place"),
            "{error:?}"
        );
    }
}

/// Step, path and kind of a refusal.
fn shown(error: &ViewError, directory: &Path) -> String {
    match error {
        ViewError::Refused { step, path, source } => {
            let path = path.strip_prefix(directory).unwrap_or(path).display();
            format!("{step:?} {path} {:?}", source.kind())
        }
        other => format!("{other:?}"),
    }
}

#[tokio::test]
async fn what_cannot_be_made_is_said_and_leaves_nothing() {
    let service = Service::new().await;
    let root = service.directory.path();
    let layers = Layers::new(root);
    fs::write(service.path("plain"), "x").unwrap();
    std::os::unix::fs::symlink(&layers.lower, service.path("link")).unwrap();
    std::os::unix::fs::symlink(root, layers.lower.join("way-out")).unwrap();
    let before = descriptors();
    let overlay = |lower: &str, upper: &str, work: &str, at: &str| Mount::Overlay {
        lower: vec![root.join(lower)],
        upper: root.join(upper),
        work: root.join(work),
        at: root.join(at),
    };
    let bind = |source: &str, at: &str| Mount::Bind {
        source: source.into(),
        at: at.into(),
    };
    let hidden = |at: &Path| Mount::Hidden { at: at.into() };
    let cases = [
        (
            overlay("missing", "upper", "work", "place"),
            "Source missing NotFound",
        ),
        (
            overlay("lower", "plain", "work", "place"),
            "Source plain NotADirectory",
        ),
        (
            overlay("lower", "upper", "missing", "place"),
            "Source missing NotFound",
        ),
        (
            overlay("lower", "upper", "upper", "place"),
            "Overlay place InvalidInput",
        ),
        (
            overlay("lower", "upper", "work", "plain"),
            "Place plain NotADirectory",
        ),
        (
            overlay("lower", "upper", "work", "link"),
            "Place link NotADirectory",
        ),
        (
            overlay("lower", "upper", "work", "link/x"),
            "Place link/x NotADirectory",
        ),
        (
            overlay("lower", "upper", "work", "place/../x"),
            "Place place/../x InvalidInput",
        ),
        (bind("relative", "/x"), "Source relative InvalidInput"),
        (bind("/no/such", "/x"), "Source /no/such NotFound"),
        (bind("/usr", "relative"), "Place relative InvalidInput"),
        (bind("/usr", "/proc/no-such"), "Place /proc/no-such NotFound"),
        (hidden(&root.join("plain")), "Place plain NotADirectory"),
    ];
    let good = layers.overlay();
    for (mount, expected) in cases {
        let spec = ViewSpec {
            mounts: vec![mount],
            root: layers.place.clone(),
        };
        let error = service.processes.make_view(spec).await.unwrap_err();
        assert_eq!(shown(&error, root), expected);
    }
    // A layer must not lead the maker out of the view.
    let way_out = ViewSpec {
        mounts: vec![good.clone(), hidden(&layers.place.join("way-out/made"))],
        root: layers.place.clone(),
    };
    let error = service.processes.make_view(way_out).await.unwrap_err();
    assert_eq!(shown(&error, root), "Place place/way-out/made NotADirectory");
    assert!(!service.path("made").exists());
    for (wanted, expected) in [
        ("place/real", "Root place/real NotFound"),
        ("place/way-out", "Root place/way-out NotADirectory"),
        ("place/base", "Root place/base NotADirectory"),
    ] {
        let spec = ViewSpec {
            mounts: vec![good.clone()],
            root: root.join(wanted),
        };
        let error = service.processes.make_view(spec).await.unwrap_err();
        assert_eq!(shown(&error, root), expected);
    }
    service.nothing_left().await;
    assert_eq!(descriptors(), before);
}

#[tokio::test]
async fn a_maker_that_is_none_is_an_error() {
    for (program, expected) in [("/no/such/maker", "Means"), ("/bin/true", "Maker")] {
        let service = Service::with_keeper(KeeperProgram::At(program.into())).await;
        let layers = Layers::new(service.directory.path());
        let before = descriptors();
        let error = service.processes.make_view(layers.spec()).await.unwrap_err();
        assert!(format!("{error:?}").starts_with(expected), "{error:?}");
        service.nothing_left().await;
        assert_eq!(descriptors(), before);
    }
}

#[tokio::test]
async fn a_maker_that_says_nothing_is_killed_when_its_time_is_over() {
    let directory = tempfile::tempdir().unwrap();
    let silent = directory.path().join("silent");
    // It is nobody's child but ours, and would outlive the test.
    fs::write(
        &silent,
        "#!/bin/sh\necho $$ > \"${0%/*}/half\"; mv \"${0%/*}/half\" \"${0%/*}/pid\"\nexec sleep 1000\n",
    )
    .unwrap();
    fs::set_permissions(&silent, fs::Permissions::from_mode(0o755)).unwrap();
    let clock = ManualClock::new();
    let service = Service::with_keeper_and_clock(KeeperProgram::At(silent), clock.clone()).await;
    let layers = Layers::new(service.directory.path());
    let before = descriptors();
    let passing = async {
        let pid = pid_in(&directory.path().join("pid")).await;
        until("its time runs", || clock.pending_alarms() > 0).await;
        clock.advance(Duration::from_secs(9));
        assert!(is_alive(pid));
        clock.advance(Duration::from_secs(1));
        pid
    };
    let making = within(service.processes.make_view(layers.spec()));
    let (made, pid) = tokio::join!(making, passing);
    let error = made.unwrap_err();
    assert!(
        matches!(&error, ViewError::Maker(source) if source.kind() == std::io::ErrorKind::TimedOut),
        "{error:?}"
    );
    until("the maker is gone", || !is_alive(pid)).await;
    service.nothing_left().await;
    assert_eq!(descriptors(), before);
}

#[tokio::test]
async fn no_view_is_made_when_everything_is_being_stopped() {
    let service = Service::new().await;
    let layers = Layers::new(service.directory.path());
    service.processes.stop_all(StopPlan::NOW).await;
    let error = service.processes.make_view(layers.spec()).await.unwrap_err();
    assert!(matches!(error, ViewError::Stopped), "{error:?}");
}

/// The making is given up after every number of polls, until it is quick enough to succeed.
#[tokio::test]
async fn a_view_that_nobody_waits_for_leaves_nothing() {
    let service = Service::new().await;
    let layers = Layers::new(service.directory.path());
    drop(service.view(layers.spec()).await);
    service.nothing_left().await;
    let before = descriptors();
    let mut given_up = 0;
    for turns in 0..400 {
        let mut making = Box::pin(service.processes.make_view(layers.spec()));
        let mut done = None;
        for _ in 0..=turns {
            if let Poll::Ready(made) = making.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                done = Some(made.unwrap());
                break;
            }
            // Lets the others do one step.
            tokio::task::yield_now().await;
            std::thread::sleep(std::time::Duration::from_micros(turns));
        }
        drop(making);
        match done {
            None => {
                given_up += 1;
                // Two at once must not have the same layers, and this one is being ended.
                service.nothing_left().await;
            }
            Some(view) => {
                drop(view);
                break;
            }
        }
    }
    assert!(given_up > 3, "it was given up {given_up} times only");
    service.nothing_left().await;
    until("every descriptor is closed", || descriptors() == before).await;
    assert_eq!(makers(), [] as [u32; 0]);
}

#[tokio::test]
async fn views_are_made_side_by_side() {
    let service = Service::new().await;
    let one = async |name: &str| {
        let layers = Layers::new(&service.path(name));
        let view = service.view(layers.spec()).await;
        service
            .says_in(&view, &layers.place, "ls; echo x > made; ls")
            .await
    };
    let said = tokio::join!(one("a"), one("b"), one("c"), one("d"), one("e"), one("f"));
    let expected = "base\nbase\nmade\n";
    let (a, b, c, d, e, f) = said;
    assert_eq!([a, b, c, d, e, f], [expected; 6]);
}
