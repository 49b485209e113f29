//! What a plan changes: the list of files on the left, and what changed in each.
//!
//! Everything here was written by the agents and people who worked in the plan. It is shown exactly, within limits:
//! long files are cut, with a link to the whole file.

use maud::{Markup, html};
use protocol::{FileDiff, PlanDiff};
use serde::Deserialize;

use super::diff_rows::rows;
use super::files::{self, anchor, letter};
use super::state::{lines, path};
use crate::page::parts::list::query;
use crate::page::parts::text::{counted, exact, exact_words};

/// How many lines of a file are shown next to others. The rest is behind a link.
const FILE_LINES: usize = 400;

/// How many lines are shown of all files together. A browser takes a second to render about ten times as many.
const PAGE_LINES: usize = 5000;

/// How many lines are shown when you open a whole file. The diff itself has no more.
const WHOLE_FILE_LINES: usize = 10_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Arrangement {
    #[default]
    Unified,
    Split,
}

/// Which part of the changes to show. It is part of the URL, so it can be bookmarked and works without a script.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct View {
    #[serde(default, rename = "view")]
    pub(crate) arrangement: Arrangement,
    /// Only the changes of this changeset.
    pub(crate) changeset: Option<String>,
    /// Only this file, in full.
    pub(crate) file: Option<String>,
}

impl View {
    pub(crate) fn address(&self, plan: &str) -> String {
        let split = (self.arrangement == Arrangement::Split).then_some("split");
        let parts = [
            ("view", split),
            ("changeset", self.changeset.as_deref()),
            ("file", self.file.as_deref()),
        ];
        format!("{}{}", path(plan), query(&parts))
    }

    fn of_file(&self, file: &str) -> Self {
        Self {
            file: Some(file.to_owned()),
            ..self.clone()
        }
    }
}

pub(crate) fn section(diff: &PlanDiff, view: &View) -> Markup {
    let shown: Vec<&FileDiff> = match &view.file {
        None => diff.files.iter().collect(),
        Some(wanted) => diff.files.iter().filter(|file| file.path == *wanted).collect(),
    };
    let left_out = diff.summary.files.saturating_sub(diff.files.len() as u64);
    html! {
        (heading(diff, view))
        @if diff.files.is_empty() {
            p { "No changes." }
        } @else {
            div class="diff-columns" {
                (files::list(diff, view))
                div class="diff-files" {
                    @if shown.is_empty() { p { "This file has no changes, or no longer has any." } }
                    (files(diff, &shown, view))
                    @if left_out > 0 {
                        p class="more" {
                            (counted(left_out, "more file is", "more files are")) " not shown. "
                            code { "tidelock plan diff " (diff.plan) } " shows them all."
                        }
                    }
                }
            }
        }
    }
}

fn heading(diff: &PlanDiff, view: &View) -> Markup {
    let (added, removed) = (diff.summary.added_lines, diff.summary.removed_lines);
    html! {
        div class="card-heading" {
            h2 id="changes" {
                @if view.changeset.is_some() { "Changes in this changeset" } @else { "Changes" }
            }
            span class="diff-extent" {
                (counted(diff.summary.files, "file", "files")) " " (lines(added.unwrap_or(0), removed.unwrap_or(0)))
            }
        }
        nav class="filter" aria-label="Diff view" {
            @for (arrangement, word) in [(Arrangement::Unified, "Unified"), (Arrangement::Split, "Side by side")] {
                @let other = View { arrangement, ..view.clone() };
                a href={ (other.address(&diff.plan)) "#changes" } data-key={ "view " (word) }
                    aria-current=[(view.arrangement == arrangement).then_some("true")] { (word) }
            }
            @if view.file.is_some() {
                a href={ (View { file: None, ..view.clone() }.address(&diff.plan)) "#changes" } data-key="all files" {
                    "All files"
                }
            }
            @if view.changeset.is_some() {
                a href={ (View { changeset: None, file: None, ..view.clone() }.address(&diff.plan)) "#changes" }
                    data-key="all changes" { "All changes in the plan" }
            }
        }
    }
}

fn files(diff: &PlanDiff, shown: &[&FileDiff], view: &View) -> Markup {
    let limit = match view.file {
        Some(_) => WHOLE_FILE_LINES,
        None => FILE_LINES,
    };
    // The lines left for the files that follow.
    let mut left = limit.max(PAGE_LINES);
    let cards = shown.iter().map(|file| {
        let card = file_card(diff, file, view, limit.min(left));
        let used: usize = file.hunks.iter().map(|hunk| hunk.lines.len()).sum();
        left = left.saturating_sub(used.min(limit));
        card
    });
    html! { @for card in cards { (card) } }
}

fn file_card(diff: &PlanDiff, file: &FileDiff, view: &View, limit: usize) -> Markup {
    let position = diff.files.iter().position(|each| std::ptr::eq(each, file));
    let total: usize = file.hunks.iter().map(|hunk| hunk.lines.len()).sum();
    let all = view.of_file(&file.path).address(&diff.plan);
    html! {
        section class="diff-file" id=(anchor(position.unwrap_or_default())) aria-label=(exact_words(&file.path)) {
            header class="diff-head" {
                (letter(&file.kind))
                h3 { a href={ (all) "#changes" } data-key={ "file " (exact_words(&file.path)) } { (exact(&file.path)) } }
                (lines(file.added_lines, file.removed_lines))
                @for remark in remarks(file) { p { (remark) } }
            }
            @if !file.hunks.is_empty() && limit > 0 {
                (rows(file, view.arrangement, limit))
            }
            @if total > limit {
                p class="diff-more" {
                    (counted((total - limit) as u64, "more line", "more lines")) ". "
                    @if view.file.is_none() { a href={ (all) "#changes" } { "Show the whole file" } }
                }
            } @else if file.cut {
                p class="diff-more" {
                    "More lines follow. " code { "tidelock plan diff " (diff.plan) } " shows them all."
                }
            }
        }
    }
}

fn remarks(file: &FileDiff) -> Vec<Markup> {
    let mut remarks = Vec::new();
    match file.kind.as_str() {
        "create" => remarks.push(html! { "New" (kind_of(file.new_mode.as_deref())) "." }),
        "delete" => remarks.push(html! { "Deleted" (kind_of(file.old_mode.as_deref())) "." }),
        _ => {}
    }
    if let Some(from) = &file.from {
        remarks.push(html! { "Renamed from " code { (exact(from)) } "." });
    }
    if let (Some(old), Some(new)) = (&file.old_mode, &file.new_mode)
        && old != new
    {
        remarks.push(html! { (mode_change(old, new)) " (" code { (old) } " → " code { (new) } ")." });
    }
    if file.binary {
        remarks.push(html! { "Binary, or too large to show." });
    } else if file.hunks.is_empty()
        && matches!(file.kind.as_str(), "create" | "delete")
        && !is_directory(file)
    {
        remarks.push(html! { "Empty." });
    }
    remarks
}

fn kind_of(mode: Option<&str>) -> &'static str {
    match mode {
        Some("120000") => " symlink",
        Some("040000") => " directory",
        Some(mode) if is_executable(mode) => " executable file",
        _ => " file",
    }
}

fn is_directory(file: &FileDiff) -> bool {
    [&file.old_mode, &file.new_mode]
        .into_iter()
        .any(|mode| mode.as_deref() == Some("040000"))
}

fn is_executable(mode: &str) -> bool {
    u32::from_str_radix(mode, 8).is_ok_and(|mode| mode & 0o100 != 0)
}

fn mode_change(old: &str, new: &str) -> &'static str {
    match (old, new) {
        (_, "120000") => "Now a symlink",
        ("120000", _) => "No longer a symlink",
        _ => match (is_executable(old), is_executable(new)) {
            (false, true) => "Now executable",
            (true, false) => "No longer executable",
            _ => "Permissions changed",
        },
    }
}

#[cfg(test)]
#[path = "diff_tests.rs"]
pub(crate) mod tests;
