//! From `up` to `down`, in words and in JSON.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{Running, World, finish, processes_of, signal, wait_for};

#[test]
fn a_daemon_lives_from_up_to_down_in_words() {
    let world = World::new();
    let said: String = ["status", "up", "up", "status", "down", "down"]
        .into_iter()
        .map(|command| {
            let outcome = world.run(&[command]);
            format!(
                "$ tidelock {command}\n{}{}exit {:?}\n\n",
                outcome.stdout, outcome.stderr, outcome.code
            )
        })
        .collect();
    world.snapshots().bind(|| {
        insta::assert_snapshot!(said, @r"
        $ tidelock status
        daemon  stopped
        Start it with `tidelock up`.
        exit Some(3)

        $ tidelock up
        daemon   started
        version  [VERSION]
        pid      [PID]
        page     http://[PAGE]/open?code=[CODE]
        The link to the page works once, within 5 min.
        exit Some(0)

        $ tidelock up
        daemon   already running
        version  [VERSION]
        pid      [PID]
        page     http://[PAGE]/open?code=[CODE]
        The link to the page works once, within 5 min.
        exit Some(0)

        $ tidelock status
        daemon     ready
        id         [BOOT]
        pid        [PID]
        version    [VERSION]
        uptime     [DURATION]
        address    http://[ADDRESS]
        socket     [DIR]/home/run/tidelock.sock
        breakers   5 known, 0 open
        processes  0 owned
        jobs       0 running of at most 4, 0 waiting
        sessions   0 turns running, 0 sessions with waiting prompts
        log        writable
        memory     [SIZE]
        exit Some(0)

        $ tidelock down
        daemon  stopped
        pid     [PID]
        exit Some(0)

        $ tidelock down
        daemon  not running
        exit Some(0)

        ");
    });
}

#[test]
fn a_daemon_lives_from_up_to_down_in_json() {
    let world = World::new();
    let mut said = String::new();
    for command in ["status", "up", "status", "down", "down", "status"] {
        let mut asked = world.command(&[command, "--json"]);
        asked.env("TIDELOCK_MACHINE", "box");
        let outcome = finish(asked);
        let pretty = serde_json::to_string_pretty(&outcome.json()).unwrap();
        assert_eq!(outcome.stderr, "");
        said.push_str(&format!("$ tidelock {command} --json\n{pretty}\n"));
    }
    world.snapshots().bind(|| {
        insta::assert_snapshot!(said, @r#"
        $ tidelock status --json
        {
          "state": "stopped"
        }
        $ tidelock up --json
        {
          "address": "[ADDRESS]",
          "breakers": {
            "open": 0,
            "total": 5
          },
          "client_version": "[VERSION]",
          "id": "[BOOT]",
          "jobs": {
            "foreground": 0,
            "max_workers": 4,
            "queued": 0,
            "running": 0
          },
          "log": "writable",
          "machine": {
            "here": true,
            "home": "[HOME]",
            "name": "box"
          },
          "page": {
            "expires_in_ms": 300000,
            "url": "http://[PAGE]/open?code=[CODE]"
          },
          "pid": [NUMBER],
          "processes": {
            "owned": 0,
            "reclaimed": 0,
            "unreclaimed": 0
          },
          "rss_bytes": [NUMBER],
          "sessions": {
            "running": 0,
            "waiting": 0
          },
          "socket": "[DIR]/home/run/tidelock.sock",
          "started": true,
          "started_at": "[TIME]",
          "state": "ready",
          "uptime_ms": [NUMBER],
          "version": "[VERSION]"
        }
        $ tidelock status --json
        {
          "address": "[ADDRESS]",
          "breakers": {
            "open": 0,
            "total": 5
          },
          "client_version": "[VERSION]",
          "id": "[BOOT]",
          "jobs": {
            "foreground": 0,
            "max_workers": 4,
            "queued": 0,
            "running": 0
          },
          "log": "writable",
          "machine": {
            "here": true,
            "home": "[HOME]",
            "name": "box"
          },
          "pid": [NUMBER],
          "processes": {
            "owned": 0,
            "reclaimed": 0,
            "unreclaimed": 0
          },
          "rss_bytes": [NUMBER],
          "sessions": {
            "running": 0,
            "waiting": 0
          },
          "socket": "[DIR]/home/run/tidelock.sock",
          "started_at": "[TIME]",
          "state": "ready",
          "uptime_ms": [NUMBER],
          "version": "[VERSION]"
        }
        $ tidelock down --json
        {
          "id": "[BOOT]",
          "pid": [NUMBER],
          "state": "stopped",
          "was_running": true
        }
        $ tidelock down --json
        {
          "state": "stopped",
          "was_running": false
        }
        $ tidelock status --json
        {
          "state": "stopped"
        }
        "#);
    });
}

#[test]
fn up_and_status_speak_of_one_daemon() {
    let world = World::new();
    let up = world.run(&["up", "--json"]).expect(0).json();
    let again = world.run(&["up", "--json"]).expect(0).json();
    let status = world.run(&["status", "--json"]).expect(0).json();
    assert_eq!((&up["started"], &again["started"]), (&json!(true), &json!(false)));
    for field in ["id", "pid", "address"] {
        assert_eq!(up[field], status[field], "{field}");
        assert_eq!(again[field], status[field], "{field}");
    }
    assert_eq!(up["pid"], world.pid());
    assert_ne!(
        up["page"]["url"], again["page"]["url"],
        "each link works once, so each is another one"
    );
    let down = world.run(&["down", "--json"]).expect(0).json();
    assert_eq!((&down["id"], &down["pid"]), (&up["id"], &up["pid"]));
}

#[test]
fn a_clean_stop_leaves_no_process_and_no_socket_and_frees_the_lock() {
    let world = World::new();
    let home = world.home();
    world.run(&["up"]).expect(0);
    assert_eq!(processes_of(&world), [world.pid()], "one daemon without children");
    for (file, mode) in [
        (home.socket(), 0o600),
        (home.token_file(), 0o600),
        (home.log_file(), 0o600),
    ] {
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o7777,
            mode,
            "{}",
            file.display()
        );
    }

    world.run(&["down"]).expect(0);
    assert_eq!(processes_of(&world), [] as [u32; 0]);
    let left = |directory| {
        let mut names: Vec<String> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    // Lock files stay, because a lock on a file that was removed excludes nobody.
    assert_eq!(left(&home.runtime), ["daemon.lock", "start.lock"]);
    assert_eq!(
        left(&home.state),
        [
            "daemon.log",
            "environments",
            "home_id",
            "log.sqlite3",
            "log.sqlite3.lock",
            "plans",
            "token"
        ],
        "the write-ahead log is written out"
    );
    assert!(daemon::read_owner(&home).unwrap().has_stopped_cleanly());
    let lock = fs::File::open(home.daemon_lock()).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
}

#[test]
fn the_daemon_has_left_the_terminal_the_directory_and_the_pipes_of_whoever_started_it() {
    let world = World::new();
    world.run(&["up"]).expect(0);
    let pid = world.pid();
    let link = |name: &str| {
        fs::read_link(format!("/proc/{pid}/{name}"))
            .unwrap()
            .display()
            .to_string()
    };
    assert_eq!(link("cwd"), "/");
    let log = world.home().log_file().display().to_string();
    assert_eq!(
        [link("fd/0"), link("fd/1"), link("fd/2")],
        ["/dev/null".to_owned(), "/dev/null".to_owned(), log]
    );

    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    assert_eq!(fields[3], pid.to_string(), "it leads a session of its own");

    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(status.contains("Umask:\t0077"), "{status}");

    let start_lock = world.home().start_lock();
    for descriptor in fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten() {
        assert_ne!(
            fs::read_link(descriptor.path()).ok().as_deref(),
            Some(start_lock.as_path())
        );
    }
}

#[test]
fn a_daemon_in_the_foreground_says_where_it_listens_and_drains_on_a_signal() {
    for ending in [Signal::TERM, Signal::INT] {
        let world = World::new();
        let mut command = world.command(&["serve", "--json"]);
        let mut serving = Running(
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap(),
        );
        wait_for("the daemon to answer", || world.run(&["status"]).code == Some(0));
        let status = world.run(&["status", "--json"]).json();
        assert_eq!(status["pid"], serving.0.id());

        signal(serving.0.id(), ending);
        let exit = serving.0.wait().unwrap();
        assert_eq!(exit.code(), Some(0), "{ending:?}");
        let (mut said, mut log) = (String::new(), String::new());
        serving
            .0
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        serving.0.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        let ready: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(
            ready,
            json!({
                "id": status["id"], "state": "ready", "version": status["version"], "pid": status["pid"],
                "address": status["address"], "socket": status["socket"],
            })
        );
        for line in log.lines() {
            serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("not JSON ({error}): {line}"));
        }
        assert!(log.contains("draining"), "{log}");
        assert!(!world.home().socket().exists());
    }
}

#[test]
fn the_log_follows_its_filter_and_a_wrong_filter_is_refused() {
    let world = World::new();
    let mut command = world.command(&["up"]);
    let refused = finish({
        command.env("TIDELOCK_LOG", "=nonsense=");
        command
    })
    .expect(3);
    assert!(refused.stderr.contains("TIDELOCK_LOG"), "{refused:?}");

    let mut command = world.command(&["up"]);
    command.env("TIDELOCK_LOG", "off");
    finish(command).expect(0);
    world.run(&["down"]).expect(0);
    let log = fs::read_to_string(world.home().log_file()).unwrap();
    assert!(!log.contains("\"INFO\""), "{log}");
}

#[test]
fn the_token_can_be_kept_elsewhere() {
    let world = World::new();
    let run = |arguments: &[&str]| {
        let mut command = world.command(arguments);
        command.env("TIDELOCK_TOKEN_FILE", "my-token");
        finish(command)
    };
    run(&["up"]).expect(0);
    assert!(world.path().join("my-token").exists());
    assert!(!world.home().token_file().exists());
    run(&["status"]).expect(0);
    let lost = world.run(&["status", "--json"]).expect(3).json();
    assert_eq!(lost["error"]["code"], "token_unreadable");
}
