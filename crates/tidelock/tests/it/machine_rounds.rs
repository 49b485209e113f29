//! Three machines on one database that work while everything between them fails: lines are cut, slow and flap, the database
//! restarts, crashes, falls silent, throws everybody out and has no room, daemons are killed and stand still. Whatever was
//! acknowledged ends, once; what may run once runs once; one lane never has two; a prompt runs on its own machine; a plan is
//! in the tree whole or not at all; readers have what the log has; and all machines are well in the end.
//!
//! The usual run is a short one, of faults that last a moment, without a crash of the server. `TIDELOCK_MACHINE_SECONDS`
//! plays for longer, with crashes and with faults that outlast a lease, and `TIDELOCK_CRASH_SEED` plays a run again as far as
//! chance is ours: the faults are the same ones, and the moments are those of the machine. Clocks that are wrong have tests of
//! their own (`job_skew`).

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::crash_rounds::Numbers;
use crate::harness::{processes_of, wait_for, wait_for_within};
use crate::machine_check::{Check, Tally};
use crate::machine_faults::{Faults, Happenings, Pace, now_ms};
use crate::machine_stage::{Machine, Machines};
use crate::machine_work::{Deed, Kind, Read, Talks, Work};
use crate::plan_stage::Project;
use crate::postgres_server::TestServer;
use crate::refusing::SmallDisk;
use crate::session_reader::Adventures;
use crate::tools::skip;

/// How long it is played unless `TIDELOCK_MACHINE_SECONDS` says so.
const USUAL_SECONDS: u64 = 4;
const MACHINES: usize = 3;
const SESSIONS_OF_EACH: usize = 2;
/// How long it may take until everything has ended once nothing fails any more: a lease, and what waits for it.
const UNTIL_OVER: Duration = Duration::from_secs(120);
/// How long it may take until all machines are well. A busy machine, on which the usual run must not fail, gets more.
const UNTIL_WELL: Duration = Duration::from_secs(10);
/// The disk of the server's tables.
const DISK: &str = "400m";

fn pace(is_long: bool) -> Pace {
    if is_long {
        Pace {
            short: 200..4_000,
            long: Some(13_000..19_000),
            calm: 1_000..6_000,
            crashes: true,
        }
    } else {
        Pace {
            short: 100..800,
            long: None,
            calm: 50..400,
            crashes: false,
        }
    }
}

/// Puts the tables of the server on a small disk. The server's own journal stays where it is, as it gives up without it.
fn small_disk(server: &mut TestServer) -> Result<SmallDisk, String> {
    server.stop();
    let tables = server.directory.path().join("data/base");
    let aside = server.directory.path().join("data/base.aside");
    fs::rename(&tables, &aside).unwrap();
    let disk = SmallDisk::mount(&tables, DISK);
    let moved = match &disk {
        Ok(_) => Command::new("cp")
            .arg("-a")
            .arg(aside.join("."))
            .arg(&tables)
            .status(),
        Err(_) => Command::new("cp").arg("-a").arg(&aside).arg(&tables).status(),
    };
    assert!(moved.unwrap().success());
    server.serve();
    disk
}

fn open_sessions(work: &mut Work<'_>) {
    for number in 0..MACHINES * SESSIONS_OF_EACH {
        let machine = number % MACHINES;
        let body = serde_json::json!({ "directory": work.projects[machine] }).to_string();
        let opened = work.ask_on(machine, "POST", "/v1/sessions", &body).unwrap();
        assert_eq!(opened.status, 201, "{opened:?}");
        let session = opened.body["id"].as_str().unwrap().to_owned();
        work.talks.push(Talks { session, machine });
    }
}

/// All that was acknowledged, and what readers have of it.
struct Played {
    deeds: Vec<Deed>,
    read: Vec<Read>,
    adventures: Adventures,
}

/// Works while everything fails, until the time is over.
fn play(
    (work, pace): (&Work<'_>, &Pace),
    (server, disk): (&mut TestServer, Option<&SmallDisk>),
    happenings: &Happenings,
    (seed, seconds): (u64, u64),
) -> Played {
    let over = AtomicBool::new(false);
    let faults = |seed: u64| Faults {
        pace,
        numbers: Numbers(seed),
        happenings,
    };
    thread::scope(|scope| {
        let channels = (0..MACHINES).map(|_| mpsc::sync_channel::<Deed>(0));
        let (senders, receivers): (Vec<_>, Vec<_>) = channels.unzip();
        let readers: Vec<_> = receivers
            .into_iter()
            .enumerate()
            .map(|(machine, deeds)| {
                scope.spawn(move || work.read(machine, seed ^ (100 + machine as u64), &deeds))
            })
            .collect();
        let workers: Vec<_> = (0..MACHINES)
            .map(|machine| {
                let readers = senders.clone();
                let numbers = Numbers(seed ^ (200 + machine as u64));
                scope.spawn(move || work.work(machine, numbers, &readers))
            })
            .collect();
        drop(senders);
        let of_machines = faults(seed);
        let failing = scope.spawn(|| of_machines.of_machines(work.machines, || over.load(Ordering::Relaxed)));
        // The server ends with the thread that starts it, so that is this one.
        let until = Instant::now() + Duration::from_secs(seconds);
        let is_over = || Instant::now() >= until || !work.findings.lock().unwrap().is_empty();
        faults(seed ^ 300).of_server(server, disk, is_over);
        over.store(true, Ordering::Relaxed);
        failing.join().unwrap();
        for machine in work.machines {
            machine.run(&["up"]).expect(0);
        }
        println!("{} nothing fails any more", now_ms());
        all_well(work.machines, seconds > USUAL_SECONDS);
        work.over.store(true, Ordering::Relaxed);
        let deeds = workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap())
            .collect();
        let (mut read, mut adventures) = (Vec::new(), Adventures::default());
        for reader in readers {
            let Ok((its, of_it)) = reader.join() else {
                work.finding("a reader did not come to its end, as it says above".to_owned());
                continue;
            };
            read.extend(its);
            adventures.visits += of_it.visits;
            adventures.cut_off += of_it.cut_off;
            adventures.resyncs += of_it.resyncs;
        }
        Played {
            deeds,
            read,
            adventures,
        }
    })
}

/// Every daemon says that it is ready, and soon.
fn all_well(machines: &[Machine], is_long: bool) {
    let limit = if is_long { UNTIL_WELL } else { UNTIL_OVER };
    for machine in machines {
        let home = machine.world.home();
        wait_for_within(&format!("machine {} to be well", machine.number), limit, || {
            crate::requests::send(&home, "GET", "/readyz", "").is_ok_and(|answer| answer.status == 200)
        });
    }
}

/// Nothing is left of what was run: neither of the daemons, nor of what their commands wrote about themselves.
fn nothing_is_left(work: &Work<'_>) {
    for machine in work.machines {
        wait_for("nothing to be left", || {
            processes_of(&machine.world) == [machine.world.pid()]
        });
    }
    let marker = work.diaries.display().to_string();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    for process in processes.filter(|entry| entry.file_name().as_encoded_bytes()[0].is_ascii_digit()) {
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        assert!(
            !line.contains(&marker),
            "{} is left: {line}",
            process.path().display()
        );
    }
}

/// Prints what the machines know of something that does not end.
fn tell_of(work: &Work<'_>, deed: &Deed) {
    let (path, list) = match deed.kind {
        Kind::Talk | Kind::Act => (
            format!("/v1/sessions/{}", deed.of.as_ref().unwrap()),
            "/v1/sessions",
        ),
        _ => (format!("/v1/jobs/{}", deed.id), "/v1/jobs"),
    };
    for machine in work.machines {
        for path in [&path, &format!("{path}/history"), list] {
            println!("{path}: {:?}", work.ask(machine.number, "GET", path, ""));
        }
        let log = fs::read_to_string(machine.world.home().log_file()).unwrap_or_default();
        println!("machine {} says:\n{log}", machine.number);
    }
}

#[test]
fn whatever_fails_between_machines_nothing_is_lost_or_doubled() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seed = number("TIDELOCK_CRASH_SEED").unwrap_or_else(now_ms);
    let seconds = number("TIDELOCK_MACHINE_SECONDS").unwrap_or(USUAL_SECONDS);
    let is_long = seconds > USUAL_SECONDS;
    println!("TIDELOCK_CRASH_SEED={seed} TIDELOCK_MACHINE_SECONDS={seconds}");
    let Some(Machines { machines, mut server }) = Machines::start(MACHINES) else {
        return skip("Postgres is not installed");
    };
    let disk = is_long.then(|| small_disk(&mut server));
    if let Some(Err(why)) = &disk {
        println!("the disk of the server is never full: {why}");
    }
    let directory = tempfile::tempdir().unwrap();
    let project = |machine: &Machine| -> PathBuf {
        Project::in_world_at(&machine.world, "project", &[("journal", "begun\n")])
    };
    let mut work = Work {
        projects: machines.iter().map(project).collect(),
        machines: &machines,
        diaries: directory.path().to_owned(),
        talks: Vec::new(),
        over: AtomicBool::new(false),
        findings: Mutex::default(),
    };
    open_sessions(&mut work);
    let happenings = Happenings::default();
    let disk = disk.and_then(Result::ok);
    let played = play(
        (&work, &pace(is_long)),
        (&mut server, disk.as_ref()),
        &happenings,
        (seed, seconds),
    );
    let waiting = || {
        played
            .deeds
            .iter()
            .find(|deed| !work.has_ended(MACHINES - 1, deed))
    };
    let give_up_at = Instant::now() + UNTIL_OVER;
    while let Some(deed) = waiting() {
        if Instant::now() >= give_up_at {
            tell_of(&work, deed);
            panic!("{deed:?} does not end");
        }
        thread::sleep(Duration::from_millis(5));
    }
    println!("{} everything has ended", now_ms());
    let mut check = Check {
        work: &work,
        happenings: &happenings,
        tally: Tally::new(),
    };
    played.deeds.iter().for_each(|deed| check.deed(deed));
    played.read.iter().for_each(|read| check.read(read));
    check.lane(&played.deeds);
    let Check { tally, .. } = check;
    println!(
        "{} {} deeds, {} read, {:?}, {} faults, seed {seed}, {seconds} s",
        now_ms(),
        played.deeds.len(),
        played.read.len(),
        played.adventures,
        happenings.count()
    );
    tally
        .iter()
        .for_each(|(what, count)| println!("  {count:5} {what}"));
    nothing_is_left(&work);
    let findings = work.findings.into_inner().unwrap();
    assert!(findings.is_empty(), "{} findings, named above", findings.len());
}
