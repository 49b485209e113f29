//! The timeline of a plan: what happened to it, when, and who did it.

use maud::Markup;
use protocol::PlanMoment;

use crate::page::parts::ansi::one_line;
use crate::page::parts::times::{Moment, timeline};

/// How many moments are shown, the last ones. A plan has thousands after a day of work.
const SHOWN_MOMENTS: usize = 60;

/// What happened, oldest first.
pub(crate) fn list(moments: &[PlanMoment]) -> Markup {
    let shown = moments.iter().map(|moment| Moment {
        event: &moment.event,
        at: &moment.at,
        passed: (!moment.actor.is_empty()).then(|| format!("by {}", one_line(&moment.actor))),
        text: &moment.text,
    });
    timeline("plan", SHOWN_MOMENTS, words, shown)
}

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
    use super::*;
    use crate::page::parts::text::tests::{HOSTILE, assert_absent, assert_harmless, assert_parts};

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
        assert_parts(&shown, &["&lt;3&gt;"]);
        assert_absent(&shown, &["&lt;2&gt;"]);
    }

    #[test]
    fn what_others_said_is_shown_as_text() {
        assert_harmless(&list(&[moment("changed", HOSTILE, HOSTILE)]).into_string());
    }
}
