//! What was done in a sandbox but doesn't reach the workspace when the plan is applied.

use protocol::{PlanBranch, PlanId};

use crate::{LeftOut, PlanRecord, WhyLeftOut};

/// How many left-out paths are described.
const TOLD_PATHS: usize = 5;
const TOLD_BRANCHES: usize = 5;

impl PlanRecord {
    /// What is in its sandbox but isn't carried, one sentence each, with what to do about it.
    #[must_use]
    pub fn uncarried_notes(&self, plan: PlanId) -> Vec<String> {
        let work: Vec<&LeftOut> = self.uncarried.iter().filter(|left| left.is_work()).collect();
        let mut notes: Vec<String> = self
            .branches
            .iter()
            .take(TOLD_BRANCHES)
            .map(branch_note)
            .collect();
        notes.extend(more(
            self.branches.len(),
            TOLD_BRANCHES,
            "more branches are not carried",
        ));
        notes.extend(work.iter().take(TOLD_PATHS).map(|left| path_note(plan, left)));
        notes.extend(more(work.len(), TOLD_PATHS, "more paths are not carried"));
        notes
    }

    /// Whether removing its sandbox would lose work that the plan doesn't carry.
    pub(crate) fn has_uncarried_work(&self) -> bool {
        self.uncarried.iter().any(LeftOut::is_work)
            || self.branches.iter().any(|branch| branch.commits > 0)
            || self.unrecorded.is_some()
    }
}

fn more(count: usize, told: usize, what: &str) -> Option<String> {
    (count > told).then(|| format!("{} {what}", count - told))
}

fn branch_note(branch: &PlanBranch) -> String {
    let name = &branch.name;
    match branch.commits {
        0 => format!("the branch `{name}` made in the sandbox is not carried"),
        1 => format!("1 commit made in the sandbox on branch `{name}` is not carried; the file changes are"),
        count => format!(
            "{count} commits made in the sandbox on branch `{name}` are not carried; the file changes are"
        ),
    }
}

fn path_note(plan: PlanId, left: &LeftOut) -> String {
    let path = &left.path;
    match left.why {
        WhyLeftOut::ChangedRepository | WhyLeftOut::Repository => format!(
            "changes in `{path}` are not carried, because it is a submodule or a repository of its own; to save them: \
             tidelock plan exec {plan} -- git -C '{path}' diff HEAD"
        ),
        WhyLeftOut::History => {
            let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
            format!(
                "`{path}` is not carried; the files in `{directory}` are, the commits of its new repository are not"
            )
        }
        WhyLeftOut::TooLarge => format!(
            "`{path}` is not carried, because it is too large; delete it, ignore it in .gitignore, or raise \
             plans.max_file_mb in config.toml"
        ),
        WhyLeftOut::TooLong => {
            format!("`{path}` is not carried, because a path in it is longer than 4,095 bytes")
        }
        WhyLeftOut::Name => {
            format!("`{path}` is not carried, because git would take it for a directory of its own")
        }
        WhyLeftOut::Unreadable => format!("`{path}` is not carried, because it cannot be read"),
        WhyLeftOut::Special => {
            format!("`{path}` is not carried, because it is no file, directory or symlink")
        }
        WhyLeftOut::TooMany => format!("`{path}` is not carried, because there are too many such paths"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_counted_in_plain_words() {
        let branch = |commits| PlanBranch {
            name: "x".to_owned(),
            commits,
            subjects: Vec::new(),
        };
        let said = [0, 1, 2].map(|commits| branch_note(&branch(commits)));
        assert_eq!(
            said,
            [
                "the branch `x` made in the sandbox is not carried",
                "1 commit made in the sandbox on branch `x` is not carried; the file changes are",
                "2 commits made in the sandbox on branch `x` are not carried; the file changes are",
            ]
        );
    }
}
