//! What a rehearsal does without a script: a small demo that works in any repository.

use plans::FileFound;

use super::script::{Script, ScriptError};
use crate::agent::AgentTurn;

/// The script; `FILE` stands for the file that it reads.
const TEMPLATE: &str = include_str!("default.yaml");
/// What it reads where there is no file: the directory itself, once more.
const NOTHING: &str = ".";

/// The script for a turn. It reads the file that a newcomer would read first.
pub(super) async fn for_turn(turn: &AgentTurn) -> Result<Script, ScriptError> {
    Script::parse(&text(&choose(&names(turn).await)))
}

/// The names at the top of the sandbox. If they can't be listed, there is nothing to choose from, and the steps will
/// report the error.
async fn names(turn: &AgentTurn) -> Vec<String> {
    let Ok(plan) = turn.desk.plan().await else {
        return Vec::new();
    };
    match turn.desk.plans().read_file(plan, None).await {
        Ok(FileFound::Directory { names }) => names,
        _ => Vec::new(),
    }
}

/// The file that a newcomer would read first: the README, or else the first file that isn't hidden. Names with
/// unusual characters are skipped, because the name is inserted into a script.
fn choose(names: &[String]) -> String {
    let mut files: Vec<&String> = names
        .iter()
        .filter(|name| !name.starts_with('.') && name.chars().all(is_plain))
        .collect();
    files.sort_by_key(|name| {
        // The shortest README is the one without a language in its name.
        let readme = name
            .to_ascii_lowercase()
            .starts_with("readme")
            .then_some(name.len());
        (readme.is_none(), readme, name.as_str())
    });
    files.first().map_or(NOTHING, |name| name.as_str()).to_owned()
}

fn is_plain(char: char) -> bool {
    char.is_alphanumeric() || "._- +".contains(char)
}

/// The script with the file name filled in.
fn text(file: &str) -> String {
    TEMPLATE
        .replace("read: FILE", &format!("read: '{file}'"))
        .replace("FILE", file)
}

#[cfg(test)]
mod tests {
    use super::{choose, text};
    use crate::agents::rehearsal::script::{Action, Script, Step};

    #[test]
    fn a_newcomer_reads_the_readme_first() {
        let cases: [(&[&str], &str); 8] = [
            (&[], "."),
            (&["a: b", "c'd", "{{prompt}}", "e\n", "\u{7f}", "f#"], "."),
            (&["z", "#a"], "z"),
            (&["src/", ".gitignore"], "."),
            (&["Makefile", "b", "a"], "Makefile"),
            (&["b", "a", "src/"], "a"),
            (&["CONTRIBUTING.md", "Readme.rst", "z"], "Readme.rst"),
            (&["README.md", "README-de.md"], "README.md"),
        ];
        for (names, expected) in cases {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            assert_eq!(choose(&names), expected, "{names:?}");
        }
    }

    #[test]
    fn the_script_is_in_order_whatever_the_file_is_called() {
        for file in [".", "README.md", "ä ö", "- a", "+", "5", " ", "null"] {
            assert_eq!(choose(&[file.to_owned()]), file);
            let script = Script::parse(&text(file)).unwrap();
            let reads: Vec<_> = script
                .steps
                .iter()
                .filter_map(|step| match step {
                    Step::Act(action) => match &**action {
                        Action::Read { path } => Some(path.as_str()),
                        _ => None,
                    },
                    _ => None,
                })
                .collect();
            assert_eq!(reads, [".", file], "{file:?}");
            assert_eq!(script.steps.len(), 7);
        }
    }
}
