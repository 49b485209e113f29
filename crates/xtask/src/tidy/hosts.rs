//! Nothing in the tree may depend on one machine: no path to a home directory, no host of a package registry.
//!
//! The patterns are assembled from pieces, so that this file does not match itself.

use std::path::Path;

use super::Finding;
use super::files::Tree;

/// Directories that exist on one machine and not on the next.
const DIRECTORIES: &[&[&str]] = &[
    &["/ro", "ot"],
    &["/wo", "rk"],
    &["/home/", "runner"],
    &["/home/", "ubuntu"],
    &["/Us", "ers/"],
];

/// Hosts that serve packages, and the setting that would point cargo to another one.
const HOSTS: &[&[&str]] = &[
    &["index.", "crates.io"],
    &["static.", "crates.io"],
    &["registry.", "npmjs.org"],
    &["registry.", "yarnpkg.com"],
    &["pypi.", "org"],
    &["files.", "pythonhosted.org"],
    &["proxy.", "golang.org"],
    &["deb.", "debian.org"],
    &["arti", "factory"],
    &["replace", "-with"],
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let directories: Vec<String> = DIRECTORIES.iter().map(|pieces| pieces.concat()).collect();
    let hosts: Vec<String> = HOSTS.iter().map(|pieces| pieces.concat()).collect();
    let mut findings = Vec::new();
    for (path, text) in tree.texts() {
        for (index, line) in text.lines().enumerate() {
            let directory = directories
                .iter()
                .find(|directory| names_directory(line, directory));
            let host = hosts.iter().find(|host| line.contains(host.as_str()));
            let message = match (directory, host) {
                (Some(directory), _) => format!("names a path of one machine ({directory})"),
                (None, Some(host)) => format!("names a package registry ({host})"),
                (None, None) => continue,
            };
            findings.push(Finding::on_line(Path::new(path), index + 1, message));
        }
    }
    findings
}

/// Whether the directory occurs as such: at the start of a path and as a whole name.
fn names_directory(line: &str, directory: &str) -> bool {
    line.match_indices(directory).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let behind = line[at + directory.len()..].chars().next();
        let goes_on = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-' | '.');
        let begins_path = !before.is_some_and(|before| goes_on(before) || matches!(before, '}' | '*' | ')'));
        let ends_name =
            directory.ends_with('/') || !behind.is_some_and(|behind| goes_on(behind) || behind == '*');
        begins_path && ends_name
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_machine_and_registries_are_found() {
        let root = ["/ro", "ot"].concat();
        let work = ["/wo", "rk"].concat();
        let host = ["index.", "crates.io"].concat();
        let cases = [
            (format!("see {root}/x"), true),
            (format!("\"{work}\""), true),
            (format!("file://{root}/x"), true),
            (format!("/v1{work}/7"), false),
            (format!("{{directory}}{root}"), false),
            (format!("{root}s of trees"), false),
            (format!("https://{host}/config.json"), true),
            (
                "registry+https://github.com/rust-lang/crates.io-index".to_owned(),
                false,
            ),
        ];
        for (line, expected) in cases {
            let found = check(&Tree::of(&[("a.md", &line)]));
            assert_eq!(!found.is_empty(), expected, "{line}");
        }
    }
}
