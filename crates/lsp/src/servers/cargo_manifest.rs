//! Which Cargo workspace a directory belongs to.
//!
//! Cargo takes the nearest manifest, then searches upwards for one with a `[workspace]`, its own included, unless that
//! one excludes the directory. Asking Cargo itself would take a process and sometimes the network; this only reads the
//! two keys that decide.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

pub(crate) const NAME: &str = "Cargo.toml";
/// A longer manifest is cut here. The largest that we know of have a tenth of this.
const MANIFEST_BYTES: u64 = 1024 * 1024;

/// The root among the ancestors; `None` if there is no manifest.
pub(crate) fn workspace_root(upwards: &[&Path]) -> Option<PathBuf> {
    let mut manifests = upwards
        .iter()
        .filter_map(|directory| Some((*directory, Manifest::read(&directory.join(NAME))?)));
    let (package, manifest) = manifests.next()?;
    if let Some(root) = &manifest.root_by_key {
        // A manifest can name its workspace. If that is out of bounds, it is ignored.
        let named = fs::canonicalize(package.join(root)).ok();
        if let Some(named) = named.filter(|named| upwards.iter().any(|directory| named == directory)) {
            return Some(named);
        }
    }
    if manifest.has_workspace {
        return Some(package.to_path_buf());
    }
    let workspace = manifests.find(|(_, manifest)| manifest.has_workspace);
    Some(match workspace {
        Some((directory, manifest)) if !manifest.excludes(directory, package) => directory.to_path_buf(),
        _ => package.to_path_buf(),
    })
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Manifest {
    has_workspace: bool,
    excluded: Vec<String>,
    /// `package.workspace`.
    root_by_key: Option<String>,
}

impl Manifest {
    fn read(path: &Path) -> Option<Self> {
        let mut text = String::new();
        let file = fs::File::open(path).ok()?;
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        file.take(MANIFEST_BYTES).read_to_string(&mut text).ok()?;
        Some(Self::parse(&text))
    }

    /// Reads table headers and the two keys, line by line. The rest of the file is skipped, so a manifest that Cargo
    /// would refuse still has a root.
    fn parse(text: &str) -> Self {
        let mut manifest = Self::default();
        let mut table = String::new();
        let mut lines = text.lines().map(without_comment);
        while let Some(line) = lines.next() {
            if let Some(header) = line.strip_prefix('[') {
                table = header.trim_matches(['[', ']']).replace([' ', '"'], "");
                manifest.has_workspace |= table == "workspace" || table.starts_with("workspace.");
                continue;
            }
            let Some((key, value)) = line.split_once('=') else {
                continue;
            };
            let key = if table.is_empty() {
                key.trim().to_owned()
            } else {
                format!("{table}.{}", key.trim())
            };
            if key == "package.workspace" {
                manifest.root_by_key = strings(value).pop();
            }
            manifest.has_workspace |= key == "workspace" || key.starts_with("workspace.");
            if key == "workspace.exclude" {
                let mut list = value.to_owned();
                while !list.contains(']') {
                    let Some(more) = lines.next() else { break };
                    list.push_str(more);
                }
                manifest.excluded = strings(&list);
            }
        }
        manifest
    }

    fn excludes(&self, directory: &Path, package: &Path) -> bool {
        self.excluded
            .iter()
            .any(|excluded| package.starts_with(directory.join(excluded.trim_end_matches('/'))))
    }
}

fn without_comment(line: &str) -> &str {
    let mut quote = None;
    for (at, character) in line.char_indices() {
        match (quote, character) {
            (None, '#') => return line[..at].trim(),
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            _ => {}
        }
    }
    line.trim()
}

fn strings(value: &str) -> Vec<String> {
    let mut pieces = value.split(['"', '\'']);
    pieces.next();
    pieces.step_by(2).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_read_for_what_decides() {
        let manifest = |has_workspace, excluded: &[&str], root_by_key: Option<&str>| Manifest {
            has_workspace,
            excluded: excluded.iter().map(|path| (*path).to_owned()).collect(),
            root_by_key: root_by_key.map(str::to_owned),
        };
        let cases = [
            ("[package]\nname = \"a\"\n", manifest(false, &[], None)),
            ("[workspace]\n", manifest(true, &[], None)),
            ("  [ workspace ] # all\n", manifest(true, &[], None)),
            (
                "[workspace.package]\nedition = \"2024\"",
                manifest(true, &[], None),
            ),
            ("workspace.members = ['a']", manifest(true, &[], None)),
            (
                "# [workspace]\n[package]\nname = \"[workspace]\"",
                manifest(false, &[], None),
            ),
            (
                "[package]\nedition.workspace = true\nworkspace = \"../..\"",
                manifest(false, &[], Some("../..")),
            ),
            (
                "[dependencies]\na = { workspace = true }\nb.workspace = true",
                manifest(false, &[], None),
            ),
            (
                "[workspace]\nexclude = [\n  \"a\", # one\n  'b/c',\n]\nmembers = [\"d\"]",
                manifest(true, &["a", "b/c"], None),
            ),
            ("[workspace]\nexclude = [\"a\"", manifest(true, &["a"], None)),
        ];
        for (text, expected) in cases {
            assert_eq!(Manifest::parse(text), expected, "{text}");
        }
    }
}
