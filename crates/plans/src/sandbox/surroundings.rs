//! What a command in a sandbox may use outside of it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use kernel::PlanId;

/// Directories for what nobody keeps. Programs put sockets and locks there under names that they agreed on.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Directories below the home where programs keep what they can fetch or make again, and where agents keep their own
/// sessions. Without the former a build begins with a download, without the latter an agent does not start. Installed
/// programs and toolchains are not among them.
const OF_HOME: [&str; 7] = [
    ".cache",
    ".cargo",
    ".npm",
    ".claude",
    ".codex",
    ".config/opencode",
    ".local/share/opencode",
];

/// What there is around sandboxes: the environment of whoever uses them.
#[derive(Clone, Debug, Default)]
pub(super) struct Surroundings {
    path: OsString,
    home: Option<PathBuf>,
    cache: Option<PathBuf>,
}

/// Whether a command sees the scratch space of the daemon at its place.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Scratch<'a> {
    /// No: what is there is hidden from it.
    Hidden,
    /// Yes: the sandbox itself lies in it.
    Seen { scratch: &'a Path, workspace: &'a Path },
}

impl Surroundings {
    pub(super) fn of(environment: &BTreeMap<OsString, OsString>) -> Self {
        let absolute = |name: &str| {
            let path = PathBuf::from(environment.get(OsStr::new(name))?);
            path.is_absolute().then_some(path)
        };
        let path = environment.get(OsStr::new("PATH")).cloned();
        Self {
            path: path.unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into()),
            home: absolute("HOME"),
            cache: absolute("XDG_CACHE_HOME"),
        }
    }

    /// The environment of a program of ours: only where programs and the user's settings are.
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

    /// Where a command may write: the sandbox, its own temporary directory, and what there is of the usual places.
    pub(super) fn write_below(&self, sandbox: &Path, temporary: &Path, scratch: Scratch<'_>) -> Vec<PathBuf> {
        let of_home = self
            .home
            .iter()
            .flat_map(|home| OF_HOME.map(|name| home.join(name)));
        let shared = TEMPORARY
            .iter()
            .map(PathBuf::from)
            .chain(of_home)
            .chain(self.cache.clone())
            // A place that is a symlink is where it leads to, or nowhere.
            .filter_map(|place| place.canonicalize().ok())
            .filter(|place| place.is_dir() && scratch.allows(place));
        let mut places = vec![sandbox.to_owned(), temporary.to_owned()];
        for place in shared {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }

    /// What is added to the environment of a command.
    pub(super) fn of_command(plan: PlanId, root: &Path, temporary: &Path) -> BTreeMap<OsString, OsString> {
        let mut added = BTreeMap::from([
            ("TMPDIR".into(), temporary.as_os_str().to_owned()),
            ("TIDELOCK_PLAN".into(), plan.to_string().into()),
        ]);
        // A workspace without a repository may lie in one. That one is not the sandbox's.
        if let Some(above) = root.parent() {
            added.insert("GIT_CEILING_DIRECTORIES".into(), above.as_os_str().to_owned());
        }
        added
    }
}

impl Scratch<'_> {
    /// Whether a place may be written without reaching the workspace or another sandbox.
    fn allows(self, place: &Path) -> bool {
        match self {
            Self::Hidden => true,
            Self::Seen { scratch, workspace } => !scratch.starts_with(place) && !workspace.starts_with(place),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_may_write_its_sandbox_and_what_nobody_keeps() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for name in ["home/.cargo", "home/.ssh", "home/.config/opencode", "cache"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        std::os::unix::fs::symlink("/nowhere", root.join("home/.npm")).unwrap();
        let variables = [
            ("HOME", root.join("home")),
            ("XDG_CACHE_HOME", root.join("cache")),
        ];
        let surroundings = Surroundings::of(
            &variables
                .map(|(name, path)| (name.into(), path.into_os_string()))
                .into(),
        );
        let (sandbox, temporary) = (Path::new("/elsewhere/tree"), Path::new("/elsewhere/tmp"));
        let own = [sandbox, temporary].map(Path::to_owned);
        let of_home = ["home/.cargo", "home/.config/opencode", "cache"].map(|name| root.join(name));
        let shared: Vec<PathBuf> = TEMPORARY
            .iter()
            .filter_map(|place| Path::new(place).canonicalize().ok())
            .collect();
        let expected = |shared: &[PathBuf]| {
            let mut all = own.to_vec();
            all.extend(shared.iter().cloned());
            all.extend(of_home.iter().cloned());
            all
        };
        assert_eq!(
            surroundings.write_below(sandbox, temporary, Scratch::Hidden),
            expected(&shared)
        );
        // The temporary directory holds the workspace.
        let seen = Scratch::Seen {
            scratch: Path::new("/elsewhere"),
            workspace: &shared[0].join("project"),
        };
        assert_eq!(
            surroundings.write_below(sandbox, temporary, seen),
            expected(&shared[1..])
        );
    }
}
