//! Streams that nobody reads: each costs little, and when they are gone their memory is, too.

use std::time::Duration;

use rustix::net::sockopt;
use serde_json::Value;

use crate::harness::wait_for_within;
use crate::security_stage::{Peer, Target};

const READERS: u64 = 400;
/// What a reader may cost that does not read: its part of what is read ahead, and what is on its way to it.
const READER_LIMIT_KIB: u64 = 150;
/// What the kernel may hold for the daemon of what is on its way to all readers, in mebibytes, and what a reader takes itself.
const UNSENT_MIB: u64 = READERS / 4;
const TAKEN_BYTES: usize = 64 * 1024;
/// What may stay of all of them, in mebibytes.
const REST_MIB: u64 = 12;

/// A job that has written much more than fits between a daemon and a reader: small pieces first, so that a reader that goes by
/// their size asks for several of the large ones.
fn written_job(target: &Target) -> String {
    let line = "for i in 1 2 3 4 5 6 7; do echo $i; sleep 0.1; done; yes abcdefghijklmnopqrstuvwxyz | head -c 8000000";
    let outcome = target
        .world
        .run(&["job", "run", "--wait", "--json", "--", "sh", "-c", line])
        .expect(0);
    let last: Value = serde_json::from_str(outcome.stdout.lines().last().unwrap()).unwrap();
    last["end"]["id"].as_str().unwrap().to_owned()
}

#[test]
fn readers_that_do_not_read_cost_little_and_leave_nothing_behind() {
    let target = Target::new();
    let job = written_job(&target);
    let head = target.head(&format!("GET /v1/jobs/{job}/logs?follow=true HTTP/1.1"));
    // What one reader needs that others need as well is there before it is measured.
    let mut first = target.connect();
    first.write(&format!("{head}\r\n")).unwrap();
    assert!(first.up_to("event: output").contains("text/event-stream"));
    drop(first);

    let before = target.memory_mib();
    let unread: Vec<Peer> = (0..READERS)
        .map(|_| {
            let mut peer = target.connect();
            // What has reached a reader is not the daemon's any more.
            sockopt::set_socket_recv_buffer_size(&peer.stream, TAKEN_BYTES).unwrap();
            peer.write(&format!("{head}\r\n")).unwrap();
            peer.up_to("event: output");
            peer
        })
        .collect();
    target.answers_others();
    let most = target.memory_mib();
    assert!(
        most < before + READERS * READER_LIMIT_KIB / 1024,
        "{before} MiB became {most} MiB"
    );
    let unsent = target.unsent_mib();
    assert!(unsent < UNSENT_MIB, "the kernel holds {unsent} MiB for them");
    println!("{before} MiB became {most} MiB, and {unsent} MiB are on their way");
    drop(unread);
    wait_for_within("memory to be given back", Duration::from_secs(10), || {
        target.memory_mib() <= before + REST_MIB
    });
}
