//! Several machines on one database: a server of the test's own, a daemon for each machine, and a line from each to the
//! server that can be cut.
//!
//! The line is a proxy, so that the tests need no rights. What it cannot do, and network namespaces could, is to lose the
//! end of a connection for good; a machine that dies in silence is played by stopping its daemon.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Outcome, World, finish, wait_for};
use crate::postgres_server::{PASSWORD, Setup, TestServer, USER};

/// What the daemons, and whatever they run, have in their environment: the number of their machine.
pub(crate) const MACHINE_VARIABLE: &str = "MACHINE";

/// The server and the machines.
pub(crate) struct Machines {
    pub(crate) machines: Vec<Machine>,
    pub(crate) server: TestServer,
}

/// One machine.
pub(crate) struct Machine {
    pub(crate) number: usize,
    pub(crate) world: World,
    pub(crate) line: Line,
}

impl Machines {
    /// So many machines with a daemon each. `None` if Postgres is not installed.
    pub(crate) fn start(count: usize) -> Option<Machines> {
        let setup = Setup {
            rules: "host all all 127.0.0.1/32 scram-sha-256\n",
            ..Setup::default()
        };
        let server = TestServer::start(&setup)?;
        let machine = |number| Machine {
            number,
            world: World::new(),
            line: Line::to(server.port),
        };
        let machines = Machines {
            machines: (0..count).map(machine).collect(),
            server,
        };
        for machine in &machines.machines {
            machine.run(&["up"]).expect(0);
        }
        Some(machines)
    }
}

impl Machine {
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.world.command(arguments);
        let password = PASSWORD.replace(':', "%3A");
        let address = format!("127.0.0.1:{}", self.line.port);
        let url = format!("postgres://{USER}:{password}@{address}/postgres?sslmode=disable");
        command.env("TIDELOCK_DATABASE_URL", url);
        command.env(MACHINE_VARIABLE, self.number.to_string());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Outcome {
        finish(self.command(arguments))
    }

    /// Submits a job, and says which.
    pub(crate) fn submit(&self, options: &[&str], line: &str) -> String {
        let arguments = [&["job", "run", "--json"], options, &["--shell", line]].concat();
        let job = self.run(&arguments).expect(0).json();
        job["id"].as_str().unwrap().to_owned()
    }

    /// A job, as soon as the database answers.
    pub(crate) fn job(&self, id: &str) -> Value {
        let mut shown = Value::Null;
        wait_for("the job to be shown", || {
            let outcome = self.run(&["job", "show", id, "--json"]);
            shown = outcome.json();
            outcome.code == Some(0) || shown["error"]["code"] != "log_refusing"
        });
        assert_eq!(shown["error"], Value::Null);
        shown
    }
}

/// A line to the server. What is on its way when it is held waits; nothing says that it is not there any more.
pub(crate) struct Line {
    pub(crate) port: u16,
    /// To the server, and from it.
    ways: [Arc<Gate>; 2],
}

/// What of a line is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Both,
    ToServer,
    FromServer,
}

/// One way of a line.
#[derive(Default)]
struct Gate {
    // Guards how the way is; held for a look.
    state: Mutex<GateState>,
    opened: Condvar,
}

#[derive(Default)]
struct GateState {
    is_held: bool,
    delay: Duration,
}

impl Gate {
    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        while state.is_held {
            state = self.opened.wait(state).unwrap();
        }
        let delay = state.delay;
        drop(state);
        if !delay.is_zero() {
            thread::sleep(delay); // tidy: how long the way takes is the point
        }
    }

    fn set(&self, state: GateState) {
        *self.state.lock().unwrap() = state;
        self.opened.notify_all();
    }
}

impl Line {
    fn to(server: u16) -> Line {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let ways: [Arc<Gate>; 2] = Default::default();
        let own = ways.clone();
        // It ends with the test's process.
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, gates) = (client.unwrap(), own.clone());
                thread::spawn(move || {
                    gates.iter().for_each(|gate| gate.pass());
                    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)) else {
                        return;
                    };
                    let ways = [
                        (client.try_clone().unwrap(), server.try_clone().unwrap()),
                        (server, client),
                    ];
                    for ((from, to), gate) in ways.into_iter().zip(gates) {
                        thread::spawn(move || carry(from, to, &gate));
                    }
                });
            }
        });
        Line { port, ways }
    }

    /// Nothing goes through any more.
    pub(crate) fn cut(&self) {
        self.cut_way(Way::Both);
    }

    /// Nothing goes that way any more.
    pub(crate) fn cut_way(&self, way: Way) {
        let [to_server, from_server] = [way != Way::FromServer, way != Way::ToServer];
        for (gate, is_held) in self.ways.iter().zip([to_server, from_server]) {
            gate.set(GateState {
                is_held,
                delay: Duration::ZERO,
            });
        }
    }

    /// Whatever goes through takes that long, on each way.
    pub(crate) fn delay(&self, delay: Duration) {
        let is_held = false;
        self.ways
            .iter()
            .for_each(|gate| gate.set(GateState { is_held, delay }));
    }

    /// Everything goes through again at once, also what was held.
    pub(crate) fn mend(&self) {
        self.delay(Duration::ZERO);
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, gate: &Gate) {
    let mut piece = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut piece) {
        gate.pass();
        if to.write_all(&piece[..count]).is_err() {
            break;
        }
    }
    // The end of a connection is held as well. Both sides may be gone already.
    gate.pass();
    drop(to.shutdown(Shutdown::Write));
}

/// What can go wrong with a server.
impl TestServer {
    /// Stops the server as it should be stopped, and starts it again after a while.
    pub(crate) fn restart_after(&mut self, pause: Duration) {
        if let Some(mut server) = self.server.take() {
            kill("-INT", &[server.id()]);
            server.wait().unwrap();
        }
        thread::sleep(pause); // tidy: for how long it is away is the point
        self.serve();
    }

    /// The server is killed with all that belongs to it, and started again after a while. What it had not yet handed to the
    /// system is lost: acknowledged commits never, relaxed ones may be.
    pub(crate) fn kill_for(&mut self, pause: Duration) {
        let processes = self.processes();
        self.signal("-KILL");
        if let Some(mut server) = self.server.take() {
            server.wait().unwrap();
        }
        wait_for("the server to be gone", || {
            processes
                .iter()
                .all(|process| !Path::new(&format!("/proc/{process}")).exists())
        });
        // It says 'ready', which the next one is not yet.
        fs::remove_file(self.directory.path().join("data/postmaster.pid")).unwrap();
        thread::sleep(pause); // tidy: for how long it is away is the point
        self.serve();
    }

    /// The same, told by itself: it drops everything, and does not tidy up.
    pub(crate) fn stop_at_once_for(&mut self, pause: Duration) {
        self.stop();
        thread::sleep(pause); // tidy: for how long it is away is the point
        self.serve();
    }

    /// Ends every connection, as `pg_terminate_backend` does.
    pub(crate) fn terminate_connections(&self) {
        let serves_a_client = |process: &u32| {
            let command = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            command.starts_with(format!("postgres: {USER} ").as_bytes())
        };
        let processes: Vec<u32> = self.processes().into_iter().filter(serves_a_client).collect();
        kill("-TERM", &processes);
    }

    /// Everything that belongs to the server stands still or goes on: `-STOP`, `-CONT`.
    pub(crate) fn signal(&self, how: &str) {
        kill(how, &self.processes());
    }

    /// The server and its children, the server first.
    fn processes(&self) -> Vec<u32> {
        let Some(server) = &self.server else {
            return Vec::new();
        };
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", server.id()));
        let children = children.unwrap_or_default();
        let children = children.split_whitespace().filter_map(|id| id.parse().ok());
        std::iter::once(server.id()).chain(children).collect()
    }
}

/// Sends a signal. A process that has ended meanwhile needs none.
fn kill(how: &str, processes: &[u32]) {
    let processes = processes.iter().map(u32::to_string);
    drop(Command::new("kill").arg(how).args(processes).output());
}
