//! The time line of a job: what happened to it, when, and how long it took from one to the next.

use maud::{Markup, html};
use protocol::JobMoment;

use super::ansi::one_line;
use super::job_time;
use super::overview::readable;

/// How many moments are shown. A job with many retries has thousands, and the last ones tell why.
const SHOWN_MOMENTS: usize = 100;

/// What happened, oldest first.
pub(super) fn list(moments: &[JobMoment]) -> Markup {
    let left_out = moments.len().saturating_sub(SHOWN_MOMENTS);
    html! {
        @if moments.is_empty() { p { "The history of this job has expired." } }
        @if left_out > 0 {
            p class="more" { (left_out) " earlier events are not shown; " code { "tidelock job show" } " lists them all." }
        }
        ol class="timeline" {
            @for (position, moment) in moments.iter().enumerate().skip(left_out) {
                @let before = position.checked_sub(1).and_then(|before| moments.get(before));
                @let passed = before.and_then(|before| job_time::between(&before.at, &moment.at));
                (item(moment, passed))
            }
        }
    }
}

fn item(moment: &JobMoment, passed: Option<String>) -> Markup {
    let (word, class) = words(&moment.event);
    html! {
        li class=(class) data-event=(moment.event) {
            strong { (word) }
            time datetime=(moment.at) { (readable(&moment.at)) }
            @if let Some(passed) = passed { span class="passed" { "after " (passed) } }
            @if !moment.text.is_empty() { span class="said" { (one_line(&moment.text)) } }
        }
    }
}

/// What happened, for people, and how it looks.
fn words(event: &str) -> (&str, &'static str) {
    match event {
        "submitted" => ("Submitted", "plain"),
        "claimed" => ("Started", "active"),
        "released" => ("Released", "plain"),
        "cancel_requested" => ("Cancel requested", "warn"),
        "retrying" => ("Attempt failed", "warn"),
        "interrupted" => ("Interrupted", "warn"),
        "succeeded" => ("Succeeded", "good"),
        "failed" => ("Failed", "bad"),
        "cancelled" => ("Cancelled", "plain"),
        other => (other, "plain"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::job_state::tests::{HOSTILE, assert_harmless};
    use super::*;

    fn moment(sequence: u64, at: &str, event: &str, text: &str) -> JobMoment {
        JobMoment {
            sequence,
            at: at.to_owned(),
            event: event.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn each_moment_says_how_long_it_took_to_get_there() {
        let moments = [
            moment(1, "2026-01-31T09:30:00.000Z", "submitted", ""),
            moment(2, "2026-01-31T09:30:00.012Z", "claimed", "attempt 1"),
            moment(3, "2026-01-31T09:31:10.012Z", "succeeded", ""),
        ];
        assert_eq!(
            list(&moments).into_string(),
            "<ol class=\"timeline\">\
             <li class=\"plain\" data-event=\"submitted\"><strong>Submitted</strong>\
             <time datetime=\"2026-01-31T09:30:00.000Z\">2026-01-31 09:30:00.000 UTC</time></li>\
             <li class=\"active\" data-event=\"claimed\"><strong>Started</strong>\
             <time datetime=\"2026-01-31T09:30:00.012Z\">2026-01-31 09:30:00.012 UTC</time>\
             <span class=\"passed\">after 12 ms</span><span class=\"said\">attempt 1</span></li>\
             <li class=\"good\" data-event=\"succeeded\"><strong>Succeeded</strong>\
             <time datetime=\"2026-01-31T09:31:10.012Z\">2026-01-31 09:31:10.012 UTC</time>\
             <span class=\"passed\">after 1 min 10 s</span></li></ol>"
        );
    }

    #[test]
    fn only_the_last_ones_are_shown_and_the_first_of_them_has_its_time() {
        let moments: Vec<JobMoment> = (0..SHOWN_MOMENTS as u64 + 3)
            .map(|number| moment(number, "2026-01-31T09:30:00Z", "retrying", &format!("<{number}>")))
            .collect();
        let shown = list(&moments).into_string();
        assert!(shown.contains("3 earlier events are not shown"), "{shown}");
        assert_eq!(shown.matches("<li").count(), SHOWN_MOMENTS);
        assert_eq!(shown.matches("after 0 ms").count(), SHOWN_MOMENTS);
        assert!(
            !shown.contains("&lt;2&gt;") && shown.contains("&lt;3&gt;"),
            "{shown}"
        );
    }

    #[test]
    fn what_others_said_is_shown_as_text() {
        let moments = [moment(1, "2026-01-31T09:30:00Z", "cancel_requested", HOSTILE)];
        assert_harmless(&list(&moments).into_string());
    }
}
