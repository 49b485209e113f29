//! Reading: while output is written, after the end, from any position, and slowly.

use std::time::Duration;

use eventlog::{Bookmark, RetentionPolicy, Sequence};
use kernel::{CancellationToken, Cause};
use protocol::{JobChannel, JobId};

use super::engines::{Bench, in_time, joined, next, on_every_engine, until_end};
use crate::{
    history,
    output::{FollowEnd, Output, OutputItem, OutputTail},
};

const UNLIMITED: u64 = u64::MAX;

on_every_engine!(
    a_reader_follows_across_the_end,
    a_reader_may_come_late_and_from_any_place,
    a_job_that_says_nothing_ends_all_the_same,
    a_job_that_is_not_there_is_not_found,
    readers_do_not_mind_each_other,
    a_slow_reader_gets_everything_in_the_end,
    a_wait_that_is_dropped_skips_nothing,
    a_reader_that_is_cancelled_is_told,
);

fn sequence(item: &OutputItem) -> u64 {
    match item {
        OutputItem::Piece(piece) => piece.sequence.get(),
        OutputItem::Progress { sequence, .. } => sequence.get(),
        OutputItem::Resync { .. } | OutputItem::End(..) => panic!("unexpected: {item:?}"),
    }
}

/// Writes some lines alternating between both channels, so that each is a separate event. Returns the number of bytes.
async fn say_lines(output: &Output, count: u64) -> u64 {
    let mut bytes = 0;
    for number in 0..count {
        let channel = if number % 2 == 0 {
            JobChannel::Stdout
        } else {
            JobChannel::Stderr
        };
        let line = format!("line {number}\n");
        bytes += line.len() as u64;
        in_time(output.write(channel, line.as_bytes())).await.unwrap();
    }
    bytes
}

/// Checks that the items are complete, without gaps or repeats.
fn assert_whole(items: &[OutputItem], after: u64, bytes: u64) {
    let places: Vec<u64> = items.iter().map(sequence).collect();
    let expected: Vec<u64> = (after + 1..=after + places.len() as u64).collect();
    assert_eq!(places, expected);
    let told: usize = joined(items).0.iter().map(|(_, text)| text.len()).sum();
    assert_eq!(told as u64, bytes);
}

async fn a_reader_follows_across_the_end(mut bench: Bench) {
    let mut tail = bench.follow(0);
    let output = bench.output(1, UNLIMITED);
    // Write a line before each read, so that the reader is live for some of them.
    let mut items = Vec::new();
    for number in 0..20 {
        let line = format!("{number}\n");
        output.write(JobChannel::Stdout, line.as_bytes()).await.unwrap();
        items.push(next(&mut tail).await.unwrap());
        if number == 10 {
            bench.move_job().await;
        }
    }
    let expected: String = (0..20).map(|number| format!("{number}\n")).collect();
    assert_eq!(joined(&items).0, [(JobChannel::Stdout, expected)]);
    output.write(JobChannel::Stdout, b"the rest").await.unwrap();
    in_time(output.finish()).await.unwrap();
    let ended = bench.end_job().await;
    let (rest, job) = until_end(&mut tail).await;
    assert_eq!(joined(&rest).0, [(JobChannel::Stdout, "the rest".to_owned())]);
    assert_eq!(job, ended);
    let kept = crate::output::summary(&bench.log, bench.job).await.unwrap();
    assert_eq!(
        next(&mut tail).await.unwrap(),
        OutputItem::End(Box::new(ended), kept)
    );
}

async fn a_reader_may_come_late_and_from_any_place(mut bench: Bench) {
    let output = bench.output(1, UNLIMITED);
    let bytes = say_lines(&output, 100).await;
    let last = in_time(output.finish()).await.unwrap().last_sequence.get();
    let ended = bench.end_job().await;
    let (all, job) = until_end(&mut bench.follow(0)).await;
    assert_whole(&all, 0, bytes);
    assert_eq!((job, all.len() as u64), (ended, last));
    for after in [1, 31, 32, 33, last - 1, last] {
        let (items, _) = until_end(&mut bench.follow(after)).await;
        assert_eq!(
            items,
            all.get(after as usize..).unwrap_or_default(),
            "after {after}"
        );
    }
    // Events beyond the end that a reader has seen were lost, so it gets a resync.
    let (items, _) = until_end(&mut bench.follow(last + 5)).await;
    let after = Sequence::from_u64(last);
    assert_eq!(items, [OutputItem::Resync { after }]);
    // A reader comes back to the event that it has seen, or a different event has replaced it: then it starts
    // over.
    let OutputItem::Piece(piece) = &all[40] else {
        panic!("{:?} is no piece", all[40]);
    };
    let seen = Bookmark {
        sequence: piece.sequence,
        at_ms: Some(piece.at_ms),
    };
    let other = Bookmark {
        at_ms: Some(piece.at_ms - 1),
        ..seen
    };
    let scope = CancellationToken::new().scope();
    let (items, _) = until_end(&mut OutputTail::new(&bench.log, bench.job, seen, &scope)).await;
    assert_eq!(items, all[41..]);
    let (items, _) = until_end(&mut OutputTail::new(&bench.log, bench.job, other, &scope)).await;
    let after = Sequence::START;
    assert_eq!(items[0], OutputItem::Resync { after });
    assert_eq!(items[1..], all);
}

async fn a_job_that_says_nothing_ends_all_the_same(mut bench: Bench) {
    let mut early = bench.follow(0);
    let waiting = tokio::time::timeout(Duration::from_millis(50), early.next()).await;
    assert!(waiting.is_err(), "there is nothing to tell yet");
    let ended = bench.end_job().await;
    for tail in [&mut early, &mut bench.follow(0)] {
        assert_eq!(until_end(tail).await, (vec![], ended.clone()));
    }
}

async fn a_job_that_is_not_there_is_not_found(bench: Bench) {
    let scope = CancellationToken::new().scope();
    let mut tail = OutputTail::new(&bench.log, JobId::generate(), Sequence::START.into(), &scope);
    assert!(matches!(next(&mut tail).await, Err(FollowEnd::NotFound)));
}

async fn readers_do_not_mind_each_other(mut bench: Bench) {
    let output = bench.output(1, UNLIMITED);
    let mut first = bench.follow(0);
    let mut bytes = say_lines(&output, 10).await;
    let mut items = vec![next(&mut first).await.unwrap(), next(&mut first).await.unwrap()];
    let mut second = bench.follow(2);
    bytes += say_lines(&output, 300).await;
    let say = async {
        bytes += say_lines(&output, 300).await;
        output.finish().await.unwrap();
        bench.end_job().await
    };
    let (ended, (rest, first_job), (others, second_job)) =
        in_time(async { tokio::join!(say, until_end(&mut first), until_end(&mut second)) }).await;
    assert_eq!(others, rest);
    items.extend(rest);
    assert_whole(&items, 0, bytes);
    assert_eq!((first_job, second_job), (ended.clone(), ended));
}

async fn a_slow_reader_gets_everything_in_the_end(mut bench: Bench) {
    let output = bench.output(1, UNLIMITED);
    let mut tail = bench.follow(0);
    let (mut items, mut bytes) = (Vec::new(), 0);
    for _ in 0..5 {
        // Far more than the log buffers for tails.
        bytes += say_lines(&output, 200).await;
        items.push(next(&mut tail).await.unwrap());
    }
    in_time(output.finish()).await.unwrap();
    bench.end_job().await;
    items.extend(until_end(&mut tail).await.0);
    assert_whole(&items, 0, bytes);
}

async fn a_wait_that_is_dropped_skips_nothing(mut bench: Bench) {
    let output = bench.output(1, UNLIMITED);
    let mut tail = bench.follow(0);
    let mut bytes = 0;
    let say = async {
        for _ in 0..20 {
            bytes += say_lines(&output, 10).await;
            bench.move_job().await;
        }
        output.finish().await.unwrap();
        bench.end_job().await
    };
    let read = async {
        let mut items = Vec::new();
        for look in 0.. {
            // Vary the wait, so that it is dropped in every phase.
            let patience = Duration::from_micros(look % 40 * 250);
            match tokio::time::timeout(patience, tail.next()).await {
                Ok(Ok(OutputItem::End(job, _))) => return (items, *job),
                Ok(item) => items.push(item.unwrap()),
                Err(_) => {}
            }
        }
        unreachable!("there are many numbers")
    };
    let (ended, (items, job)) = in_time(async { tokio::join!(say, read) }).await;
    assert_whole(&items, 0, bytes);
    assert_eq!(job, ended);
}

async fn a_reader_that_is_cancelled_is_told(bench: Bench) {
    let token = CancellationToken::new();
    let mut tail = OutputTail::new(&bench.log, bench.job, Sequence::START.into(), &token.scope());
    let cancel = async {
        tokio::task::yield_now().await;
        token.cancel(Cause::new("a test", "to see"));
    };
    let (end, ()) = in_time(async { tokio::join!(tail.next(), cancel) }).await;
    assert!(matches!(end, Err(FollowEnd::Cancelled(_))), "{end:?}");
    assert!(matches!(next(&mut tail).await, Err(FollowEnd::Cancelled(_))));
}

#[tokio::test]
async fn a_reader_learns_that_pieces_were_dropped() {
    let mut bench = super::engines::sqlite().await;
    let output = bench.output(1, UNLIMITED);
    for _ in 0..10 {
        say_lines(&output, 10).await;
    }
    // One reader that has read something, and one that comes later.
    let mut early = bench.follow(0);
    assert_eq!(sequence(&next(&mut early).await.unwrap()), 1);
    // More than is buffered for followers.
    for _ in 0..20 {
        say_lines(&output, 500).await;
    }
    let last = in_time(output.finish()).await.unwrap().last_sequence.get();
    bench.end_job().await;
    let policy = RetentionPolicy {
        max_bytes_per_stream: Some(50),
        ..RetentionPolicy::default()
    };
    let trimmed = bench.log.trim(history::OUTPUT_KIND, policy).await.unwrap();
    assert_eq!(trimmed.len(), 1);
    let mut late = bench.follow(0);
    let OutputItem::Resync { after } = next(&mut late).await.unwrap() else {
        panic!("it was not told");
    };
    let (rest, _) = until_end(&mut late).await;
    assert_eq!(sequence(&rest[0]), after.get() + 1);
    assert_eq!(after.get() + rest.len() as u64, last);
    // The early reader still has some buffered events, and then gets a resync too.
    loop {
        match next(&mut early).await.unwrap() {
            OutputItem::Resync { after: told } => break assert_eq!(told, after),
            item => assert!(sequence(&item) <= after.get()),
        }
    }
    assert_eq!(until_end(&mut early).await.0, rest);
}
