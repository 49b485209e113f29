//! Cancellation that belongs to a run, and stays with it.
//!
//! A token is reused from run to run: `cancel` stops the current run, `reset` makes the token live again for the
//! next one. The mistake to avoid is a reset that takes a cancellation back from somebody who has not acted on
//! it yet. A lock around the reset does not help: the waiter that a cancel woke may still look too late. So a
//! cancellation belongs to a generation, and a worker holds a [`Scope`] of the generation it works in.
//!
//! Invariants:
//!
//! 1. A node has one *word*: even is live, odd is cancelled. It starts even and only ever grows by one:
//!    cancel goes from even to odd, reset from odd to even.
//! 2. The word changes only while the node's lock is held, together with its atomic mirror. Who holds the lock
//!    decides by the word, everybody else looks at the mirror.
//! 3. A scope remembers the even word of its run and is cancelled as soon as the word differs. By (1) it never
//!    becomes live again.
//! 4. The cause of a run is written once, before the word becomes odd. Whoever sees the word differ reads it.
//! 5. A waiter enters only while the lock is held and its scope is live; a cancel takes all waiters out in the
//!    step that changes the word. So no waiter of a cancelled run is left behind asleep.
//! 6. A child is entered at its parent only while the parent is live; one made under a cancelled parent is born
//!    cancelled. By (2) either the cancel finds the child, or the child finds the cancel.
//! 7. A token is not reset while one of its parents is cancelled. Its lock is held while the parents' words are
//!    read, and a parent's cancel visits the child after changing its own word: either the reset sees the word,
//!    or the visit comes after the reset and cancels again.
//! 8. When `cancel` returns, every descendant is cancelled, whichever of several callers was first. Waiters are
//!    woken after that, so that no woken waiter meets a live descendant.
//!
//! Deadlock: no lock of this module is taken while another one is held, and no foreign code (waker, alarm,
//! destructor of a node) runs while one is held.

mod cause;
mod node;
mod scope;

pub use cause::Cause;
pub use scope::{Scope, Wait};

use std::sync::Arc;

use crate::{Deadline, DeadlineExceeded};
use node::Node;

/// Stops work, one run at a time. Clones are the same token.
#[derive(Clone, Debug)]
pub struct CancellationToken {
    node: Arc<Node>,
}

/// Why a token was not made live again.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ResetRefused {
    /// A parent is cancelled, and a child of a cancelled parent is not live.
    #[error("a parent of this token is cancelled; reset the parent first")]
    ParentCancelled,
    /// The cancellation that the caller saw is no longer the current one.
    #[error("the token has moved on since the scope was taken")]
    Moved,
}

impl CancellationToken {
    /// A live token without parents.
    pub fn new() -> Self {
        Self {
            node: Node::with_parents(&[]),
        }
    }

    /// A live token that is cancelled when the deadline passes.
    ///
    /// The deadline belongs to the first run: after a cancel and a reset it is gone.
    pub fn until(deadline: &Deadline) -> Self {
        let token = Self::new();
        token.node.cancel_at(deadline);
        token
    }

    /// A token that is cancelled with this one, and forgotten when it is dropped.
    pub fn child(&self) -> Self {
        Self::with_parents(&[self])
    }

    /// A child with a deadline of its own for its first run.
    pub fn child_until(&self, deadline: &Deadline) -> Self {
        let child = self.child();
        child.node.cancel_at(deadline);
        child
    }

    /// A token that is cancelled as soon as any of its parents is.
    pub fn with_parents(parents: &[&Self]) -> Self {
        let parents: Vec<_> = parents.iter().map(|parent| &parent.node).collect();
        Self {
            node: Node::with_parents(&parents),
        }
    }

    /// Cancels the current run and all children. Returns whether this call was the first to do so; only the
    /// first one's cause counts.
    pub fn cancel(&self, cause: Cause) -> bool {
        node::cancel(&self.node, None, cause)
    }

    /// Cancels that run and no later one. Returns whether this call did it.
    ///
    /// # Panics
    ///
    /// If the scope is of another token.
    pub fn cancel_scope(&self, scope: &Scope, cause: Cause) -> bool {
        self.assert_own(scope);
        node::cancel(&self.node, Some(scope.live_word()), cause)
    }

    /// Makes a cancelled token live for the next run; a live one is left as it is.
    ///
    /// Whoever was cancelled stays cancelled. When several parties may reset, use
    /// [`reset_scope`](Self::reset_scope), which undoes only the cancellation that its caller knows of.
    pub fn reset(&self) -> Result<(), ResetRefused> {
        self.node.reset(None)
    }

    /// Makes the token live again after the cancellation of that run, and of no later one.
    ///
    /// # Panics
    ///
    /// If the scope is of another token.
    pub fn reset_scope(&self, scope: &Scope) -> Result<(), ResetRefused> {
        self.assert_own(scope);
        self.node.reset(Some(scope.live_word()))
    }

    /// Whether the current run is cancelled. A worker asks its [`Scope`] instead.
    pub fn is_cancelled(&self) -> bool {
        self.node.is_cancelled()
    }

    /// Why the current run is cancelled, if it is.
    pub fn cause(&self) -> Option<Arc<Cause>> {
        self.scope().cause()
    }

    /// Binds a worker to the current run. On a cancelled token the scope is cancelled from the start:
    /// cancelling before the work starts counts.
    pub fn scope(&self) -> Scope {
        Scope::current(&self.node)
    }

    /// Waits until the run that is current now is cancelled. Cancel safety: may be dropped at any time and
    /// leaves nothing behind.
    pub fn wait(&self) -> Wait {
        self.scope().wait()
    }

    /// Like [`wait`](Self::wait), on a plain thread.
    pub fn wait_blocking(&self, deadline: Deadline) -> Result<Arc<Cause>, DeadlineExceeded> {
        self.scope().wait_blocking(deadline)
    }

    /// How many children and waiters the token keeps track of.
    pub fn tracked(&self) -> (usize, usize) {
        self.node.tracked()
    }

    fn assert_own(&self, scope: &Scope) {
        assert!(
            scope.is_of(&self.node),
            "a scope can only be used with the token that it was taken from"
        );
    }
}

impl Default for CancellationToken {
    fn default() -> Self {
        Self::new()
    }
}
