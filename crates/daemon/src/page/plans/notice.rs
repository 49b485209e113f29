//! The notices after a form about a plan or a workspace.

use maud::html;

use crate::page::parts::form::Notice;
use crate::page::parts::text::{counted, exact};

/// It was done. `outcome` follows the title, `notes` follow that.
pub(crate) fn done(title: &str, outcome: &str, notes: &[String]) -> Notice {
    Notice::good(html! { "“" (title) "” " (outcome) @for note in notes { " " (exact(note)) } })
}

/// Others have changed the same lines. `word` is what wasn't done.
pub(crate) fn conflicted(title: &str, word: &str, conflicts: u64) -> Notice {
    Notice::warn(html! {
        "“" (title) "” was not " (word) ": " (counted(conflicts, "conflict", "conflicts"))
        ". Nothing was changed."
    })
}

/// The plan has changed since its reader loaded the page.
pub(crate) fn moved(title: &str) -> Notice {
    Notice::warn(
        html! { "“" (title) "” has moved since you looked. Nothing was done. Review it below and try again." },
    )
}

/// It can't be done. `reason` is a sentence.
pub(crate) fn refused(title: &str, reason: &str) -> Notice {
    Notice::warn(html! { "“" (title) "”: nothing was done. " (exact(reason)) })
}

pub(crate) fn forgotten(root: &str) -> Notice {
    Notice::good(html! { code { (exact(root)) } " was forgotten. Its files were not touched." })
}

pub(crate) fn landed(word: &str, paths: u64, merged: u64) -> String {
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
        let notes = ["The index <was> kept.".to_owned()];
        for (notice, class, text) in [
            (
                done("<b>", &landed("applied", 3, 1), &notes),
                "good",
                "“&lt;b&gt;” was applied: 3 paths changed, 1 of them merged with other changes. \
                 The index &lt;was&gt; kept.",
            ),
            (
                conflicted("<b>", "undone", 1),
                "warn",
                "“&lt;b&gt;” was not undone: 1 conflict. Nothing was changed.",
            ),
            (
                conflicted("<b>", "undone", 2),
                "warn",
                "“&lt;b&gt;” was not undone: 2 conflicts. Nothing was changed.",
            ),
            (
                moved("<b>"),
                "warn",
                "“&lt;b&gt;” has moved since you looked. Nothing was done. Review it below and try again.",
            ),
            (
                refused("<b>", "There is <no> such plan."),
                "warn",
                "“&lt;b&gt;”: nothing was done. There is &lt;no&gt; such plan.",
            ),
            (
                forgotten("/<a>"),
                "good",
                "<code>/&lt;a&gt;</code> was forgotten. Its files were not touched.",
            ),
        ] {
            assert_eq!(
                notice.render().into_string(),
                format!("<div class=\"notice {class}\" role=\"status\"><p>{text}</p></div>")
            );
        }
        for (paths, merged, expected) in [
            (0, 0, "was undone; there was nothing to change."),
            (1, 0, "was undone: 1 path changed."),
        ] {
            assert_eq!(landed("undone", paths, merged), expected);
        }
    }
}
