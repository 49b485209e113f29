//! The files that a plan changes, directory by directory.

use maud::{Markup, html};
use protocol::{FileDiff, PlanDiff};

use super::diff::View;
use super::state::lines;
use crate::page::parts::text::exact;

/// How many files are listed. Only a program changes more.
const LISTED_FILES: usize = 1000;

pub(crate) fn anchor(position: usize) -> String {
    format!("file-{position}")
}

pub(crate) fn letter(kind: &str) -> Markup {
    let (class, letter, word) = match kind {
        "create" => ("added", "A", "added"),
        "delete" => ("removed", "D", "deleted"),
        "rename" => ("moved", "R", "renamed"),
        "chmod" => ("moved", "P", "permissions changed"),
        "symlink" => ("moved", "L", "symlink changed"),
        _ => ("moved", "M", "modified"),
    };
    html! { abbr class={ "letter " (class) } title=(word) { (letter) } }
}

pub(crate) fn list(diff: &PlanDiff, view: &View) -> Markup {
    let more = diff.files.len().saturating_sub(LISTED_FILES);
    html! {
        nav class="diff-list" aria-label="Changed files" {
            @for (directory, files) in groups(&diff.files) {
                @if !directory.is_empty() { p class="diff-directory" { (exact(directory)) "/" } }
                ul {
                    @for (position, name, file) in files {
                        li {
                            (letter(&file.kind))
                            a href=(target(diff, view, position, file)) data-key={ "list " (position) }
                                aria-current=[(view.file.as_ref() == Some(&file.path)).then_some("true")] { (exact(name)) }
                            (lines(file.added_lines, file.removed_lines))
                        }
                    }
                }
            }
            @if more > 0 { p class="more" { "and " (more) " more" } }
        }
    }
}

/// An anchor on the same page if the file is shown there.
fn target(diff: &PlanDiff, view: &View, position: usize, file: &FileDiff) -> String {
    match &view.file {
        None => format!("#{}", anchor(position)),
        Some(_) => {
            let other = View {
                file: Some(file.path.clone()),
                ..view.clone()
            };
            format!("{}#changes", other.address(&diff.plan))
        }
    }
}

/// A directory and its changed files: position, name and diff of each.
type Group<'a> = (&'a str, Vec<(usize, &'a str, &'a FileDiff)>);

/// Files are sorted by path, so a directory may appear more than once.
fn groups(files: &[FileDiff]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (position, file) in files.iter().enumerate().take(LISTED_FILES) {
        let (directory, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
        let item = (position, name, file);
        match groups.last_mut() {
            Some((last, items)) if *last == directory => items.push(item),
            _ => groups.push((directory, vec![item])),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::parts::text::tests::assert_parts;
    use crate::page::plans::diff::tests::{diff, file};

    #[test]
    fn files_stand_below_their_directory() {
        let files =
            ["README", "src/a.rs", "src/b.rs", "src/sub/c.rs", "zig"].map(|path| file(path, Vec::new()));
        let found: Vec<(&str, Vec<(usize, &str)>)> = groups(&files)
            .into_iter()
            .map(|(directory, items)| {
                let items = items.into_iter().map(|(position, name, _)| (position, name));
                (directory, items.collect())
            })
            .collect();
        assert_eq!(
            found,
            [
                ("", vec![(0, "README")]),
                ("src", vec![(1, "a.rs"), (2, "b.rs")]),
                ("src/sub", vec![(3, "c.rs")]),
                ("", vec![(4, "zig")]),
            ]
        );
    }

    #[test]
    fn a_list_has_an_end() {
        let files = (0..LISTED_FILES + 2).map(|number| file(&format!("{number:05}"), Vec::new()));
        let shown = list(&diff(files.collect()), &View::default()).into_string();
        assert_eq!(shown.matches("<li>").count(), LISTED_FILES);
        assert!(shown.contains("and 2 more"), "{shown}");
    }

    #[test]
    fn links_lead_to_the_file_on_this_page_or_on_its_own() {
        let diff = diff(vec![
            file("src/a b&c.rs", Vec::new()),
            file("src/<b>.rs", Vec::new()),
        ]);
        let all = list(&diff, &View::default()).into_string();
        assert!(all.contains("href=\"#file-1\""), "{all}");
        assert!(!all.contains("<b>"), "{all}");
        let one = View {
            file: Some("src/<b>.rs".to_owned()),
            ..View::default()
        };
        let one = list(&diff, &one).into_string();
        assert_parts(
            &one,
            &[
                "href=\"/plans/plan_1?file=src%2Fa%20b%26c.rs#changes\" data-key=\"list 0\">a b&amp;c.rs</a>",
                "data-key=\"list 1\" aria-current=\"true\">&lt;b&gt;.rs</a>",
            ],
        );
    }
}
