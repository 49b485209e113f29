//! Bases of a workspace that does not hold still.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::thread;

use kernel::{CancellationToken, Cause};
use plans::{BaseError, WhyLeftOut};
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::base_support::{Site, file, files_of, left_out_of, naive_walk, path};

#[test]
fn a_workspace_that_is_not_there_is_gone() {
    let site = Site::new();
    fs::remove_dir(site.workspace()).unwrap();
    assert!(matches!(site.try_take(), Err(BaseError::Gone { workspace }) if workspace == site.workspace()));
    fs::write(site.workspace(), "a file").unwrap();
    assert!(matches!(site.try_take(), Err(BaseError::Gone { .. })));
    assert!(site.leftovers().is_empty());
}

#[test]
fn a_workspace_may_be_deleted_during_the_scan() {
    let mut gone = 0;
    for round in 0..10 {
        let site = Site::new();
        for number in 0..200 {
            site.write(&format!("d{}/e{number}/f", number % 20), "content");
        }
        thread::scope(|threads| {
            let deleting = threads.spawn(|| {
                // Some are deleted at once, some when files are being copied already.
                while round % 2 == 1 && site.leftovers().is_empty() && !site.cache().exists() {
                    thread::yield_now();
                }
                fs::remove_dir_all(site.workspace()).unwrap();
            });
            match site.try_take() {
                Ok(taken) => assert_eq!(naive_walk(&taken.base.tree), *taken.base.manifest),
                Err(BaseError::Gone { .. }) => gone += 1,
                Err(other) => panic!("{other:?}"),
            }
            deleting.join().unwrap();
        });
        assert!(site.leftovers().is_empty());
    }
    eprintln!("{gone} of 10 were gone");
}

#[test]
fn a_file_that_changes_under_the_copy_is_what_was_read_of_it() {
    let site = Site::new();
    let large = vec![7_u8; 3 * 1024 * 1024];
    site.write("moving", &large);
    site.write("still", "still");
    thread::scope(|threads| {
        let token = CancellationToken::new();
        let scope = token.scope();
        let moving = site.at("moving");
        threads.spawn(move || {
            let mut round = 0_u8;
            while !scope.is_cancelled() {
                let mut file = fs::OpenOptions::new().append(true).open(&moving).unwrap();
                file.write_all(&[round; 100_000]).unwrap();
                if round.is_multiple_of(3) {
                    file.set_len(1_000_000 + u64::from(round)).unwrap();
                }
                round = round.wrapping_add(1);
            }
        });
        for _ in 0..20 {
            // The support compares the image with its manifest.
            let taken = site.take();
            assert_eq!(
                taken.base.manifest.get(&path("still")),
                Some(&file("still", 0o644))
            );
        }
        token.cancel(Cause::new("test", "enough"));
    });
    // When all is quiet, nothing of what was seen in between is believed.
    let taken = site.take();
    assert_eq!(*taken.base.manifest, naive_walk(&site.workspace()));
}

#[test]
fn what_cannot_be_read_is_left_out() {
    let site = Site::new();
    site.write("readable", "");
    site.write("closed-directory/inside", "");
    site.write("closed", "secret");
    fs::set_permissions(site.at("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(site.at("closed-directory"), fs::Permissions::from_mode(0o000)).unwrap();
    let taken = thread::scope(|threads| {
        let taking = threads.spawn(|| {
            // Without its capabilities, even root is stopped by permissions. Only this thread gives them up.
            let none = CapabilitySets {
                effective: CapabilitySet::empty(),
                permitted: CapabilitySet::empty(),
                inheritable: CapabilitySet::empty(),
            };
            rustix::thread::set_capabilities(None, none).unwrap();
            site.try_take().unwrap()
        });
        taking.join().unwrap()
    });
    fs::set_permissions(site.at("closed-directory"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(files_of(&taken.base.manifest), ["readable"]);
    let expected = ["closed", "closed-directory"].map(|path| (path.to_owned(), WhyLeftOut::Unreadable));
    assert_eq!(left_out_of(&taken), expected);
}

#[test]
fn a_take_that_is_cancelled_leaves_nothing() {
    let site = Site::new();
    for number in 0..2000 {
        site.write(&format!("d{}/f{number}", number % 20), format!("{number}"));
    }
    let cancelled = CancellationToken::new();
    let scope = cancelled.scope();
    cancelled.cancel(Cause::new("test", "before it began"));
    let taken = site.bases.take(&site.workspace(), &site.cache(), &scope);
    assert!(matches!(taken, Err(BaseError::Cancelled)));

    // Half-way: as soon as an image is being made. That may come too late now and then.
    let mut was_cancelled = 0;
    for _ in 0..50 {
        let token = CancellationToken::new();
        let scope = token.scope();
        thread::scope(|threads| {
            let cancelling = threads.spawn(|| {
                while site.leftovers().is_empty() && !site.cache().exists() {
                    thread::yield_now();
                }
                token.cancel(Cause::new("test", "half-way"));
            });
            match site.bases.take(&site.workspace(), &site.cache(), &scope) {
                Err(BaseError::Cancelled) => was_cancelled += 1,
                Ok(_) => {}
                Err(other) => panic!("{other:?}"),
            }
            cancelling.join().unwrap();
        });
        assert!(site.leftovers().is_empty());
        if was_cancelled > 0 {
            break;
        }
        fs::remove_file(site.cache()).unwrap();
        fs::remove_dir_all(site.store()).unwrap();
        fs::create_dir(site.store()).unwrap();
    }
    assert!(was_cancelled > 0, "no take was ever cancelled half-way");
    assert_eq!(*site.take().base.manifest, naive_walk(&site.workspace()));
}
