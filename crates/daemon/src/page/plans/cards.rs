//! Cards of a plan: who works in it, its checks, overlapping plans, and what is left out.

use maud::{Markup, html};
use protocol::{Plan, PlanLeftOut, PlanOverlap, PlanOverlapPath};

use super::state::{check_badge, overlap_words, path};
use crate::page::jobs::state as job_state;
use crate::page::parts::ansi::one_line;
use crate::page::parts::text::{exact, titled};
use crate::page::parts::times::{ago, time};

/// How many shared files of two plans are listed.
const NAMED_PATHS: usize = 30;
/// How many conflicting lines of two plans are listed.
const NAMED_LINES: usize = 12;
/// How many omitted entries are listed.
const NAMED_LEFT_OUT: usize = 50;

/// A card with a heading; nothing if it would be empty.
fn card(id: &str, title: &str, is_empty: bool, content: &Markup) -> Markup {
    html! {
        @if !is_empty { section class="card" aria-labelledby=(id) { h2 id=(id) { (title) } (content) } }
    }
}

pub(crate) fn commands(plan: &Plan, now_ms: u64) -> Markup {
    let content = html! {
        ul class="plain-list" {
            @for run in &plan.running {
                li {
                    span class="badge active busy" { (one_line(&run.actor)) }
                    @if !run.job.is_empty() {
                        " " a href=(job_state::path(&run.job)) data-key={ "run " (run.job) } { code { (run.job) } }
                    }
                    @if let Some(ago) = ago(&run.since, now_ms) { " for " (ago) }
                }
            }
        }
    };
    card("running", "Running now", plan.running.is_empty(), &content)
}

pub(crate) fn checks(plan: &Plan) -> Markup {
    let content = html! {
        ul class="checks" {
            @for check in &plan.checks {
                li {
                    (check_badge(check))
                    code { (exact(&check.command)) }
                    @if let Some(job) = &check.job {
                        a href=(job_state::path(job)) data-key={ "check " (job) } { "Output" }
                    }
                    @if let Some(at) = &check.at { (time(at)) }
                    @if let Some(text) = &check.text { small { (one_line(text)) } }
                }
            }
        }
    };
    card("checks", "Checks", plan.checks.is_empty(), &content)
}

pub(crate) fn overlaps(plan: &Plan) -> Markup {
    let content = html! { @for overlap in &plan.overlaps { (other_plan(overlap)) } };
    card(
        "overlaps",
        "Overlapping plans",
        plan.overlaps.is_empty(),
        &content,
    )
}

fn other_plan(overlap: &PlanOverlap) -> Markup {
    let more = overlap.paths.len().saturating_sub(NAMED_PATHS);
    html! {
        h3 {
            a href=(path(&overlap.plan)) data-key={ "overlap " (overlap.plan) } {
                (titled(&overlap.title, &overlap.plan))
            }
            small { " " (overlap_words(overlap)) }
        }
        ul class="plain-list" {
            @for path in overlap.paths.iter().take(NAMED_PATHS) {
                li {
                    code { (exact(&path.path)) }
                    @if path.conflicts { " " strong class="error" { "conflicts" } (lines(path)) }
                }
            }
            @if more > 0 { li class="more" { "and " (more) " more" } }
        }
    }
}

fn lines(path: &PlanOverlapPath) -> String {
    let named: Vec<String> = path.lines.iter().take(NAMED_LINES).map(u64::to_string).collect();
    match named.as_slice() {
        [] => String::new(),
        [line] => format!(" at line {line} of that plan's file"),
        _ if path.lines.len() > NAMED_LINES => {
            format!(" at lines {} … of that plan's file", named.join(", "))
        }
        _ => format!(" at lines {} of that plan's file", named.join(", ")),
    }
}

pub(crate) fn left_out(plan: &Plan) -> Markup {
    let more = plan.left_out.len().saturating_sub(NAMED_LEFT_OUT);
    let notes =
        |notes: &[String]| html! { ul class="plain-list" { @for note in notes { li { (exact(note)) } } } };
    let not_carried = html! {
        p { "This happened in the sandbox. Applying the plan doesn't bring it to the workspace." }
        (notes(&plan.not_carried))
    };
    let left_out = html! {
        p { "This is in the sandbox but won't be applied with the rest." }
        ul class="plain-list" {
            @for each in plan.left_out.iter().take(NAMED_LEFT_OUT) {
                li { code { (exact(&each.path)) } " " (why(each)) }
            }
            @if more > 0 { li class="more" { "and " (more) " more" } }
        }
    };
    html! {
        (card("remarks", "In the sandbox", plan.remarks.is_empty(), &notes(&plan.remarks)))
        (card("not-carried", "Not applied", plan.not_carried.is_empty(), &not_carried))
        (card("left-out", "Left out", plan.left_out.is_empty(), &left_out))
    }
}

fn why(left_out: &PlanLeftOut) -> &str {
    match left_out.why.as_str() {
        "repository" => "is a separate repository",
        "changed_repository" => "is a separate repository, and was changed",
        "history" => "is the git directory of a new repository",
        "too_large" => "is too large",
        "too_long" => "contains a path that is too long",
        "special" => "isn't a file, directory or symlink",
        "name" => "contains a name that can't be applied",
        "unreadable" => "can't be read",
        "too_many" => "exceeds the limit on ignored files",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use protocol::{CheckState, PlanCheck, PlanState};

    use super::*;
    use crate::page::parts::text::tests::{HOSTILE, NOW, assert_parts};
    use crate::page::plans::state::tests::{check, command, overlap, plan};
    use crate::times::parse;

    #[test]
    fn what_is_not_there_takes_no_room() {
        let plain = plan(PlanState::Open);
        let parts = [
            commands(&plain, 0),
            checks(&plain),
            overlaps(&plain),
            left_out(&plain),
        ];
        assert_eq!(parts.map(Markup::into_string), ["", "", "", ""]);
    }

    #[test]
    fn everything_leads_on() {
        let full = Plan {
            running: vec![command("claude")],
            checks: vec![PlanCheck {
                job: Some("job_2".to_owned()),
                text: Some("exit code 1".to_owned()),
                at: Some("2026-01-31T09:30:20Z".to_owned()),
                ..check(CheckState::Failed)
            }],
            overlaps: vec![overlap(2, 1)],
            left_out: vec![PlanLeftOut {
                path: "vendor/lib".to_owned(),
                why: "repository".to_owned(),
                work: false,
            }],
            ..plan(PlanState::Open)
        };
        let page = html! { (commands(&full, parse(NOW).unwrap())) (checks(&full)) (overlaps(&full)) (left_out(&full)) };
        let page = page.into_string();
        assert_parts(
            &page,
            &[
                "<span class=\"badge active busy\">claude</span> <a href=\"/jobs/job_1\" data-key=\"run job_1\">\
             <code>job_1</code></a> for 50 s",
                "<span class=\"badge bad\">Failed</span><code>make test</code><a href=\"/jobs/job_2\" \
             data-key=\"check job_2\">Output</a>",
                "<small>exit code 1</small>",
                "<a href=\"/plans/plan_2\" data-key=\"overlap plan_2\">Other work</a><small> 2 files in common, 1 conflicts",
                "<code>src/0.rs</code> <strong class=\"error\">conflicts</strong> at lines 3, 40 of that plan's file</li>",
                "<li><code>src/1.rs</code></li>",
                "<code>vendor/lib</code> is a separate repository",
            ],
        );
    }

    #[test]
    fn lists_have_an_end() {
        let full = Plan {
            overlaps: vec![overlap(NAMED_PATHS + 4, 0)],
            left_out: vec![
                PlanLeftOut {
                    path: "x".to_owned(),
                    why: "special".to_owned(),
                    work: false,
                };
                NAMED_LEFT_OUT + 1
            ],
            ..plan(PlanState::Open)
        };
        for (part, listed, more) in [
            (overlaps(&full), NAMED_PATHS, "and 4 more"),
            (left_out(&full), NAMED_LEFT_OUT, "and 1 more"),
        ] {
            let part = part.into_string();
            assert_eq!(part.matches("<li><code>").count(), listed);
            assert!(part.contains(more), "{part}");
        }
        let many = PlanOverlapPath {
            path: "a".to_owned(),
            conflicts: true,
            lines: (1..=20).collect(),
        };
        assert_eq!(
            lines(&many),
            " at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 … of that plan's file"
        );
    }

    #[test]
    fn what_others_wrote_is_shown_as_text() {
        let hostile = || HOSTILE.to_owned();
        let full = Plan {
            running: vec![command(HOSTILE)],
            checks: vec![PlanCheck {
                command: hostile(),
                text: Some(hostile()),
                ..check(CheckState::Failed)
            }],
            overlaps: vec![PlanOverlap {
                title: hostile(),
                ..overlap(1, 1)
            }],
            left_out: vec![PlanLeftOut {
                path: hostile(),
                why: hostile(),
                work: false,
            }],
            ..plan(PlanState::Open)
        };
        let page = html! { (commands(&full, 0)) (checks(&full)) (overlaps(&full)) (left_out(&full)) };
        let page = page.into_string();
        for trace in ["<script>alert", "\"'&\u{202e}"] {
            assert!(!page.contains(trace), "{trace:?}: {page}");
        }
    }
}
