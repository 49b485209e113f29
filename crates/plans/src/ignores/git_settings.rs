//! The git settings that decide what is ignored.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gix_ignore::glob::pattern::Case;

#[derive(Debug)]
pub(super) struct GitSettings {
    /// `core.excludesFile`, or git's default location.
    pub(super) excludes_file: Option<PathBuf>,
    pub(super) case: Case,
}

/// Variables that would point git at another repository than that of its working directory.
const MISLEADING_VARIABLES: [&str; 7] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_CONFIG",
];

impl GitSettings {
    /// Asks git, since only git knows all the files that a setting may come from. If git isn't installed or fails, its
    /// defaults apply.
    pub(super) fn of(directory: &Path) -> Self {
        let mut settings = Self {
            excludes_file: default_excludes_file(),
            case: Case::Sensitive,
        };
        let keys = r"^core\.(excludesfile|ignorecase)$";
        let Some(said) = git(directory, &["config", "--null", "--get-regexp", keys]) else {
            return settings;
        };
        for setting in said.split(|byte| *byte == 0) {
            let end = setting.iter().position(|byte| *byte == b'\n');
            let (key, value) = match end {
                Some(end) => (&setting[..end], &setting[end + 1..]),
                // A key without a value means yes.
                None => (setting, b"true".as_slice()),
            };
            if key.eq_ignore_ascii_case(b"core.excludesfile") {
                settings.excludes_file = expanded(directory, value);
            } else if key.eq_ignore_ascii_case(b"core.ignorecase") {
                let yes = [b"true".as_slice(), b"yes", b"on", b"1"];
                settings.case = if yes.iter().any(|yes| value.eq_ignore_ascii_case(yes)) {
                    Case::Fold
                } else {
                    Case::Sensitive
                };
            }
        }
        settings
    }
}

/// The output of a git command, if it succeeds. Only for commands that read little and exit at once.
pub(super) fn git(directory: &Path, arguments: &[&str]) -> Option<Vec<u8>> {
    let mut command = Command::new("git");
    for variable in MISLEADING_VARIABLES {
        command.env_remove(variable);
    }
    let output = command
        .env_remove(process::DATABASE_URL)
        .args(arguments)
        .current_dir(directory)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then_some(output.stdout)
}

fn default_excludes_file() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
    let configuration = set("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| Path::new(&home).join(".config")))?;
    Some(configuration.join("git/ignore"))
}

/// A path from git's settings, expanded. An empty one means that there is no file.
fn expanded(directory: &Path, value: &[u8]) -> Option<PathBuf> {
    if value.is_empty() {
        return None;
    }
    if let Some(below_home) = value.strip_prefix(b"~/") {
        let home = std::env::var_os("HOME")?;
        return Some(Path::new(&home).join(OsStr::from_bytes(below_home)));
    }
    Some(directory.join(OsString::from_vec(value.to_vec())))
}
