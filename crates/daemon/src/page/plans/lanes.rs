//! The timeline of a plan, with a lane for each actor, and of a workspace, with a lane for each plan.

use maud::{Markup, html};
use protocol::{Plan, PlanMoment, PlanState};

use super::state::{label, overlap_words, path, title};
use crate::page::parts::ansi::one_line;
use crate::page::parts::lanes::{Lane, Mark, Span, SpanKind, show};
use crate::page::parts::text::{counted, titled};
use crate::times::parse;

/// How many actors have a lane: the first ones. The list below shows what the others did.
const SHOWN_ACTORS: usize = 12;

/// The actor of events without one.
const NOBODY: &str = "Tidelock";

/// The legend of a plan's signs.
const SIGNS: [(char, &str); 9] = [
    ('━', "command"),
    ('┅', "check"),
    ('│', "opened"),
    ('•', "changed"),
    ('■', "sealed"),
    ('▲', "applied"),
    ('✕', "conflicted"),
    ('↩', "undone"),
    ('!', "overlap"),
];

/// The legend of a workspace's signs.
const PLAN_SIGNS: [(char, &str); 6] = [
    ('━', "in progress"),
    ('■', "sealed"),
    ('▲', "applied"),
    ('↩', "undone"),
    ('×', "discarded"),
    ('!', "overlaps with another plan"),
];

pub(crate) fn of_plan(moments: &[PlanMoment], now_ms: u64) -> Markup {
    let lanes = lanes_of(moments, now_ms);
    let left_out = lanes.len().saturating_sub(SHOWN_ACTORS);
    html! {
        (show(&lanes[..lanes.len() - left_out], &SIGNS))
        @if left_out > 0 { p class="more" { "and " (counted(left_out as u64, "other actor", "other actors")) } }
    }
}

/// The plans of a workspace over time, newest first, in the order of the list.
pub(crate) fn of_workspace(plans: &[&Plan], now_ms: u64) -> Markup {
    let lanes: Vec<Lane> = plans.iter().filter_map(|plan| lane_of(plan, now_ms)).collect();
    show(&lanes, &PLAN_SIGNS)
}

fn lanes_of(moments: &[PlanMoment], now_ms: u64) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = Vec::new();
    // What has started and not ended: the moment, and its lane.
    let mut open: Vec<(&PlanMoment, usize)> = Vec::new();
    for moment in moments {
        let Some(at) = parse(&moment.at) else {
            continue;
        };
        let actor = match moment.actor.as_str() {
            "" => NOBODY,
            actor => actor,
        };
        let place = lanes
            .iter()
            .position(|lane| lane.label == actor)
            .unwrap_or_else(|| {
                lanes.push(Lane {
                    label: actor.to_owned(),
                    ..Lane::default()
                });
                lanes.len() - 1
            });
        match moment.event.as_str() {
            "command_started" | "check_started" | "changeset_started" => open.push((moment, place)),
            "command_ended" | "check_ended" | "changeset_closed" => {
                let begun = open
                    .iter()
                    .position(|(begun, lane)| ends(begun, moment, *lane == place));
                if let Some((begun, lane)) = begun.map(|begun| open.remove(begun)) {
                    lanes[lane].spans.extend(span(begun, at));
                }
            }
            _ => {}
        }
        lanes[place].marks.extend(mark(moment, at));
    }
    for (begun, lane) in open {
        // It is still running. After a clock was set back, the last event of a plan may be in the future.
        let until = parse(&begun.at).map_or(now_ms, |from| now_ms.max(from));
        lanes[lane].spans.extend(span(begun, until));
    }
    for lane in &mut lanes {
        // A changeset is drawn below the commands that ran in it.
        lane.spans
            .sort_by_key(|span| (span.kind != SpanKind::Changeset, span.from));
        lane.summary = summary(lane, moments);
    }
    lanes
}

fn ends(begun: &PlanMoment, ended: &PlanMoment, is_same_actor: bool) -> bool {
    match (begun.event.as_str(), ended.event.as_str()) {
        ("command_started", "command_ended") => is_same_actor && begun.text == ended.text,
        ("changeset_started", "changeset_closed") => is_same_actor,
        // A check ends with its command and the result, no matter who reports it.
        ("check_started", "check_ended") => ended
            .text
            .strip_prefix(begun.text.as_str())
            .is_some_and(|rest| rest.starts_with(": ")),
        _ => false,
    }
}

fn span(begun: &PlanMoment, to: u64) -> Option<Span> {
    let (kind, text) = match begun.event.as_str() {
        "command_started" => (SpanKind::Command, begun.text.clone()),
        "check_started" => (SpanKind::Check, format!("check {}", begun.text)),
        _ => (SpanKind::Changeset, "changeset".to_owned()),
    };
    let from = parse(&begun.at)?;
    Some(Span {
        kind,
        from,
        to: to.max(from),
        text,
    })
}

fn mark(moment: &PlanMoment, at: u64) -> Option<Mark> {
    let (sign, class, word) = match moment.event.as_str() {
        "opened" => ('│', "plain", "opened"),
        "changed" => ('•', "active", "changed"),
        "sealed" => ('■', "warn", "sealed"),
        "applied" => ('▲', "good", "applied"),
        "child_merged" => ('▲', "good", "child merged"),
        "rescued" => ('◆', "warn", "rescued"),
        "set_aside" => ('◆', "bad", "set aside"),
        "refused" => ('✕', "bad", "conflicted"),
        "undone" => ('↩', "warn", "undone"),
        "overlapped" => ('!', "warn", "overlap"),
        "discarded" => ('×', "plain", "discarded"),
        "reopened" => ('│', "active", "reopened"),
        "refreshed" => ('│', "plain", "refreshed"),
        "check_ended" if moment.text.ends_with(": passed") => ('✓', "good", "check"),
        "check_ended" => ('✗', "bad", "check"),
        _ => return None,
    };
    let text = match moment.text.is_empty() {
        true => word.to_owned(),
        false => format!("{word}: {}", moment.text),
    };
    Some(Mark {
        at,
        sign,
        class,
        text,
    })
}

fn summary(lane: &Lane, moments: &[PlanMoment]) -> String {
    let count = |event: &str| {
        let of_lane = |moment: &&PlanMoment| match moment.actor.as_str() {
            "" => lane.label == NOBODY,
            actor => lane.label == actor,
        };
        let found = moments.iter().filter(of_lane);
        found.filter(|moment| moment.event == event).count() as u64
    };
    let words = [
        ("opened", "opened", "times opened"),
        ("changeset_started", "changeset", "changesets"),
        ("changed", "change", "changes"),
        ("command_started", "command", "commands"),
        ("check_started", "check", "checks"),
        ("sealed", "seal", "seals"),
        ("applied", "apply", "applies"),
        ("refused", "failed attempt", "failed attempts"),
        ("undone", "undo", "undos"),
        ("overlapped", "overlap", "overlaps"),
        ("discarded", "discard", "discards"),
    ];
    let parts: Vec<String> = words
        .into_iter()
        .filter(|(event, ..)| count(event) > 0)
        .map(|(event, one, many)| counted(count(event), one, many))
        .collect();
    format!("{}: {}", one_line(&lane.label), parts.join(", "))
}

fn lane_of(plan: &Plan, now_ms: u64) -> Option<Lane> {
    let from = parse(&plan.opened_at)?;
    let changed = parse(&plan.changed_at)?.max(from);
    let is_over = !matches!(plan.state, PlanState::Open | PlanState::Sealed);
    let to = if is_over { changed } else { now_ms.max(changed) };
    let end = match plan.state {
        PlanState::Open => None,
        PlanState::Sealed => Some(('■', "warn", "sealed")),
        PlanState::Applied => Some(('▲', "good", "applied")),
        PlanState::Undone => Some(('↩', "warn", "undone")),
        PlanState::Discarded => Some(('×', "plain", "discarded")),
    };
    let overlap = (!plan.overlaps.is_empty()).then_some(('!', "warn", "overlaps"));
    // A mark at the end, and one at the start if the plan overlaps with another.
    let marks = end
        .map(|mark| (changed, mark))
        .into_iter()
        .chain(overlap.map(|mark| (from, mark)));
    let with: Vec<String> = plan
        .overlaps
        .iter()
        .map(|overlap| {
            format!(
                "{} with {}",
                overlap_words(overlap),
                titled(&overlap.title, &overlap.plan)
            )
        })
        .collect();
    let mut summary = format!("{}, by {}", title(plan), one_line(&plan.opened_by));
    if !with.is_empty() {
        summary = format!("{summary}, {}", with.join(", "));
    }
    Some(Lane {
        label: title(plan),
        href: Some(path(&plan.id)),
        more: Some(html! { small { (label(plan)) ", by " (one_line(&plan.opened_by)) } }),
        spans: vec![Span {
            kind: SpanKind::Plan,
            from,
            to,
            text: title(plan),
        }],
        marks: marks
            .map(|(at, (sign, class, word))| Mark {
                at,
                sign,
                class,
                text: match sign {
                    '!' => with.join(", "),
                    _ => word.to_owned(),
                },
            })
            .collect(),
        summary,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::parts::text::tests::{HOSTILE, assert_harmless, assert_parts};
    use crate::page::plans::state::tests::{overlap, plan};

    const NOW: u64 = 1_769_851_860_000;

    fn moment(second: u32, event: &str, actor: &str, text: &str) -> PlanMoment {
        PlanMoment {
            sequence: u64::from(second),
            at: format!("2026-01-31T09:30:{second:02}.000Z"),
            event: event.to_owned(),
            actor: actor.to_owned(),
            text: text.to_owned(),
        }
    }

    /// A lane as: label, spans with their seconds, signs, and the description.
    type Told = (String, Vec<(SpanKind, u64, u64)>, String, String);

    fn told(moments: &[PlanMoment]) -> Vec<Told> {
        let start = parse("2026-01-31T09:30:00.000Z").unwrap();
        let second = |ms: u64| (ms - start) / 1000;
        let lanes = lanes_of(moments, NOW).into_iter().map(|lane| {
            let spans = lane
                .spans
                .iter()
                .map(|span| (span.kind, second(span.from), second(span.to)));
            let signs = lane.marks.iter().map(|mark| mark.sign).collect();
            (lane.label.clone(), spans.collect(), signs, lane.summary)
        });
        lanes.collect()
    }

    #[test]
    fn each_actor_has_a_lane_with_what_they_did() {
        let moments = [
            moment(0, "opened", "claude", "Fix it"),
            moment(1, "changeset_started", "claude", ""),
            moment(2, "command_started", "codex", "make"),
            moment(3, "command_started", "claude", "make"),
            moment(4, "changed", "claude", "2 changes"),
            moment(5, "command_ended", "claude", "make"),
            moment(6, "changeset_closed", "claude", ""),
            moment(7, "overlapped", "", "a.rs"),
            moment(8, "check_started", "me", "make test"),
            moment(9, "check_ended", "tidelock", "make test: passed"),
            moment(10, "sealed", "me", ""),
            moment(11, "refused", "me", "1 conflict"),
            moment(12, "applied", "me", ""),
            moment(13, "undone", "me", ""),
        ];
        use SpanKind::{Changeset, Check, Command};
        let expected: Vec<Told> = [
            (
                "claude",
                vec![(Changeset, 1, 6), (Command, 3, 5)],
                "│•",
                "claude: 1 opened, 1 changeset, 1 change, 1 command",
            ),
            // Still running.
            ("codex", vec![(Command, 2, 60)], "", "codex: 1 command"),
            ("Tidelock", vec![], "!", "Tidelock: 1 overlap"),
            (
                "me",
                vec![(Check, 8, 9)],
                "■✕▲↩",
                "me: 1 check, 1 seal, 1 apply, 1 failed attempt, 1 undo",
            ),
            ("tidelock", vec![], "✓", "tidelock: "),
        ]
        .into_iter()
        .map(|(label, spans, signs, summary)| (label.to_owned(), spans, signs.to_owned(), summary.to_owned()))
        .collect();
        assert_eq!(told(&moments), expected);
        assert_eq!(told(&[]), []);
    }

    #[test]
    fn plans_of_a_workspace_have_a_lane_each_and_overlaps_a_sign() {
        let open = Plan {
            overlaps: vec![overlap(2, 1)],
            ..plan(PlanState::Open)
        };
        let applied = plan(PlanState::Applied);
        let page = of_workspace(&[&open, &applied], NOW).into_string();
        assert_parts(
            &page,
            &[
                "aria-label=\"Fix the parser, by claude, 2 files in common, 1 conflicts with Other work\"",
                "<title data-utc=\"2026-01-31T09:30:00.000Z\">2 files in common, 1 conflicts with Other work, 09:30:00 UTC</title>",
                ">▲<title data-utc=\"2026-01-31T09:30:30.000Z\">applied, 09:30:30 UTC</title>",
                "<b>!</b> overlaps with another plan",
            ],
        );
        assert_eq!(page.matches("<svg").count(), 2);
    }

    #[test]
    fn many_actors_are_cut() {
        let moments: Vec<PlanMoment> = (0..20)
            .map(|number| moment(number, "changed", &format!("agent {number}"), ""))
            .collect();
        let page = of_plan(&moments, NOW).into_string();
        assert_eq!(page.matches("<svg").count(), SHOWN_ACTORS);
        assert!(page.contains("and 8 other actors"), "{page}");
    }

    #[test]
    fn what_others_say_is_shown_as_text() {
        let moments = [
            moment(0, "changed", HOSTILE, HOSTILE),
            moment(1, "command_started", HOSTILE, HOSTILE),
        ];
        assert_harmless(&of_plan(&moments, NOW).into_string());
        let hostile = Plan {
            title: HOSTILE.to_owned(),
            opened_by: HOSTILE.to_owned(),
            ..plan(PlanState::Sealed)
        };
        assert_harmless(&of_workspace(&[&hostile], NOW).into_string());
    }
}
