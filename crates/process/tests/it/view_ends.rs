//! The end of a view: it comes with the last that holds it or runs in it, whoever that is and however it ends.

use std::process::{Command, Stdio};

use protocol::HomeId;
use rustix::process::Signal;

use crate::support::{
    SHORT, Service, halt, is_alive, kill_all, marked, parent_of, pid_in, signal, test_keeper, until,
};
use crate::view_support::{Layers, Watch, makers};

#[tokio::test]
async fn a_view_outlives_its_maker_and_dies_with_the_last_that_holds_it() {
    let service = Service::new().await;
    let layers = Layers::new(service.directory.path());
    let view = service.view(layers.spec()).await;
    until("the maker is gone", || makers().is_empty()).await;
    service.nothing_left().await;
    let watch = Watch::of_view(&view);
    let (clone, root) = (view.clone(), view.root().try_clone_to_owned().unwrap());
    drop(view);
    assert_eq!(service.says_in(&clone, &layers.place, "ls").await, "base\n");
    let spec = service.sh_in(&clone, &layers.place, "echo $$ > pid; exec sleep 1000");
    drop(clone);
    let child = service.processes.spawn(spec).await.unwrap();
    let pid = pid_in(&layers.upper.join("pid")).await;
    drop(root);
    assert!(!watch.is_gone() && is_alive(pid));
    child.stop(SHORT).await;
    drop(child);
    until("nothing is mounted any more", || watch.is_gone()).await;
    service.nothing_left().await;

    // A descriptor of a file is a reason as well, and no namespace is needed for it.
    let view = service.view(layers.spec()).await;
    let (watch, root) = (Watch::of_view(&view), view.root().try_clone_to_owned().unwrap());
    drop(view);
    assert!(!watch.is_gone());
    drop(root);
    until("nothing is mounted any more", || watch.is_gone()).await;
}

#[tokio::test]
async fn nothing_of_a_view_is_seen_in_the_namespace_of_the_daemon() {
    let service = Service::new().await;
    let layers = Layers::new(service.directory.path());
    let before = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let view = service.view(layers.spec()).await;
    let count = "grep -c ' - overlay ' /proc/self/mountinfo; exit 0";
    let outside = before.matches(" - overlay ").count();
    let said = service.says_in(&view, &layers.place, count).await;
    assert_eq!(said, format!("{}\n", outside + 1));
    let after = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let here = layers.place.display().to_string();
    assert!(!before.contains(&here) && !after.contains(&here));
}

/// A daemon that is killed, at the latest when the test ends.
struct Killed(std::process::Child);

impl Killed {
    fn kill(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Who else is killed with the daemon.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Along {
    Nobody,
    /// Then nobody but the kernel can end the command.
    TheKeeper,
}

/// A daemon that is killed while commands run in a view of it.
#[tokio::test]
async fn a_daemon_that_is_killed_leaves_no_mount_and_no_process() {
    for along in [Along::Nobody, Along::TheKeeper] {
        let directory = tempfile::tempdir().unwrap();
        let layers = Layers::new(directory.path());
        let far = "setsid sh -c 'setsid sh -c \"echo \\$\\$ > far; while :; do sleep 1; done\" &' &";
        let near = "trap '' TERM; echo $$ > near; while :; do sleep 1; done";
        let script = match along {
            Along::Nobody => format!("{far} {near}"),
            Along::TheKeeper => near.to_owned(),
        };
        let mut daemon = Killed(
            Command::new(test_keeper())
                .arg("spawn-and-hang")
                .arg(directory.path())
                .arg(HomeId::generate().to_string())
                .arg(script)
                .arg("view")
                .stdin(Stdio::null())
                .spawn()
                .unwrap(),
        );
        let pid = pid_in(&layers.upper.join("near")).await;
        if along == Along::Nobody {
            pid_in(&layers.upper.join("far")).await;
        }
        let keeper = parent_of(pid);
        let environment = std::fs::read_to_string(format!("/proc/{pid}/environ")).unwrap();
        let tag = environment
            .split('\0')
            .find(|one| one.starts_with("TIDELOCK_PROCESS="))
            .unwrap();
        let watch = Watch::of(&format!("/proc/{pid}/root{}", layers.place.display()));
        assert!(is_alive(pid) && !watch.is_gone());
        if along == Along::TheKeeper {
            halt(daemon.0.id()).await;
            signal(keeper, Signal::KILL);
        }
        daemon.kill();
        until("the command is gone", || !is_alive(pid)).await;
        until("so is the keeper", || !is_alive(keeper)).await;
        // What the command had started is not the kernel's business, and sleeps a second at most.
        until("so is the tree", || marked(tag).is_empty()).await;
        until("so is the view", || watch.is_gone()).await;
        kill_all(|| marked(tag));
    }
}
