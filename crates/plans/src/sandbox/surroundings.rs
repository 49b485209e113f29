//! What a command in a sandbox may use outside of it.
//!
//! This depends on the environment of the command, not of the daemon: its home and its caches are where the command
//! expects them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use protocol::PlanId;

/// Directories for temporary files. Programs put sockets and locks there under agreed names.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// The directory below the home for what programs can download or rebuild. It is created if it is missing and one of
/// the programs below is used here.
const CACHE: &str = ".cache";

/// A program that keeps caches and sessions beside its settings. Only what is listed here can be written: settings,
/// hooks, plug-ins and installed programs are code that runs later, outside of every sandbox.
struct Program {
    home: &'static str,
    variable: Option<&'static str>,
    /// Paths below the home that exist if the program is used here. Nothing is created for a program that isn't.
    marks: &'static [&'static str],
    /// Writable directories. They are created if missing, because the command can't create them.
    directories: &'static [&'static str],
    /// Writable files that are created if missing: locks without which two programs would write to the same cache,
    /// and files that a program needs to start.
    made: &'static [&'static str],
    /// Files that are writable if they exist: credentials that programs renew, and histories that they append to.
    files: &'static [&'static str],
}

const PROGRAMS: [Program; 6] = [
    Program {
        home: ".npm",
        variable: None,
        marks: &[".npm"],
        directories: &[""],
        made: &[],
        files: &[],
    },
    Program {
        home: ".cargo",
        variable: Some("CARGO_HOME"),
        marks: &[".cargo"],
        directories: &["registry", "git"],
        made: &[".package-cache", ".package-cache-mutate"],
        files: &[],
    },
    Program {
        home: ".claude",
        variable: Some("CLAUDE_CONFIG_DIR"),
        marks: &[".claude"],
        // Not `shell-snapshots` and `session-env`: Claude Code runs what is in them, in its other sessions
        // too.
        directories: &[
            "projects",
            "todos",
            "tasks",
            "plans",
            "sessions",
            "file-history",
            "paste-cache",
            "cache",
            "debug",
            "statsig",
            "telemetry",
        ],
        made: &[],
        files: &[".credentials.json", "history.jsonl", "stats-cache.json"],
    },
    Program {
        home: ".codex",
        variable: Some("CODEX_HOME"),
        marks: &[".codex"],
        // Not `tmp` and `shell_snapshots`: Codex puts the former on the `PATH` of its commands, and sources
        // the latter.
        directories: &["sessions", "archived_sessions", "log", "thread-writer-locks"],
        made: &["installation_id"],
        files: &["auth.json", "history.jsonl", "version.json", "models_cache.json"],
    },
    Program {
        home: ".gemini",
        variable: None,
        marks: &[".gemini"],
        directories: &["tmp", "history"],
        made: &[],
        files: &[
            "oauth_creds.json",
            "google_accounts.json",
            "installation_id",
            "projects.json",
            "state.json",
        ],
    },
    Program {
        home: ".local",
        variable: None,
        marks: &[".config/opencode", ".local/share/opencode"],
        // Each as a whole, since its database creates files beside itself.
        directories: &["share/opencode", "state/opencode"],
        made: &[],
        files: &[],
    },
];

/// The environment of the user of sandboxes.
#[derive(Clone, Debug, Default)]
pub(super) struct Surroundings {
    path: OsString,
    home: Option<PathBuf>,
    cache: Option<PathBuf>,
}

impl Surroundings {
    pub(super) fn of(environment: &BTreeMap<OsString, OsString>) -> Self {
        let path = environment.get(OsStr::new("PATH")).cloned();
        Self {
            path: path.unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into()),
            home: absolute(environment, "HOME"),
            cache: absolute(environment, "XDG_CACHE_HOME"),
        }
    }

    /// The environment for our own programs: only the paths of programs and of the user's settings.
    pub(super) fn environment(&self) -> BTreeMap<OsString, OsString> {
        let home = self
            .home
            .iter()
            .map(|home| ("HOME".into(), home.clone().into_os_string()));
        [("PATH".into(), self.path.clone()), ("LC_ALL".into(), "C".into())]
            .into_iter()
            .chain(home)
            .collect()
    }

    /// The directories above a path that a command could rename and replace: those below a directory that it may
    /// write to. Outermost first.
    pub(super) fn above<'a>(&self, place: &'a Path) -> Vec<&'a Path> {
        let caches = self.home.iter().map(|home| home.join(CACHE));
        let writable = TEMPORARY.iter().map(PathBuf::from).chain(caches);
        let writable = writable.chain(self.cache.clone());
        let writable = writable.filter_map(|directory| directory.canonicalize().ok());
        let above = |directory: PathBuf| {
            let below = place.ancestors().skip(1);
            below.take_while(|one| **one != *directory).collect::<Vec<_>>()
        };
        let mut found = writable
            .filter(|directory| place.starts_with(directory))
            .map(above)
            .max_by_key(Vec::len)
            .unwrap_or_default();
        found.reverse();
        found
    }

    pub(super) fn of_command(plan: PlanId, root: &Path, temporary: &Path) -> BTreeMap<OsString, OsString> {
        let mut added = BTreeMap::from([
            ("TMPDIR".into(), temporary.as_os_str().to_owned()),
            ("TIDELOCK_PLAN".into(), plan.to_string().into()),
        ]);
        // A workspace without a repository may be inside one, which doesn't belong to the sandbox.
        if let Some(above) = root.parent() {
            added.insert("GIT_CEILING_DIRECTORIES".into(), above.as_os_str().to_owned());
        }
        added
    }
}

fn absolute(environment: &BTreeMap<OsString, OsString>, name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(environment.get(OsStr::new(name))?);
    path.is_absolute().then_some(path)
}

/// The existing paths outside its sandbox that a command with this environment may write to. They never lead to what
/// has to be kept apart.
pub(super) fn shared_places(
    environment: &BTreeMap<OsString, OsString>,
    kept_apart: &[PathBuf],
) -> Vec<PathBuf> {
    let mut places = Places {
        kept_apart,
        temporary: TEMPORARY
            .iter()
            .filter_map(|place| Path::new(place).canonicalize().ok())
            .collect(),
        found: Vec::new(),
    };
    for place in places.temporary.clone() {
        places.add(&place);
    }
    let home = absolute(environment, "HOME").filter(|home| home.is_dir());
    if let Some(home) = &home {
        if PROGRAMS.iter().any(|program| program.is_used(home)) {
            make_directory(&home.join(CACHE));
        }
        places.add(&home.join(CACHE));
    }
    if let Some(cache) = absolute(environment, "XDG_CACHE_HOME") {
        places.add(&cache);
    }
    for program in &PROGRAMS {
        let Some(own) = program.directory(home.as_deref(), environment) else {
            continue;
        };
        for name in program.directories {
            make_directory(&own.join(name));
        }
        for name in program.made {
            make_file(&own.join(name));
        }
        for name in [program.directories, program.made, program.files].concat() {
            places.add(&own.join(name));
        }
    }
    places.found
}

impl Program {
    /// Where it keeps its data, if it is used here.
    fn directory(&self, home: Option<&Path>, environment: &BTreeMap<OsString, OsString>) -> Option<PathBuf> {
        if let Some(named) = self.variable.and_then(|name| absolute(environment, name)) {
            return Some(named).filter(|named| named.is_dir());
        }
        let home = home?;
        self.is_used(home).then(|| home.join(self.home))
    }

    fn is_used(&self, home: &Path) -> bool {
        self.marks.iter().any(|mark| home.join(mark).is_dir())
    }
}

fn make_directory(path: &Path) {
    unless_there(
        path,
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path),
    );
}

fn make_file(path: &Path) {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    unless_there(path, options.open(path).map(drop));
}

/// If something can't be created, the command can't write to it, and reports that itself if it matters.
fn unless_there(path: &Path, made: io::Result<()>) {
    match made {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            tracing::debug!(%error, path = %path.display(), "a place for commands in sandboxes was not made");
        }
        _ => {}
    }
}

struct Places<'a> {
    kept_apart: &'a [PathBuf],
    temporary: Vec<PathBuf>,
    found: Vec<PathBuf>,
}

impl Places<'_> {
    fn add(&mut self, place: &Path) {
        // A symlink counts as its target; a dangling one is skipped.
        let Ok(real) = place.canonicalize() else {
            return;
        };
        let parent = place.parent().and_then(|parent| parent.canonicalize().ok());
        let is_below = |one: &&PathBuf| {
            place.starts_with(one) || parent.as_ref().is_some_and(|parent| parent.starts_with(one))
        };
        // Where commands can already write, there is nothing to add, and a symlink may be theirs: its target
        // would become writable as well. Some commands can write to the temporary directories even if this
        // one can't.
        let mut known = self.found.iter();
        let mut temporary = self.temporary.iter();
        if known.any(|one| is_below(&one)) || (real != place && temporary.any(|one| is_below(&one))) {
            return;
        }
        if !self.kept_apart.iter().any(|apart| apart.starts_with(&real)) {
            self.found.push(real);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A home with everything that programs keep there.
    fn home(root: &Path) -> BTreeMap<OsString, OsString> {
        for name in [
            "home/.cargo/bin",
            "home/.cargo/registry",
            "home/.ssh",
            "home/.config/opencode",
            "home/.local/share/opencode",
            "home/.claude/hooks",
            "home/.codex",
            "cache",
        ] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for name in [
            "home/.cargo/env",
            "home/.cargo/config.toml",
            "home/.claude/settings.json",
            "home/.claude/.credentials.json",
            "home/.codex/config.toml",
        ] {
            fs::write(root.join(name), "").unwrap();
        }
        std::os::unix::fs::symlink("/nowhere", root.join("home/.npm")).unwrap();
        let variables = [
            ("HOME", root.join("home")),
            ("XDG_CACHE_HOME", root.join("cache")),
        ];
        variables
            .map(|(name, path)| (name.into(), path.into_os_string()))
            .into()
    }

    fn root() -> (tempfile::TempDir, PathBuf) {
        // Not below a temporary directory, where everything is writable.
        let root = tempfile::tempdir_in(std::env::current_dir().unwrap()).unwrap();
        let path = root.path().canonicalize().unwrap();
        (root, path)
    }

    #[test]
    fn caches_and_sessions_can_be_written_and_settings_and_programs_cannot() {
        let (_root, root) = root();
        let found = shared_places(&home(&root), &[]);
        let can = |name: &str| found.iter().any(|place| root.join(name).starts_with(place));
        for name in [
            "cache/x",
            "home/.cargo/registry/x",
            "home/.cargo/git/x",
            "home/.cargo/.package-cache",
            "home/.claude/projects/x",
            "home/.claude/todos/x",
            "home/.claude/.credentials.json",
            "home/.codex/sessions/x",
            "home/.codex/log/x",
            "home/.codex/installation_id",
            "home/.local/share/opencode/x",
            "home/.local/state/opencode/x",
            "home/.cache/x",
        ] {
            assert!(can(name), "{name} in {found:?}");
        }
        for name in [
            "home/.cargo/bin/x",
            "home/.cargo/env",
            "home/.cargo/config.toml",
            "home/.claude/settings.json",
            "home/.claude/hooks/x",
            "home/.claude/x",
            "home/.claude/history.jsonl",
            "home/.codex/config.toml",
            "home/.codex/x",
            "home/.config/opencode/x",
            "home/.ssh/x",
            "home/.gemini/tmp",
            "home/x",
        ] {
            assert!(!can(name), "{name} in {found:?}");
        }
        assert!(!root.join("home/.gemini").exists(), "made for nobody");
    }

    #[test]
    fn what_is_kept_apart_cannot_be_reached_through_a_place_above_it() {
        let (_root, root) = root();
        let environment = home(&root);
        let temporary = Path::new("/tmp").canonicalize().unwrap();
        for (apart, lost) in [
            (temporary.join("tidelock-0"), &temporary),
            (root.join("cache/project"), &root.join("cache")),
        ] {
            let all = shared_places(&environment, &[]);
            let expected: Vec<PathBuf> = all.iter().filter(|place| *place != lost).cloned().collect();
            assert_eq!(all.len(), expected.len() + 1);
            assert_eq!(shared_places(&environment, &[apart]), expected);
        }
    }

    #[test]
    fn a_symlink_that_a_command_may_have_made_gives_it_nothing() {
        let (_root, root) = root();
        let environment = home(&root);
        let link = |at: &str| std::os::unix::fs::symlink(root.join("home/.ssh"), root.join(at)).unwrap();
        // The user's own symlink may lead anywhere.
        fs::remove_dir(root.join("home/.cargo/registry")).unwrap();
        link("home/.cargo/registry");
        assert!(shared_places(&environment, &[]).contains(&root.join("home/.ssh")));
        fs::remove_file(root.join("home/.cargo/registry")).unwrap();
        // A symlink in a cache may be a command's.
        let mut moved = environment;
        fs::create_dir(root.join("cache/cargo")).unwrap();
        moved.insert("CARGO_HOME".into(), root.join("cache/cargo").into_os_string());
        link("cache/cargo/registry");
        assert!(!shared_places(&moved, &[]).contains(&root.join("home/.ssh")));
        // So may one in a temporary directory, even if this command can't write there.
        let temporary = tempfile::tempdir().unwrap();
        moved.insert("CARGO_HOME".into(), temporary.path().as_os_str().to_owned());
        std::os::unix::fs::symlink(root.join("home/.ssh"), temporary.path().join("registry")).unwrap();
        for apart in [Vec::new(), vec![temporary.path().join("workspace")]] {
            assert!(!shared_places(&moved, &apart).contains(&root.join("home/.ssh")));
        }
    }

    #[test]
    fn directories_that_could_be_renamed_are_found_from_the_outside_in() {
        let temporary = Path::new("/tmp").canonicalize().unwrap();
        let place = temporary.join("a/b/run");
        let surroundings = Surroundings::default();
        assert_eq!(
            surroundings.above(&place),
            [temporary.join("a").as_path(), &temporary.join("a/b")]
        );
        assert_eq!(surroundings.above(Path::new("/usr/lib/x")), Vec::<&Path>::new());
    }
}
