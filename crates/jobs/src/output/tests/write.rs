//! Writing: order, limits, fences, and the end.

use std::{sync::Arc, time::Duration};

use eventlog::{LogError, Sequence};
use kernel::{Clock, ManualClock};
use protocol::JobChannel;
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::engines::{Bench, Told, by_channel, in_time, joined, next, on_every_engine, progress};
use crate::{
    history,
    output::{
        Output, OutputError, OutputItem, OutputOptions, OutputSummary, summary,
        writer::{self, Message},
    },
};

const UNLIMITED: u64 = u64::MAX;

on_every_engine!(
    each_channel_keeps_its_order,
    who_says_nothing_costs_nothing,
    what_is_too_long_is_cut_to_the_byte,
    a_later_attempt_goes_on_and_fences_the_earlier,
    a_later_attempt_sees_what_readers_do_not_see_yet,
    a_worker_without_its_lease_is_fenced,
    what_was_taken_before_the_end_is_written,
    a_handle_that_is_dropped_loses_nothing,
    progress_comes_at_last_without_another_word,
);

async fn each_channel_keeps_its_order(bench: Bench) {
    let output = bench.output(1, UNLIMITED);
    let lines =
        |name: &str| -> Vec<String> { (0..2000).map(|line| format!("{name} {line} €\n")).collect() };
    let say = async |channel, lines: Vec<String>| {
        for line in lines {
            // Split within the character, so that it has to be put back together.
            let (first, rest) = line.as_bytes().split_at(line.len() - 3);
            output.write(channel, first).await.unwrap();
            output.write(channel, rest).await.unwrap();
        }
    };
    in_time(async {
        tokio::join!(
            say(JobChannel::Stdout, lines("out")),
            say(JobChannel::Stderr, lines("err"))
        );
    })
    .await;
    let finished = in_time(output.finish()).await.unwrap();
    let (told, _) = bench.told().await;
    let (out, err) = (lines("out").concat(), lines("err").concat());
    let bytes = (out.len() + err.len()) as u64;
    assert_eq!(by_channel(&told), [("stderr", err), ("stdout", out)].into());
    let expected = OutputSummary {
        bytes,
        last_sequence: finished.last_sequence,
        ..OutputSummary::default()
    };
    assert_eq!(finished, expected);
    assert_eq!(summary(&bench.log, bench.job).await.unwrap(), finished);
    in_time(bench.tasks.finished()).await;
}

async fn who_says_nothing_costs_nothing(bench: Bench) {
    for attempt in [1, 2] {
        let output = bench.output(attempt, UNLIMITED);
        output.write(JobChannel::Stdout, b"").await.unwrap();
        assert_eq!(output.finish().await.unwrap(), OutputSummary::default());
        assert_eq!(bench.tasks.running(), 0);
    }
    let head = bench.log.head(&history::output_stream(bench.job)).await.unwrap();
    assert_eq!(head, None);
}

async fn what_is_too_long_is_cut_to_the_byte(bench: Bench) {
    const LIMIT: usize = 200_000;
    const ENDING: usize = 65_536;
    // More than fits into the queue at once.
    let text: String = (0..400_000).map(|line| format!("line {line}\n")).collect();
    let output = bench.output(1, LIMIT as u64);
    in_time(output.write(JobChannel::Stdout, text.as_bytes()))
        .await
        .unwrap();
    let finished = in_time(output.finish()).await.unwrap();
    let left_out = text.len() - LIMIT - ENDING;
    let (told, _) = bench.told().await;
    let note = |text: String| (JobChannel::Note, text);
    let expected: Told = vec![
        (JobChannel::Stdout, text[..LIMIT].to_owned()),
        note(format!(
            "output beyond {LIMIT} bytes is not kept; the end of it will follow"
        )),
        note(format!("{left_out} bytes were left out here")),
        (JobChannel::Stdout, text[text.len() - ENDING..].to_owned()),
    ];
    assert!(told == expected, "not what was to be kept");
    assert_eq!(
        (finished.bytes, finished.cut_bytes),
        (text.len() as u64, left_out as u64)
    );
    assert_eq!(summary(&bench.log, bench.job).await.unwrap(), finished);
}

async fn a_later_attempt_goes_on_and_fences_the_earlier(bench: Bench) {
    let first = bench.output(1, UNLIMITED);
    first.write(JobChannel::Stdout, b"one\n").await.unwrap();
    first.progress(progress(1, None, "")).await.unwrap();
    first_is_written(&bench, "one\n").await;

    let second = bench.output(2, UNLIMITED);
    second.write(JobChannel::Stderr, b"two\n").await.unwrap();
    let finished = in_time(second.finish()).await.unwrap();
    assert_eq!((finished.bytes, finished.progress), (8, None));

    first.write(JobChannel::Stdout, b"late\n").await.unwrap();
    assert!(matches!(in_time(first.finish()).await, Err(OutputError::Fenced)));
    assert!(matches!(
        first.write(JobChannel::Stdout, b"x").await,
        Err(OutputError::Fenced)
    ));
    let again = bench.output(2, UNLIMITED);
    again.write(JobChannel::Stdout, b"late\n").await.unwrap();
    assert!(
        matches!(in_time(again.finish()).await, Err(OutputError::Fenced)),
        "an attempt has one writer"
    );

    let (told, _) = bench.told().await;
    let expected: Told = vec![
        (JobChannel::Stdout, "one\n".to_owned()),
        (JobChannel::Note, "attempt 2".to_owned()),
        (JobChannel::Stderr, "two\n".to_owned()),
    ];
    assert_eq!(told, expected);
    in_time(bench.tasks.finished()).await;
}

/// Waits until readers see the first piece, and the progress reported right after it.
async fn first_is_written(bench: &Bench, text: &str) {
    let mut tail = bench.follow(0);
    let mut items = Vec::new();
    while joined(&items)
        != (
            vec![(JobChannel::Stdout, text.to_owned())],
            vec![progress(1, None, "")],
        )
    {
        items.push(next(&mut tail).await.unwrap());
    }
}

async fn a_later_attempt_sees_what_readers_do_not_see_yet(bench: Bench) {
    let mut expected = Told::new();
    for attempt in 1..=5 {
        let output = bench.output(attempt, UNLIMITED);
        output.write(JobChannel::Stdout, b"x").await.unwrap();
        let finished = in_time(output.finish()).await.unwrap();
        assert_eq!(finished.bytes, u64::from(attempt));
        if attempt > 1 {
            expected.push((JobChannel::Note, format!("attempt {attempt}")));
        }
        expected.push((JobChannel::Stdout, "x".to_owned()));
    }
    let late = bench.output(4, UNLIMITED);
    late.write(JobChannel::Stdout, b"late").await.unwrap();
    assert!(matches!(in_time(late.finish()).await, Err(OutputError::Fenced)));
    assert_eq!(bench.told().await.0, expected);
}

async fn a_worker_without_its_lease_is_fenced(bench: Bench) {
    let output = bench.output(1, UNLIMITED);
    output.write(JobChannel::Stdout, b"one\n").await.unwrap();
    let mut tail = bench.follow(0);
    assert!(matches!(next(&mut tail).await.unwrap(), OutputItem::Piece(_)));
    bench.log.release(&bench.lease).await.unwrap();
    let refused = in_time(async {
        loop {
            // The queue accepts some more; then the writer finds out, and so does every caller.
            if let Err(error) = output.write(JobChannel::Stdout, &[b'x'; 100_000]).await {
                return error;
            }
        }
    });
    assert!(matches!(refused.await, OutputError::Fenced));
    assert!(matches!(
        output.progress(progress(1, None, "")).await,
        Err(OutputError::Fenced)
    ));
    assert!(matches!(in_time(output.finish()).await, Err(OutputError::Fenced)));
    assert_eq!(bench.told().await.0, [(JobChannel::Stdout, "one\n".to_owned())]);
    in_time(bench.tasks.finished()).await;
}

async fn what_was_taken_before_the_end_is_written(bench: Bench) {
    let output = bench.output(1, UNLIMITED);
    let say = async {
        let mut taken = String::new();
        loop {
            let line = format!("line {}\n", taken.len());
            match output.write(JobChannel::Stdout, line.as_bytes()).await {
                Ok(()) => taken += &line,
                Err(error) => return (taken, error),
            }
            tokio::task::yield_now().await;
        }
    };
    let finish = async {
        let mut tail = bench.follow(0);
        for _ in 0..3 {
            next(&mut tail).await.unwrap();
        }
        output.finish().await.unwrap()
    };
    let ((taken, error), finished) = in_time(async { tokio::join!(say, finish) }).await;
    assert!(matches!(error, OutputError::Finished), "{error:?}");
    assert!(matches!(output.finish().await, Err(OutputError::Finished)));
    let (told, _) = bench.told().await;
    assert_eq!(told, [(JobChannel::Stdout, taken.clone())]);
    assert_eq!(finished.bytes, taken.len() as u64);
    in_time(bench.tasks.finished()).await;
}

/// Many threads, so that some are in the middle of a write when the end comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_end_loses_nothing_that_was_taken_by_any_thread() {
    let bench = super::engines::sqlite().await;
    let mut taken = 0;
    for attempt in 1..=100 {
        let output = bench.output(attempt, UNLIMITED);
        let writers: Vec<_> = (0..4)
            .map(|_| {
                let output = output.clone();
                tokio::spawn(async move {
                    let mut taken = 0;
                    while output.write(JobChannel::Stdout, b"x").await.is_ok() {
                        taken += 1;
                    }
                    taken
                })
            })
            .collect();
        output.write(JobChannel::Stdout, b"x").await.unwrap();
        for _ in 0..attempt {
            tokio::task::yield_now().await;
        }
        let finished = in_time(output.finish()).await.unwrap();
        taken += 1;
        for writer in writers {
            taken += in_time(writer).await.unwrap();
        }
        assert_eq!(finished.bytes, taken, "up to attempt {attempt}");
    }
    let told = by_channel(&bench.told().await.0);
    assert_eq!(told["stdout"].len() as u64, taken);
}

/// Messages queued behind the finish request were accepted too, and may exceed one commit.
#[tokio::test]
async fn what_is_queued_behind_the_end_is_written() {
    let bench = super::engines::sqlite().await;
    let (messages, received) = mpsc::channel(1000);
    let (reply, finished) = oneshot::channel();
    messages.try_send(Message::Finish { reply }).unwrap();
    let room = Arc::new(Semaphore::new(1000));
    for _ in 0..900 {
        let (channel, bytes) = (JobChannel::Note, b"n".to_vec());
        let room = Arc::clone(&room).try_acquire_owned().unwrap();
        messages
            .try_send(Message::Piece { channel, bytes, room })
            .unwrap();
    }
    in_time(writer::run(
        bench.options(1, UNLIMITED),
        received,
        room,
        Arc::default(),
    ))
    .await;
    let finished = finished.await.unwrap().unwrap();
    assert_eq!(finished.last_sequence.get(), 900);
    assert_eq!(bench.told().await.0.len(), 900);
}

async fn a_handle_that_is_dropped_loses_nothing(bench: Bench) {
    let output = bench.output(1, UNLIMITED);
    output
        .write(JobChannel::Stdout, "one\n::progress 1".as_bytes())
        .await
        .unwrap();
    drop(output);
    in_time(bench.tasks.finished()).await;
    let expected = (
        vec![(JobChannel::Stdout, "one\n".to_owned())],
        vec![progress(1, None, "")],
    );
    assert_eq!(bench.told().await, expected);
}

async fn progress_comes_at_last_without_another_word(bench: Bench) {
    let clock = ManualClock::new();
    let output = Output::new(OutputOptions {
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        ..bench.options(1, UNLIMITED)
    });
    let say = async |done| output.progress(progress(done, Some(50), "")).await.unwrap();
    say(1).await;
    let mut tail = bench.follow(0);
    let mut items = vec![next(&mut tail).await.unwrap()];
    for done in 2..=50 {
        say(done).await;
        output.write(JobChannel::Stdout, b".").await.unwrap();
    }
    while joined(&items).0 != [(JobChannel::Stdout, ".".repeat(49))] {
        items.push(next(&mut tail).await.unwrap());
    }
    let (_, said) = joined(&items);
    assert_eq!(said, [progress(1, Some(50), "")], "no time has passed");
    let known = summary(&bench.log, bench.job).await.unwrap().progress;
    assert_eq!(known, Some(progress(50, Some(50), "")), "the head has the latest");
    clock.advance(Duration::from_millis(100));
    let told = next(&mut tail).await.unwrap();
    assert_eq!(joined(&[told]).1, [progress(50, Some(50), "")]);
    in_time(output.finish()).await.unwrap();
}

#[tokio::test]
async fn a_log_that_fails_is_told_to_whoever_writes() {
    // An unreadable head stands for a damaged log.
    let bench = super::engines::sqlite().await;
    let write = eventlog::Write {
        stream: history::output_stream(bench.job),
        expected: eventlog::Version::NONE,
        head: Some(eventlog::Head {
            kind: Arc::from(history::OUTPUT_KIND),
            status: Arc::from("kept"),
            body: Arc::from(*b"{"),
            blobs: Vec::new(),
        }),
        events: Vec::new(),
    };
    bench.log.commit(eventlog::Commit::one(write)).await.unwrap();
    let output = bench.output(2, UNLIMITED);
    output.write(JobChannel::Stdout, b"x").await.unwrap();
    let refused = in_time(output.finish()).await;
    assert!(
        matches!(refused, Err(OutputError::Log(LogError::Corrupt(_)))),
        "{refused:?}"
    );
    assert!(summary(&bench.log, bench.job).await.is_err());
    let page = bench
        .log
        .read(&history::output_stream(bench.job), Sequence::START, 10)
        .await
        .unwrap();
    assert_eq!(page.events, []);
    in_time(bench.tasks.finished()).await;
}
