//! Parents and children of tokens.

use std::time::Duration;

use kernel::{CancellationToken, Deadline, ResetRefused};

use crate::support::{cause, manual_clock};

#[test]
fn children_are_cancelled_with_their_parent_for_its_cause() {
    let parent = CancellationToken::new();
    let child = parent.child();
    let grandchild = child.child();
    let unrelated = CancellationToken::new();
    parent.cancel(cause("parent"));
    for token in [&parent, &child, &grandchild, &parent.child()] {
        assert_eq!(token.cause().as_deref(), Some(&cause("parent")));
    }
    assert!(!unrelated.is_cancelled());
}

#[test]
fn a_child_cancels_neither_parent_nor_sibling() {
    let parent = CancellationToken::new();
    let (child, sibling) = (parent.child(), parent.child());
    child.cancel(cause("child"));
    assert!(!parent.is_cancelled() && !sibling.is_cancelled());
    parent.cancel(cause("parent"));
    assert_eq!(
        child.cause().as_deref(),
        Some(&cause("child")),
        "the first cause stays"
    );
    assert_eq!(sibling.cause().as_deref(), Some(&cause("parent")));
}

#[test]
fn any_of_several_parents_cancels() {
    for index in 0..3 {
        let parents = [
            CancellationToken::new(),
            CancellationToken::new(),
            CancellationToken::new(),
        ];
        let child = CancellationToken::with_parents(&parents.each_ref());
        parents[index].cancel(cause("one of them"));
        assert!(child.is_cancelled());
        assert_eq!(parents.iter().filter(|parent| parent.is_cancelled()).count(), 1);
        drop(child);
        assert!(parents.iter().all(|parent| parent.tracked() == (0, 0)));
    }
}

#[test]
fn a_child_of_a_live_and_a_cancelled_parent_is_born_cancelled() {
    let (live, cancelled) = (CancellationToken::new(), CancellationToken::new());
    cancelled.cancel(cause("before"));
    let child = CancellationToken::with_parents(&[&live, &cancelled]);
    assert_eq!(child.cause().as_deref(), Some(&cause("before")));
}

#[test]
fn a_child_lives_again_only_after_its_parent() {
    let parent = CancellationToken::new();
    let child = parent.child();
    parent.cancel(cause("first"));
    assert_eq!(child.reset(), Err(ResetRefused::ParentCancelled));
    assert!(child.is_cancelled());

    parent.reset().unwrap();
    assert!(
        child.is_cancelled(),
        "a reset of the parent takes nothing back from the child"
    );
    child.reset().unwrap();
    assert!(!child.is_cancelled());
    parent.cancel(cause("second"));
    assert_eq!(child.cause().as_deref(), Some(&cause("second")));
}

#[test]
fn a_million_dropped_children_are_forgotten() {
    let parent = CancellationToken::new();
    let kept = parent.child();
    for _ in 0..1_000_000 {
        drop(parent.child());
    }
    assert_eq!(parent.tracked(), (1, 0));
    drop(kept);
    assert_eq!(parent.tracked(), (0, 0));
}

#[test]
fn a_very_deep_tree_is_cancelled_and_dropped() {
    let root = CancellationToken::new();
    let mut leaf = root.child();
    for _ in 0..200_000 {
        leaf = leaf.child();
    }
    root.cancel(cause("root"));
    assert_eq!(leaf.cause().as_deref(), Some(&cause("root")));
    drop(leaf);
    assert_eq!(root.tracked(), (0, 0));
}

#[test]
fn the_earlier_of_two_deadlines_in_a_family_counts() {
    let (clock, shared) = manual_clock();
    let seconds = |seconds| Deadline::after(&shared, Duration::from_secs(seconds));
    let parent = CancellationToken::until(&seconds(2));
    let (hasty, patient) = (parent.child_until(&seconds(1)), parent.child_until(&seconds(3)));
    clock.advance(Duration::from_secs(1));
    assert_eq!(
        [&parent, &hasty, &patient].map(|token| token.is_cancelled()),
        [false, true, false]
    );
    clock.advance(Duration::from_secs(1));
    assert_eq!(
        [&parent, &hasty, &patient].map(|token| token.is_cancelled()),
        [true, true, true]
    );
    assert_eq!(clock.pending_alarms(), 0);
}
