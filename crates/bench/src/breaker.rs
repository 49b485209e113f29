//! A call through a closed circuit breaker, against three peers.

use anyhow::Result;

use crate::breaker_callers::{
    Breaker, ByHandle, ByName, Caller as _, failsafe, handle, ours, recloser, tower,
};
use crate::measure::{Contender, Measured, in_turns};
use crate::report::{Bar, Table};

#[derive(Clone, Copy, Debug)]
enum Story {
    /// A call that succeeds, with no failure before it.
    Success,
    /// A call that fails and one that succeeds: the counting path.
    FailureThenSuccess,
}

pub(crate) fn measure() -> Result<Table> {
    let mut table = Table::of_ratios(
        "Circuit breaker, closed",
        "All threads share one breaker. Ours is asked through a `Circuit` handle, which is what a caller keeps, \
         and by name, which looks the circuit up in the registry; the peers have no names. A success with no \
         failure before it changes nothing in ours, and so writes nothing, while the peers record it; *failure and \
         success* is a pair of calls that all have to record. `recloser` and `failsafe` (three consecutive \
         failures) wrap an empty function. `tower-resilience` offers its breaker as a tower service only: it is \
         polled ready, called and polled to its end around an inner service that is ready at once, with the clone \
         of the service and the waker made off the clock, and a thread that has to wait for its lock spins first.",
    );
    let stories = [
        (Story::Success, "success", Bar::Faster),
        (Story::FailureThenSuccess, "failure and success", Bar::None),
    ];
    for (story, what, bar) in stories {
        for (threads, count) in [(1, "1 thread"), (2, "2 threads")] {
            let measured = in_turns(&contenders(story)?, threads);
            let (ours, peers) = measured.split_at(2);
            let [by_handle, by_name] = ours else {
                unreachable!("two contenders are ours")
            };
            compare(
                &mut table,
                &format!("{what}, by handle, {count}"),
                by_handle,
                peers,
                bar,
            );
            compare(
                &mut table,
                &format!("{what}, by name, {count}"),
                by_name,
                peers,
                Bar::None,
            );
        }
    }
    Ok(table)
}

fn compare(table: &mut Table, label: &str, ours: &Measured, peers: &[Measured], bar: Bar) {
    for peer in peers {
        table.compare(label, ours, peer, bar);
    }
}

fn contenders(story: Story) -> Result<[Contender<'static>; 5]> {
    let breaker = ours()?;
    Ok([
        contender("tidelock, by handle", ByHandle(handle(&breaker)), story),
        contender("tidelock, by name", ByName(breaker), story),
        contender("recloser", recloser(), story),
        contender("failsafe", failsafe(), story),
        contender("tower-resilience", tower()?, story),
    ])
}

fn contender(name: &'static str, breaker: impl Breaker + 'static, story: Story) -> Contender<'static> {
    match story {
        Story::Success => Contender::new(name, move || {
            let mut caller = breaker.caller();
            move || caller.succeed()
        }),
        Story::FailureThenSuccess => Contender::new(name, move || {
            let mut caller = breaker.caller();
            move || {
                caller.fail();
                caller.succeed();
            }
        }),
    }
}
