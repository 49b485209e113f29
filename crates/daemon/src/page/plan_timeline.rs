//! The time line of a plan: what happened to it, when, and who did it.

use maud::{Markup, html};
use protocol::PlanMoment;

use super::ansi::one_line;
use super::overview::readable;

/// How many moments are shown, the last ones. A plan that is worked in for a day has thousands.
const SHOWN_MOMENTS: usize = 60;

/// What happened, oldest first.
pub(super) fn list(moments: &[PlanMoment]) -> Markup {
    let left_out = moments.len().saturating_sub(SHOWN_MOMENTS);
    html! {
        @if moments.is_empty() { p { "The history of this plan has expired." } }
        @if left_out > 0 {
            p class="more" { (left_out) " earlier events are not shown; " code { "tidelock plan show" } " lists them all." }
        }
        ol class="timeline" {
            @for moment in moments.iter().skip(left_out) {
                @let (word, class) = words(&moment.event);
                li class=(class) data-event=(moment.event) {
                    strong { (word) }
                    time datetime=(moment.at) { (readable(&moment.at)) }
                    @if !moment.actor.is_empty() { span class="passed" { "by " (one_line(&moment.actor)) } }
                    @if !moment.text.is_empty() { span class="said" { (one_line(&moment.text)) } }
                }
            }
        }
    }
}

/// What happened, for people, and how it looks.
fn words(event: &str) -> (&str, &'static str) {
    match event {
        "opened" => ("Opened", "plain"),
        "changeset_started" => ("Changeset started", "plain"),
        "changed" => ("Changed", "active"),
        "changeset_closed" => ("Changeset closed", "plain"),
        "command_started" => ("Command started", "active"),
        "command_ended" => ("Command ended", "plain"),
        "sealed" => ("Sealed", "warn"),
        "reopened" => ("Reopened", "active"),
        "check_started" => ("Check started", "active"),
        "check_ended" => ("Check ended", "plain"),
        "overlapped" => ("Overlap", "warn"),
        "applied" => ("Applied", "good"),
        "refused" => ("Conflicted", "bad"),
        "undone" => ("Undone", "warn"),
        "refreshed" => ("Refreshed", "plain"),
        "child_merged" => ("Child merged", "good"),
        "rescued" => ("Rescued", "warn"),
        "set_aside" => ("Set aside", "bad"),
        "discarded" => ("Discarded", "plain"),
        other => (other, "plain"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::job_state::tests::{HOSTILE, assert_harmless};
    use super::*;

    fn moment(event: &str, actor: &str, text: &str) -> PlanMoment {
        PlanMoment {
            sequence: 1,
            at: "2026-01-31T09:30:00.000Z".to_owned(),
            event: event.to_owned(),
            actor: actor.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn each_moment_says_who_did_what() {
        let time = "<time datetime=\"2026-01-31T09:30:00.000Z\">2026-01-31 09:30:00.000 UTC</time>";
        assert_eq!(
            list(&[
                moment("opened", "claude", ""),
                moment("overlapped", "", "src/a.rs")
            ])
            .into_string(),
            format!(
                "<ol class=\"timeline\"><li class=\"plain\" data-event=\"opened\"><strong>Opened</strong>{time}\
                 <span class=\"passed\">by claude</span></li>\
                 <li class=\"warn\" data-event=\"overlapped\"><strong>Overlap</strong>{time}\
                 <span class=\"said\">src/a.rs</span></li></ol>"
            )
        );
    }

    #[test]
    fn only_the_last_ones_are_shown() {
        let moments: Vec<PlanMoment> = (0..SHOWN_MOMENTS + 3)
            .map(|number| moment("changed", "a", &format!("<{number}>")))
            .collect();
        let shown = list(&moments).into_string();
        assert_eq!(shown.matches("<li").count(), SHOWN_MOMENTS);
        assert!(shown.contains("3 earlier events are not shown"), "{shown}");
        assert!(
            !shown.contains("&lt;2&gt;") && shown.contains("&lt;3&gt;"),
            "{shown}"
        );
    }

    #[test]
    fn what_others_said_is_shown_as_text() {
        assert_harmless(&list(&[moment("changed", HOSTILE, HOSTILE)]).into_string());
    }
}
