//! Checking for cancellation, and creating and dropping a child token, against tokio-util.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;

use crate::measure::{Contender, in_turns};
use crate::report::{Bar, Table};

const TOKIO_UTIL: &str = "tokio-util";
const BARE_ATOMIC: &str = "a bare atomic load (acquire)";

pub(crate) fn measure() -> Result<Table> {
    let mut table = Table::of_ratios(
        "Cancellation",
        "A check is `Scope::is_cancelled` here and `CancellationToken::is_cancelled` there, each thread with a \
         clone of its own. A child is made from one shared parent and dropped at once.",
    );
    for (threads, label) in [(1, "check, 1 thread"), (2, "check, 2 threads")] {
        let measured = in_turns(&checks(), threads);
        let [ours, tokio_util, bare] = measured.as_slice() else {
            unreachable!("three contenders")
        };
        table.compare(label, ours, tokio_util, Bar::TimesFaster(5.0));
        table.compare(label, ours, bare, Bar::WithinTimes(2.0));
    }
    for (threads, label) in [
        (1, "child made and dropped, 1 thread"),
        (2, "child made and dropped, 2 threads"),
    ] {
        let measured = in_turns(&children(), threads);
        let [ours, tokio_util] = measured.as_slice() else {
            unreachable!("two contenders")
        };
        table.compare(label, ours, tokio_util, Bar::None);
    }
    Ok(table)
}

fn checks() -> [Contender<'static>; 3] {
    let scope = kernel::CancellationToken::new();
    let token = tokio_util::sync::CancellationToken::new();
    let word = Arc::new(AtomicU64::new(0));
    [
        Contender::new("tidelock", move || {
            let scope = scope.scope();
            move || {
                black_box(black_box(&scope).is_cancelled());
            }
        }),
        Contender::new(TOKIO_UTIL, move || {
            let token = token.clone();
            move || {
                black_box(black_box(&token).is_cancelled());
            }
        }),
        Contender::new(BARE_ATOMIC, move || {
            let word = Arc::clone(&word);
            move || {
                black_box(black_box(&word).load(Ordering::Acquire) != 0);
            }
        }),
    ]
}

fn children() -> [Contender<'static>; 2] {
    let ours = kernel::CancellationToken::new();
    let theirs = tokio_util::sync::CancellationToken::new();
    [
        Contender::new("tidelock", move || {
            let parent = ours.clone();
            move || drop(black_box(parent.child()))
        }),
        Contender::new(TOKIO_UTIL, move || {
            let parent = theirs.clone();
            move || drop(black_box(parent.child_token()))
        }),
    ]
}
