//! The timeline of a job: what happened to it, when, and how long it took from one event to the next.

use maud::Markup;
use protocol::JobMoment;

use crate::page::parts::times::{Moment, between, timeline};

/// How many moments are shown. A job with many retries has thousands, and the last ones explain the outcome.
const SHOWN_MOMENTS: usize = 100;

/// What happened, oldest first.
pub(crate) fn list(moments: &[JobMoment]) -> Markup {
    let shown = moments.iter().enumerate().map(|(position, moment)| {
        let before = position.checked_sub(1).and_then(|before| moments.get(before));
        let passed = before.and_then(|before| between(&before.at, &moment.at));
        Moment {
            event: &moment.event,
            at: &moment.at,
            passed: passed.map(|passed| format!("after {passed}")),
            text: &moment.text,
        }
    });
    timeline("job", SHOWN_MOMENTS, words, shown)
}

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
    use super::*;
    use crate::page::parts::text::tests::{HOSTILE, assert_absent, assert_harmless, assert_parts};

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
        assert_parts(&shown, &["&lt;3&gt;"]);
        assert_absent(&shown, &["&lt;2&gt;"]);
    }

    #[test]
    fn what_others_said_is_shown_as_text() {
        let moments = [moment(1, "2026-01-31T09:30:00Z", "cancel_requested", HOSTILE)];
        assert_harmless(&list(&moments).into_string());
    }
}
