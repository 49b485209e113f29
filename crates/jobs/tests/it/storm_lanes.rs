//! A lane that somebody else has freed.

use std::{num::NonZeroU16, time::Duration};

use jobs::{AttemptVerdict, Lane, NewJob, WaitingFor};

use crate::{
    subjects::{
        board::{Order, Script},
        daemon::{ended, job_with, submit, until},
    },
    support::Stage,
};

fn in_the_lane(title: &str) -> NewJob {
    job_with(title, Script::Ordered, |facts| {
        facts.lane = Some(Lane {
            name: "narrow".into(),
            limit: NonZeroU16::MIN,
        });
    })
}

#[tokio::test]
async fn a_lane_that_another_daemon_has_freed_is_free_at_the_next_look() {
    let stage = Stage::by_hand();
    let one = stage.sharing("one", 1).await;
    let other = stage.sharing("other", 1).await;
    let first = submit(&one.jobs, in_the_lane("first")).await;
    let run = stage.board.run(first, 1).await;
    // It does not take the second one as well.
    one.jobs.set_max_workers(0).await;
    let second = submit(&other.jobs, in_the_lane("second")).await;
    until("the lane is known to be full", || async {
        (other.jobs.waiting_for(second).await == Some(WaitingFor::Lane)).then_some(())
    })
    .await;
    run.order(Order::End(AttemptVerdict::Succeeded));
    ended(&one.jobs, first).await;
    // Long enough for a look that something was a reason for, and not for one without a reason. Time passes bit by bit: the
    // pause before a look may begin at any of these moments.
    let passing = async {
        for _ in 0..16 {
            stage.pass(Duration::from_millis(260));
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        std::future::pending::<()>().await;
    };
    let run = tokio::select! {
        run = stage.board.run(second, 1) => run,
        () = passing => unreachable!(),
    };
    assert_eq!(&*run.daemon, "other");
    run.order(Order::End(AttemptVerdict::Succeeded));
    ended(&other.jobs, second).await;
}
