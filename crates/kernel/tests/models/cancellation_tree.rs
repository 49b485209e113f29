//! Parents and children.

use kernel::{CancellationToken, Cause, ResetRefused};

use crate::{explore, together};

fn cause() -> Cause {
    Cause::new("model", "to see what happens")
}

#[test]
fn a_child_made_during_the_cancel_is_cancelled() {
    explore(|| {
        let parent = CancellationToken::new();
        let cancelling = parent.clone();
        let thread = loom::thread::spawn(move || {
            cancelling.cancel(cause());
        });
        let child = parent.child();
        thread.join().unwrap();
        assert!(child.is_cancelled(), "the child outlives its parent's cancel");
        assert_eq!(child.cause().unwrap().who, "model");
    });
}

#[test]
fn a_grandchild_is_cancelled_when_the_cancel_returns() {
    explore(|| {
        let parent = CancellationToken::new();
        let child = parent.child();
        let grandchild = child.child();
        let scope = grandchild.scope();
        let (one, other) = (parent.clone(), parent);
        let seen = scope.clone();
        together(
            move || {
                one.cancel(cause());
                assert!(
                    scope.is_cancelled(),
                    "cancel returned before all descendants were cancelled"
                );
            },
            move || {
                other.cancel(cause());
                assert!(seen.is_cancelled(), "the second caller returned too early");
            },
        );
        drop((child, grandchild));
    });
}

#[test]
fn a_child_is_not_reset_under_a_cancelled_parent() {
    explore(|| {
        let parent = CancellationToken::new();
        let child = parent.child();
        child.cancel(cause());
        let resetting = child.clone();
        together(
            move || {
                let reset = resetting.reset();
                assert!(matches!(reset, Ok(()) | Err(ResetRefused::ParentCancelled)));
            },
            move || {
                parent.cancel(cause());
            },
        );
        assert!(child.is_cancelled(), "a live child under a cancelled parent");
    });
}

#[test]
fn a_child_of_two_parents_is_cancelled_by_either() {
    for index in [0, 1] {
        explore(move || {
            let parents = [CancellationToken::new(), CancellationToken::new()];
            let cancelling = parents[index].clone();
            let thread = loom::thread::spawn(move || {
                cancelling.cancel(cause());
            });
            let child = CancellationToken::with_parents(&parents.each_ref());
            thread.join().unwrap();
            assert!(child.is_cancelled(), "one of the parents was not heard");
        });
    }
}

#[test]
fn a_child_dropped_during_the_cancel_is_forgotten() {
    explore(|| {
        let parent = CancellationToken::new();
        let child = parent.child();
        let cancelling = parent.clone();
        together(
            move || drop(child),
            move || {
                cancelling.cancel(cause());
            },
        );
        assert_eq!(parent.tracked(), (0, 0));
    });
}
