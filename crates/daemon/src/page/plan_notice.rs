//! What is said once about a plan or a workspace, on the page that follows a form.

use maud::{Markup, html};

use super::plan_text::{counted, exact};

/// What became of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PlanNotice {
    /// It was done.
    Done {
        /// What the plan is for.
        title: String,
        /// What became of it, as it reads behind the title.
        outcome: String,
        /// What a person should know beside that.
        notes: Vec<String>,
    },
    /// Others have changed the same places, so nothing was done.
    Conflicted {
        /// What the plan is for.
        title: String,
        /// What was not done.
        word: &'static str,
        /// How many conflicts there are.
        conflicts: u64,
    },
    /// The plan had moved since its reader looked, so nothing was done.
    Moved {
        /// What the plan is for.
        title: String,
    },
    /// It cannot be done.
    Refused {
        /// What the plan is for, or its id.
        title: String,
        /// Why, as a sentence.
        reason: String,
    },
    /// A workspace was forgotten.
    Forgotten {
        /// Where it is.
        root: String,
    },
}

impl PlanNotice {
    pub(super) fn refused(title: String, reason: &str) -> Self {
        Self::Refused {
            title,
            reason: reason.to_owned(),
        }
    }

    /// How it looks, and what it says.
    pub(super) fn words(&self) -> (&'static str, Markup) {
        match self {
            Self::Done {
                title,
                outcome,
                notes,
            } => (
                "good",
                html! { "“" (title) "” " (outcome) @for note in notes { " " (exact(note)) } },
            ),
            Self::Conflicted {
                title,
                word,
                conflicts,
            } => (
                "warn",
                html! {
                    "“" (title) "” was not " (word) ": " (counted(*conflicts, "conflict", "conflicts"))
                    ". Nothing was changed."
                },
            ),
            Self::Moved { title } => (
                "warn",
                html! {
                    "“" (title) "” has moved since you looked. Nothing was done. Review it below and try again."
                },
            ),
            Self::Refused { title, reason } => (
                "warn",
                html! { "“" (title) "”: nothing was done. " (exact(reason)) },
            ),
            Self::Forgotten { root } => (
                "good",
                html! { code { (exact(root)) } " was forgotten. Its files were not touched." },
            ),
        }
    }
}

/// What an attempt did, as it reads behind a title.
pub(super) fn landed(word: &str, paths: u64, merged: u64) -> String {
    let files = counted(paths, "path", "paths");
    match (paths, merged) {
        (0, _) => format!("was {word}; there was nothing to change."),
        (_, 0) => format!("was {word}: {files} changed."),
        (_, merged) => {
            format!("was {word}: {files} changed, {merged} of them merged with other changes.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_say_what_became_of_it() {
        let title = || "<b>".to_owned();
        let done = PlanNotice::Done {
            title: title(),
            outcome: landed("applied", 3, 1),
            notes: vec!["The index <was> kept.".to_owned()],
        };
        let conflicted = |conflicts| PlanNotice::Conflicted {
            title: title(),
            word: "undone",
            conflicts,
        };
        for (notice, class, text) in [
            (
                done,
                "good",
                "“&lt;b&gt;” was applied: 3 paths changed, 1 of them merged with other changes. \
                 The index &lt;was&gt; kept.",
            ),
            (
                conflicted(1),
                "warn",
                "“&lt;b&gt;” was not undone: 1 conflict. Nothing was changed.",
            ),
            (
                conflicted(2),
                "warn",
                "“&lt;b&gt;” was not undone: 2 conflicts. Nothing was changed.",
            ),
            (
                PlanNotice::Moved { title: title() },
                "warn",
                "“&lt;b&gt;” has moved since you looked. Nothing was done. Review it below and try again.",
            ),
            (
                PlanNotice::refused(title(), "There is <no> such plan."),
                "warn",
                "“&lt;b&gt;”: nothing was done. There is &lt;no&gt; such plan.",
            ),
            (
                PlanNotice::Forgotten {
                    root: "/<a>".to_owned(),
                },
                "good",
                "<code>/&lt;a&gt;</code> was forgotten. Its files were not touched.",
            ),
        ] {
            let (found_class, found) = notice.words();
            assert_eq!((found_class, found.into_string().as_str()), (class, text));
        }
        for (paths, merged, expected) in [
            (0, 0, "was undone; there was nothing to change."),
            (1, 0, "was undone: 1 path changed."),
        ] {
            assert_eq!(landed("undone", paths, merged), expected);
        }
    }
}
