//! Compacting turns must not change what any reader ends up with.

use protocol::TurnId;

use super::*;
use crate::follow::FollowFrom;
use crate::follow::tests::Turns;

async fn left(turns: &Turns, turn: TurnId) -> Vec<u64> {
    let stream = turn_stream(turn).unwrap();
    let page = turns.log.read(&stream, Sequence::START, 10_000).await.unwrap();
    page.events.iter().map(|event| event.sequence.get()).collect()
}

#[tokio::test]
async fn every_reader_ends_up_with_the_same() {
    let turns = Turns::open();
    let turn = turns.done(150).await;
    let last = turns.last(turn).await;
    let mut before = Vec::new();
    for place in 0..=last {
        before.push(turns.prefix(turn, place).await);
    }
    let whole = before.last().unwrap().clone();
    // One reader is in the middle of the turn.
    let mut in_the_middle = turns.follow(turn, FollowFrom::Start).await;
    assert_eq!(in_the_middle.step().await, None);

    assert_eq!(compact(&turns.log, turn).await.unwrap(), last - 1);
    assert_eq!(left(&turns, turn).await, [last]);
    assert_eq!(in_the_middle.read_to_the_end().await, (last, TurnState::Done));
    assert_eq!(in_the_middle.has, whole);
    for (place, has) in (0..).zip(before) {
        let from = FollowFrom::After(Sequence::from_u64(place).into());
        let mut reader = turns.follow(turn, from).await;
        reader.has = has;
        assert_eq!(reader.read_to_the_end().await, (last, TurnState::Done));
        assert_eq!(reader.has, whole, "after {place}");
        // Only a reader that has everything, or lacks only the last event, needs no snapshot.
        assert_eq!(reader.resyncs, u64::from(place + 1 < last), "after {place}");
    }
    // The compacted transcript is kept, however long no one reads it.
    turns.clock.advance(Duration::from_secs(24 * 60 * 60));
    turns.log.collect_blobs().await.unwrap();
    let mut reader = turns.follow(turn, FollowFrom::Last(20)).await;
    reader.read_to_the_end().await;
    assert_eq!(reader.has, whole);
    assert_eq!(compact(&turns.log, turn).await.unwrap(), 0);
}

#[tokio::test]
async fn what_a_crash_has_left_half_way_is_finished() {
    let turns = Turns::open();
    let turn = turns.done(100).await;
    let seen = store::turn(&turns.log, turn).await.unwrap();
    write_down(&turns.log, seen).await.unwrap().unwrap();
    let last = turns.last(turn).await;
    assert_eq!(left(&turns, turn).await.len() as u64, last);
    let folded = compact_all(&turns.log, UnixMs(1000), Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(
        folded,
        Folded {
            turns: 1,
            events: last - 1
        }
    );
    assert_eq!(left(&turns, turn).await, [last]);
}

#[tokio::test]
async fn only_what_is_long_and_was_over_for_long_is_folded() {
    let turns = Turns::open();
    let (running, small, long) = (
        turns.running(100).await,
        turns.done(60).await,
        turns.done(61).await,
    );
    let fold = async |older_than| {
        // They ended at 1000.
        let now = UnixMs(1500);
        compact_all(&turns.log, now, Duration::from_millis(older_than))
            .await
            .unwrap()
    };
    assert_eq!(fold(501).await, Folded::default());
    assert_eq!(fold(500).await, Folded { turns: 1, events: 63 });
    assert_eq!(fold(0).await, Folded::default());
    let counts = [
        left(&turns, running).await.len(),
        left(&turns, small).await.len(),
        left(&turns, long).await.len(),
    ];
    assert_eq!(counts, [102, 63, 1]);
}

#[tokio::test]
async fn a_turn_that_moved_meanwhile_keeps_its_events() {
    let turns = Turns::open();
    let turn = turns.done(100).await;
    let seen = store::turn(&turns.log, turn).await.unwrap();
    turns.add(turn, &[]).await;
    let refused = write_down(&turns.log, seen).await;
    assert!(matches!(
        refused,
        Err(SessionError::Commit(CommitError::Conflict { .. }))
    ));
    assert_eq!(left(&turns, turn).await.len(), 103);
}
