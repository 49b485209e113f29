//! The log of the daemon stays small: whoever is refused cannot fill the disk with it, and a log that is full is put aside.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use crate::harness::wait_for;
use crate::security_stage::Target;

/// Like the limit in the daemon.
const LOG_LIMIT_BYTES: u64 = 8 << 20;

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

#[test]
fn somebody_without_a_token_writes_next_to_nothing_into_the_log() {
    const REQUESTS: usize = 200;
    let target = Target::new();
    let log = target.world.home().log_file();
    let before = length(&log);
    let path = "a".repeat(12_000);
    let mut peer = target.connect();
    for number in 0..REQUESTS {
        // Each is refused for another reason: no token, nothing there, a foreign name.
        let (place, host) = match number % 3 {
            0 => ("v1/breakers/", target.address.to_string()),
            1 => ("", target.address.to_string()),
            _ => ("", "evil.example".to_owned()),
        };
        let last = if number + 1 == REQUESTS {
            "Connection: close\r\n"
        } else {
            ""
        };
        peer.write(&format!(
            "POST /{place}{path}/reset HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n{last}\r\n"
        ))
        .unwrap();
    }
    let replies = peer.replies();
    assert_eq!(replies.len(), REQUESTS);
    for (number, reply) in replies.iter().enumerate() {
        assert_eq!(reply.status, [401, 404, 421][number % 3], "{number}");
    }
    let grown = length(&log) - before;
    assert!((1..32 << 10).contains(&grown), "{grown} bytes");
    let text = fs::read_to_string(&log).unwrap();
    assert!(text.contains("aaaa… ("), "what was cut is said: {text}");
}

#[test]
fn a_log_that_is_full_is_put_aside_while_the_daemon_runs() {
    let target = Target::new();
    let log = target.world.home().log_file();
    let old = log.with_extension("log.old");
    for round in ["one", "two", "three"] {
        let mut filler = File::options().append(true).open(&log).unwrap();
        let line = format!("filled for round {round}\n");
        let times = usize::try_from(LOG_LIMIT_BYTES).unwrap() / line.len() + 1;
        filler.write_all(line.repeat(times).as_bytes()).unwrap();
        target.world.run(&["breaker", "force", round, "open"]).expect(0);
        wait_for("the log to begin again", || {
            let text = fs::read_to_string(&log).unwrap_or_default();
            text.contains("/v1/breakers/") && !text.contains("filled for round")
        });
        assert!(length(&log) < LOG_LIMIT_BYTES / 8);
        assert!(fs::read_to_string(&old).unwrap().contains(&line));
        let kept = fs::read_dir(log.parent().unwrap()).unwrap().flatten();
        let logs = kept.filter(|entry| entry.file_name().to_string_lossy().starts_with("daemon.log"));
        assert_eq!(logs.count(), 2);
    }
}
