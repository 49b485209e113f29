//! Starts that come to nothing, and leave nothing.

use std::future::Future;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::task::{Context, Poll, Waker};

use process::{Confinement, KeeperProgram, SpawnError};

use crate::support::{Service, descriptors, until};

#[tokio::test]
async fn what_cannot_be_run_is_said_and_leaves_nothing() {
    let service = Service::new().await;
    let before = descriptors();
    let plain_file = service.path("plain");
    std::fs::write(&plain_file, "x").unwrap();
    std::fs::set_permissions(&plain_file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let good = || service.sh("exit 0");

    let mut specs = vec![good(); 7];
    specs[0].program = "no-such-program".into();
    specs[1].program = plain_file.clone();
    specs[2].directory = "/no/such/directory".into();
    specs[3].directory = plain_file.clone();
    specs[4].confinement = Confinement::WriteBelow(vec!["/no/such/directory".into()]);
    specs[5].arguments = vec!["x".repeat(3_000_000).into()];
    specs[6].program = PathBuf::from("a\0b");
    let expected = [
        ("Program", "NotFound"),
        ("Program", "PermissionDenied"),
        ("Directory", "NotFound"),
        ("Directory", "NotADirectory"),
        ("Confinement", "NotFound"),
        ("Program", "ArgumentListTooLong"),
        ("Program", "InvalidInput"),
    ];
    for (spec, (variant, kind)) in specs.into_iter().zip(expected) {
        let error = service.refuse(spec).await;
        let shown = format!("{error:?}");
        let source = std::error::Error::source(&error).unwrap();
        let source = source.downcast_ref::<std::io::Error>().unwrap();
        assert!(shown.starts_with(variant), "{shown}, not {variant}");
        assert_eq!(format!("{:?}", source.kind()), kind, "{shown}");
    }
    service.nothing_left().await;
    assert_eq!(service.closed_rows().await, 1);
    assert_eq!(descriptors(), before);
}

#[tokio::test]
async fn a_keeper_that_is_none_is_an_error() {
    for (program, is_expected) in [
        (
            "/no/such/keeper",
            (|error| matches!(error, SpawnError::Means(_))) as fn(&SpawnError) -> bool,
        ),
        ("/bin/true", |error| matches!(error, SpawnError::Keeper(_))),
    ] {
        let service = Service::with_keeper(KeeperProgram::At(program.into())).await;
        let before = descriptors();
        let error = service.refuse(service.sh("exit 0")).await;
        assert!(is_expected(&error), "{error:?}");
        service.nothing_left().await;
        assert_eq!(descriptors(), before);
    }
}

/// The start is given up after every number of polls, until it is quick enough to succeed.
#[tokio::test]
async fn a_start_that_nobody_waits_for_leaves_nothing() {
    let service = Service::new().await;
    drop(service.run("exit 0").await);
    service.nothing_left().await;
    let before = descriptors();
    let mut given_up = 0;
    for turns in 0..400 {
        let spec = service.sh("echo ran > ran; exec sleep 1000");
        let mut start = Box::pin(service.processes.spawn(spec));
        let mut done = None;
        for _ in 0..=turns {
            if let Poll::Ready(started) = start.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                done = Some(started.unwrap());
                break;
            }
            // Lets the others do one step.
            tokio::task::yield_now().await;
            std::thread::sleep(std::time::Duration::from_micros(turns));
        }
        drop(start);
        match done {
            None => given_up += 1,
            Some(child) => {
                drop(child);
                break;
            }
        }
    }
    assert!(given_up > 3, "it was given up {given_up} times only");
    service.nothing_left().await;
    until("every descriptor is closed", || descriptors() == before).await;
}
