//! What goes wrong between machines and their database, and when it did.

use std::ops::Range;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;

use crate::crash_rounds::Numbers;
use crate::harness::{halt, signal};
use crate::machine_stage::{Machine, Way};
use crate::postgres_server::TestServer;
use crate::refusing::SmallDisk;

/// A daemon that could not reach the database for this long may have lost its lease: it gives up after 12 seconds, and has
/// renewed it up to three seconds before.
const MAY_LOSE_LEASE_MS: u64 = 8_500;
/// How long it takes until a daemon that can reach the database again surely has renewed its lease, on a busy machine.
const BACK_WITHIN_MS: u64 = 4_000;

/// How long faults last, and how long all is well between them, in milliseconds.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    pub(crate) short: Range<u64>,
    /// Longer than a lease. One in eight is, if any.
    pub(crate) long: Option<Range<u64>>,
    pub(crate) calm: Range<u64>,
    /// Whether the server may crash, and lose what was committed in the relaxed way.
    pub(crate) crashes: bool,
}

/// Something that went wrong.
#[derive(Clone, Debug)]
pub(crate) struct Happened {
    what: &'static str,
    /// With which machine; with the server, and so with all, if there is none.
    machine: Option<usize>,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

const KILLED: &str = "daemon killed";
const STOPPED: &str = "daemon stopped";
const FULL: &str = "disk full";

/// All that went wrong.
#[derive(Debug, Default)]
pub(crate) struct Happenings(Mutex<Vec<Happened>>);

/// The time as commands write it down.
pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(now.as_millis()).unwrap()
}

impl Happenings {
    /// Does something to a machine, or to the server, and writes down how long it took.
    fn during(&self, what: &'static str, machine: Option<usize>, act: impl FnOnce()) {
        let from = now_ms();
        act();
        let to = now_ms();
        let on = machine.map_or("the server".to_owned(), |machine| format!("machine {machine}"));
        println!("{from} {what}, {on}, {} ms", to - from);
        self.0.lock().unwrap().push(Happened {
            what,
            machine,
            from,
            to,
        });
    }

    /// Whether something that ran on a machine in this time may have been interrupted: the machine was killed, it could not
    /// renew its lease, or the server took nothing more.
    pub(crate) fn excuse(&self, machine: usize, from: u64, to: u64) -> bool {
        let mut away = Vec::<Range<u64>>::new();
        let mut of_machine: Vec<Happened> = self.0.lock().unwrap().clone();
        of_machine.retain(|happened| happened.machine.is_none_or(|which| which == machine));
        of_machine.sort_by_key(|happened| happened.from);
        let is_meanwhile = |start: u64, end: u64| start <= to && from <= end;
        for Happened { what, from, to, .. } in of_machine {
            if [KILLED, FULL].contains(&what) && is_meanwhile(from, to) {
                return true;
            }
            match away.last_mut() {
                Some(last) if from <= last.end + BACK_WITHIN_MS => last.end = last.end.max(to),
                _ => away.push(from..to),
            }
        }
        away.iter().any(|away| {
            away.end - away.start >= MAY_LOSE_LEASE_MS && is_meanwhile(away.start, away.end + BACK_WITHIN_MS)
        })
    }

    /// Whether the daemon of a machine stood still in this time. What it runs goes on meanwhile.
    pub(crate) fn stood_still(&self, machine: usize, from: u64, to: u64) -> bool {
        let all = self.0.lock().unwrap();
        all.iter().any(|happened| {
            happened.what == STOPPED
                && happened.machine == Some(machine)
                && happened.from <= from
                && to <= happened.to + BACK_WITHIN_MS
        })
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// Waits for as long as something is to last.
fn pause(milliseconds: u64) {
    thread::sleep(Duration::from_millis(milliseconds)); // tidy: how long it lasts is the point
}

/// Draws faults, one after the other, until it is over.
pub(crate) struct Faults<'a> {
    pub(crate) pace: &'a Pace,
    pub(crate) numbers: Numbers,
    pub(crate) happenings: &'a Happenings,
}

impl Faults<'_> {
    fn within(&mut self, range: &Range<u64>) -> u64 {
        range.start + self.numbers.below(range.end - range.start)
    }

    /// A time in which all is well.
    fn calm(&mut self) {
        let calm = self.within(&self.pace.calm.clone());
        pause(calm);
    }

    fn lasts(&mut self) -> u64 {
        match (&self.pace.long, self.numbers.below(8)) {
            (Some(long), 0) => self.within(&long.clone()),
            _ => self.within(&self.pace.short.clone()),
        }
    }

    /// Of the lines and the daemons.
    pub(crate) fn of_machines(mut self, machines: &[Machine], is_over: impl Fn() -> bool) {
        while !is_over() {
            self.calm();
            let which = usize::try_from(self.numbers.below(machines.len() as u64)).unwrap();
            let (machine, lasts) = (&machines[which], self.lasts());
            let (what, delay) = (self.numbers.below(9), 50 + self.numbers.below(150));
            let flaps = (0..3 + self.numbers.below(5)).map(|_| 50 + self.numbers.below(800));
            let flaps: Vec<u64> = flaps.collect();
            let cut = |what: &'static str, way: Way| {
                self.happenings.during(what, Some(which), || {
                    machine.line.cut_way(way);
                    pause(lasts);
                    machine.line.mend();
                });
            };
            match what {
                0 | 1 => cut("line cut", Way::Both),
                2 => cut("line cut to the server", Way::ToServer),
                3 => cut("line cut from the server", Way::FromServer),
                4 => self.happenings.during("line flaps", Some(which), || {
                    for lasts in flaps {
                        machine.line.cut();
                        pause(lasts);
                        machine.line.mend();
                        pause(lasts / 2);
                    }
                }),
                // Slow is not away, so there is nothing to be excused by it.
                5 => {
                    println!(
                        "{} line slow, machine {which}, {lasts} ms of {delay} ms",
                        now_ms()
                    );
                    machine.line.delay(Duration::from_millis(delay));
                    pause(lasts);
                    machine.line.mend();
                }
                6 | 7 => {
                    self.happenings.during(KILLED, Some(which), || {
                        if machine.world.owner().is_some() {
                            machine.world.kill();
                        }
                        pause(lasts / 4);
                        // It does not start while the server is away.
                        while machine.run(&["up"]).code != Some(0) && !is_over() {}
                    });
                }
                _ => {
                    if let Some(owner) = machine.world.owner() {
                        self.happenings.during(STOPPED, Some(which), || {
                            halt(owner.pid);
                            pause(lasts);
                            signal(owner.pid, Signal::CONT);
                        });
                    }
                }
            }
        }
    }

    /// Of the server, and of its disk if that can be filled.
    pub(crate) fn of_server(
        mut self,
        server: &mut TestServer,
        disk: Option<&SmallDisk>,
        is_over: impl Fn() -> bool,
    ) {
        while !is_over() {
            self.calm();
            let what = self.numbers.below(if disk.is_some() { 7 } else { 6 });
            // A restart loses nothing.
            let what = if what < 3 && !self.pace.crashes { 0 } else { what };
            let lasts = self.lasts();
            let how_long = Duration::from_millis(lasts);
            let during = |what, act: &mut dyn FnMut()| self.happenings.during(what, None, act);
            match what {
                0 => during("server restarts", &mut || server.restart_after(how_long)),
                1 => during("server killed", &mut || server.kill_for(how_long)),
                2 => during("server stops at once", &mut || server.stop_at_once_for(how_long)),
                3 => during("server frozen", &mut || {
                    server.signal("-STOP");
                    pause(lasts);
                    server.signal("-CONT");
                }),
                4 | 5 => during("connections terminated", &mut || server.terminate_connections()),
                _ => during(FULL, &mut || {
                    let disk = disk.unwrap();
                    disk.fill();
                    pause(lasts);
                    disk.make_room();
                }),
            }
        }
    }
}
