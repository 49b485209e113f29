//! Ten thousand connections that ask nothing: others are answered at once, and afterwards nothing is left of them.

use std::net::TcpStream;
use std::time::Instant;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::harness::wait_for;
use crate::security_stage::{ANSWER_LIMIT, Target};
use crate::tools::skip;

const IDLE: u64 = 10_000;
/// For everything else that the test has open.
const SPARE: u64 = 500;

#[test]
fn ten_thousand_idle_connections_keep_nobody_from_being_answered() {
    let limit = getrlimit(Resource::Nofile);
    if limit.maximum.is_some_and(|most| most < IDLE + SPARE) {
        return skip("this machine does not let a process have 10,000 connections open");
    }
    let current = limit.maximum.map_or(IDLE + SPARE, |most| most.min(IDLE + SPARE));
    let wanted = Rlimit {
        current: Some(limit.current.unwrap_or(u64::MAX).max(current)),
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, wanted).unwrap();

    let target = Target::new();
    target.answers_others();
    let (descriptors, memory) = (target.sockets(), target.memory_mib());
    let mut idle: Vec<TcpStream> = Vec::new();
    let began = Instant::now();
    for number in 0..IDLE {
        idle.push(TcpStream::connect(target.address).unwrap());
        // Also while they come.
        if number % 1_000 == 0 {
            target.answers_others();
        }
    }
    for _ in 0..10 {
        target.answers_others();
        target.world.run(&["status"]).expect(0);
    }
    assert!(
        began.elapsed() < 4 * ANSWER_LIMIT,
        "others had to wait: {:?}",
        began.elapsed()
    );
    // They are bounded in number, so that descriptors are left for work.
    assert!(target.sockets() < descriptors + 1_000, "{}", target.sockets());
    let most = target.memory_mib();
    assert!(most < memory + 200, "{memory} MiB became {most} MiB");

    drop(idle);
    wait_for("the sockets to be given back", || {
        target.sockets() <= descriptors + 8
    });
    target.world.run(&["status"]).expect(0);
}
