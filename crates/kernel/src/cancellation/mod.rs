//! Cancellation that belongs to one run of some work.
//!
//! A token is reused from run to run: `cancel` stops the current run, and `reset` makes the token live for the
//! next one. The mistake to avoid is a reset that undoes a cancellation before a worker has noticed it. A lock
//! around the reset doesn't help, because a waiter that was woken by the cancel may still look too late. So a
//! cancellation belongs to a generation, and a worker holds a [`Scope`] of the generation it works in.
//!
//! Invariants:
//!
//! 1. A node has one *word*: even is live, odd is cancelled. It starts even and only ever grows by one: cancel
//!    goes from even to odd, reset from odd to even.
//! 2. The word changes only while the node's lock is held, together with its atomic mirror. Code that holds the
//!    lock decides by the word; everyone else reads the mirror.
//! 3. A scope remembers the even word of its run and is cancelled as soon as the word differs. By (1) it never
//!    becomes live again.
//! 4. The cause of a run is written once, before the word becomes odd. So whoever sees a different word can read
//!    the cause.
//! 5. A waiter registers only while the lock is held and its scope is live, and a cancel removes all waiters in
//!    the step that changes the word. So no waiter of a cancelled run stays asleep.
//! 6. A child registers with its parent only while the parent is live. A child created under a cancelled parent
//!    starts out cancelled. By (2) either the cancel sees the child, or the child sees the cancel.
//! 7. A token isn't reset while one of its parents is cancelled. The reset holds the token's lock while it reads
//!    the parents' words, and a parent's cancel visits the child after changing its own word. So either the reset
//!    sees the parent's word, or the visit comes after the reset and cancels the child again.
//! 8. When `cancel` returns, every descendant is cancelled, even if several callers cancel at once. Waiters are
//!    woken after that, so no woken waiter meets a live descendant.
//!
//! No deadlocks: no lock of this module is taken while another one is held, and no foreign code (waker, alarm,
//! destructor of a node) runs while one is held.

mod cause;
mod node;
mod scope;

pub use cause::Cause;
pub use scope::{Scope, WaitForCancellation};

use std::sync::Arc;

use crate::{Deadline, DeadlineExceeded};
use node::Node;

/// Cancels work, one run at a time. Clones refer to the same token.
///
/// ```
/// use kernel::{CancellationToken, Cause};
///
/// let token = CancellationToken::new();
/// let first_run = token.scope();
/// assert!(token.cancel(Cause::new("user", "pressed Ctrl-C")));
/// assert!(first_run.is_cancelled());
///
/// // The token is reused for the next run; the first one stays cancelled.
/// token.reset()?;
/// let second_run = token.scope();
/// assert!(!second_run.is_cancelled());
/// assert!(first_run.is_cancelled());
/// assert_eq!(first_run.cause().unwrap().who, "user");
/// # Ok::<(), kernel::ResetRefused>(())
/// ```
#[derive(Clone, Debug)]
pub struct CancellationToken {
    node: Arc<Node>,
}

/// Why a token could not be reset.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ResetRefused {
    /// A parent is cancelled, and a child is never live under a cancelled parent.
    #[error("a parent of this token is cancelled; reset the parent first")]
    ParentCancelled,
    /// The cancellation that the caller saw isn't the current one.
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
    /// The deadline applies to the first run only. A reset doesn't renew it.
    pub fn until(deadline: &Deadline) -> Self {
        let token = Self::new();
        token.node.cancel_at(deadline);
        token
    }

    /// A token that is cancelled together with this one. Dropping the child unregisters it.
    pub fn child(&self) -> Self {
        Self::with_parents(&[self])
    }

    /// A child whose first run has its own deadline.
    pub fn child_until(&self, deadline: &Deadline) -> Self {
        let child = self.child();
        child.node.cancel_at(deadline);
        child
    }

    /// A token that is cancelled as soon as one of its parents is.
    pub fn with_parents(parents: &[&Self]) -> Self {
        let parents: Vec<_> = parents.iter().map(|parent| &parent.node).collect();
        Self {
            node: Node::with_parents(&parents),
        }
    }

    /// Cancels the current run and all children. Returns whether this call was the first; later calls don't
    /// replace the cause.
    pub fn cancel(&self, cause: Cause) -> bool {
        node::cancel(&self.node, None, cause)
    }

    /// Cancels the run of this scope, but no later one. Returns whether this call did it.
    ///
    /// # Panics
    ///
    /// If the scope belongs to another token.
    pub fn cancel_scope(&self, scope: &Scope, cause: Cause) -> bool {
        self.assert_own(scope);
        node::cancel(&self.node, Some(scope.live_word()), cause)
    }

    /// Makes a cancelled token live for the next run. A live token stays as it is.
    ///
    /// Scopes of the cancelled run stay cancelled. If several parties may reset the token, use
    /// [`reset_scope`](Self::reset_scope), which only undoes the cancellation that its caller has seen.
    pub fn reset(&self) -> Result<(), ResetRefused> {
        self.node.reset(None)
    }

    /// Makes the token live again, but only if the cancellation of this scope's run is still the current one.
    ///
    /// # Panics
    ///
    /// If the scope belongs to another token.
    pub fn reset_scope(&self, scope: &Scope) -> Result<(), ResetRefused> {
        self.assert_own(scope);
        self.node.reset(Some(scope.live_word()))
    }

    /// Whether the current run is cancelled. Workers ask their [`Scope`] instead.
    pub fn is_cancelled(&self) -> bool {
        self.node.is_cancelled()
    }

    /// The cause, if the current run is cancelled.
    pub fn cause(&self) -> Option<Arc<Cause>> {
        self.scope().cause()
    }

    /// Binds a worker to the current run. If the token is cancelled, so is the scope: a cancel that comes before
    /// the work starts counts.
    pub fn scope(&self) -> Scope {
        Scope::current(&self.node)
    }

    /// Waits until the run that is current now is cancelled. Cancel safety: dropping the future leaves nothing
    /// behind.
    pub fn wait(&self) -> WaitForCancellation {
        self.scope().wait()
    }

    /// Like [`wait`](Self::wait), but blocks a plain thread.
    pub fn wait_blocking(&self, deadline: Deadline) -> Result<Arc<Cause>, DeadlineExceeded> {
        self.scope().wait_blocking(deadline)
    }

    /// How many children and how many waiters are registered.
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
