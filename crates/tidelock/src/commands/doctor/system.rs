//! What the machine offers: resources, and the means of isolation that later work can build on.
//!
//! The means of isolation are reported as facts. None of them is needed to run a daemon, so their absence is
//! never a warning.

use std::fs;
use std::path::Path;

use daemon::{Enforcement, landlock_support};
use rustix::process::{Resource, getrlimit};

use super::Check;
use crate::context::Context;
use crate::units::format_bytes;

/// A daemon with its clients and children needs a few hundred open files.
const OPEN_FILES_WANTED: u64 = 1024;
/// Below this, work is likely to fail half-way.
const DISK_WANTED_BYTES: u64 = 1 << 30;
/// Below this, not even a log can be kept.
const DISK_NEEDED_BYTES: u64 = 16 << 20;

pub(super) fn check(context: &Context) -> Vec<Check> {
    let read = |path: &str| fs::read_to_string(path).ok();
    vec![
        open_files(getrlimit(Resource::Nofile).current),
        disk_space(&context.home.state),
        user_namespaces(&read),
        overlayfs(&read),
        landlock(landlock_support()),
        cgroup_v2(&read),
    ]
}

fn open_files(limit: Option<u64>) -> Check {
    let id = "open_files";
    match limit {
        None => Check::ok(id, "no limit"),
        Some(limit) if limit >= OPEN_FILES_WANTED => Check::ok(id, format!("up to {limit}")),
        Some(limit) => {
            let detail = format!("only up to {limit}; at least {OPEN_FILES_WANTED} recommended");
            Check::warning(
                id,
                detail,
                format!("run `ulimit -n {OPEN_FILES_WANTED}` before you start the daemon"),
            )
        }
    }
}

fn disk_space(state: &Path) -> Check {
    let id = "disk_space";
    // Before the first start the directory is missing; it will be created on the file system of its nearest
    // existing parent.
    let existing = state
        .ancestors()
        .find(|path| path.exists())
        .unwrap_or(Path::new("/"));
    match rustix::fs::statvfs(existing) {
        Ok(space) => judge_disk_space(space.f_bavail.saturating_mul(space.f_frsize)),
        Err(error) => Check::warning(
            id,
            format!("{} cannot be measured: {error}", existing.display()),
            "check it with `df`",
        ),
    }
}

fn judge_disk_space(free_bytes: u64) -> Check {
    let id = "disk_space";
    let advice = "free some space, or set TIDELOCK_HOME to a directory on another disk";
    let detail = format!("{} free for the state directory", format_bytes(free_bytes));
    match free_bytes {
        0..DISK_NEEDED_BYTES => Check::failed(id, detail, advice),
        DISK_NEEDED_BYTES..DISK_WANTED_BYTES => Check::warning(id, detail, advice),
        DISK_WANTED_BYTES.. => Check::ok(id, detail),
    }
}

/// Reads a kernel file; `None` if it is missing or not readable.
type ReadFile<'a> = &'a dyn Fn(&str) -> Option<String>;

fn user_namespaces(read: ReadFile<'_>) -> Check {
    let number = |path: &str| read(path).and_then(|text| text.trim().parse::<u64>().ok());
    let detail = match number("/proc/sys/user/max_user_namespaces") {
        None => "not supported by this kernel",
        Some(0) => "switched off (user.max_user_namespaces is 0)",
        Some(_) if number("/proc/sys/kernel/unprivileged_userns_clone") == Some(0) => {
            "only for root (kernel.unprivileged_userns_clone is 0)"
        }
        Some(_) if number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == Some(1) => {
            "restricted by AppArmor (kernel.apparmor_restrict_unprivileged_userns is 1)"
        }
        Some(_) => "available",
    };
    Check::ok("user_namespaces", detail)
}

fn overlayfs(read: ReadFile<'_>) -> Check {
    let known = read("/proc/filesystems").is_some_and(|list| {
        list.lines()
            .any(|line| line.split_whitespace().last() == Some("overlay"))
    });
    Check::ok(
        "overlayfs",
        if known {
            "available"
        } else {
            "not loaded (the module may still exist)"
        },
    )
}

/// The kernel's own answer, which says more than its list of modules.
fn landlock(support: Enforcement) -> Check {
    let detail = match support {
        Enforcement::Full => "full: commands can be confined to the directories that they may write",
        Enforcement::Partial => "partial: this kernel cannot keep commands from renaming or truncating files",
        Enforcement::None => "none: this kernel cannot confine commands",
    };
    Check::ok("landlock", detail)
}

fn cgroup_v2(read: ReadFile<'_>) -> Check {
    let detail = match read("/sys/fs/cgroup/cgroup.controllers") {
        Some(controllers) => format!("available, with the controllers {}", controllers.trim()),
        None => "not mounted at /sys/fs/cgroup".to_owned(),
    };
    Check::ok("cgroup_v2", detail)
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn little_room_is_a_warning_and_no_room_a_failure() {
        for (free_bytes, expected) in [
            (0, State::Failed),
            (DISK_NEEDED_BYTES, State::Warning),
            (DISK_WANTED_BYTES, State::Ok),
        ] {
            assert_eq!(judge_disk_space(free_bytes).state, expected, "{free_bytes}");
        }
        for (limit, expected) in [
            (Some(256), State::Warning),
            (Some(1024), State::Ok),
            (None, State::Ok),
        ] {
            assert_eq!(open_files(limit).state, expected, "{limit:?}");
        }
    }

    #[test]
    fn what_the_kernel_offers_is_told_as_a_fact() {
        let all = |path: &str| {
            Some(
                match path {
                    "/proc/sys/user/max_user_namespaces" => "1000\n",
                    "/proc/filesystems" => "nodev\tproc\nnodev\toverlay\n",
                    "/sys/fs/cgroup/cgroup.controllers" => "cpu memory\n",
                    _ => return None,
                }
                .to_owned(),
            )
        };
        let none = |_: &str| None;
        let facts = |read: ReadFile<'_>| {
            [user_namespaces(read), overlayfs(read), cgroup_v2(read)].map(|check| check.detail)
        };
        assert_eq!(
            facts(&all),
            [
                "available",
                "available",
                "available, with the controllers cpu memory"
            ]
        );
        assert_eq!(
            facts(&none),
            [
                "not supported by this kernel",
                "not loaded (the module may still exist)",
                "not mounted at /sys/fs/cgroup",
            ]
        );
    }
}
