//! Lanes over time: a row for each actor, or for each plan, with what went on in it from left to right.
//!
//! They are drawn as SVG with positions in per cent, so that they fit any width without a script and without a style of
//! their own. Everything has a sign beside its colour, a text for whoever points at it, and each lane says in words what
//! is in it. Long times in which nothing went on are cut short, and marked.

use maud::{Markup, html};

use super::ansi::one_line;
use super::job_time::short;

/// How high a lane is, in pixels.
const HEIGHT: u32 = 30;
/// Where its middle is.
const MIDDLE: u32 = 15;
/// A lane has some room at both ends, in per cent, so that no sign is cut off.
const MARGIN: f64 = 2.0;
/// A pause is cut short only if it is longer than this.
const SHORT_PAUSE_MS: u64 = 60_000;
/// What a pause that was cut short takes, as a part of all the rest.
const CUT: f64 = 0.06;

/// What went on for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpanKind {
    /// A command ran.
    Command,
    /// A check ran.
    Check,
    /// A changeset was open.
    Changeset,
    /// A plan was not over yet.
    Plan,
}

/// Something that went on for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) kind: SpanKind,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) text: String,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) at: u64,
    pub(super) sign: char,
    /// How it looks.
    pub(super) class: &'static str,
    pub(super) text: String,
}

/// One row.
#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    /// Whose it is; may be a link.
    pub(super) label: String,
    pub(super) href: Option<String>,
    /// What stands below that.
    pub(super) more: Option<Markup>,
    pub(super) spans: Vec<Span>,
    pub(super) marks: Vec<Mark>,
    /// All of it in words.
    pub(super) summary: String,
}

/// The lanes one below the other, over the same time. `legend` says what the signs mean.
pub(super) fn show(lanes: &[Lane], legend: &[(char, &str)]) -> Markup {
    let axis = Axis::of(lanes);
    html! {
        @if !lanes.is_empty() {
            ul class="lanes" {
                @for lane in lanes {
                    li {
                        div class="lane-label" {
                            @match &lane.href {
                                Some(href) => a href=(href) data-key={ "lane " (href) } { (one_line(&lane.label)) },
                                None => span { (one_line(&lane.label)) },
                            }
                            @if let Some(more) = &lane.more { (more) }
                        }
                        (drawing(lane, &axis))
                    }
                }
            }
            @if let (Some(first), Some(last)) = (axis.first(), axis.last()) {
                p class="lane-axis" {
                    span { (clock(first)) }
                    @if !axis.cuts.is_empty() { span { "┊ pause, shortened" } }
                    span { (clock(last)) " (" (short(last - first)) ")" }
                }
            }
            p class="lane-legend" {
                @for (sign, word) in legend { span { b { (sign) } " " (word) } " " }
            }
        }
    }
}

fn drawing(lane: &Lane, axis: &Axis) -> Markup {
    let at = |time: u64| format!("{:.2}%", axis.place(time));
    html! {
        svg class="lane" width="100%" height=(HEIGHT) role="img" aria-label=(one_line(&lane.summary)) {
            line class="lane-ground" x1="0" x2="100%" y1=(MIDDLE) y2=(MIDDLE) {}
            @for (from, to) in &axis.cuts {
                @let place = (axis.place(*from) + axis.place(*to)) / 2.0;
                line class="lane-cut" x1=(format!("{place:.2}%")) x2=(format!("{place:.2}%")) y1="2" y2=(HEIGHT - 2) {
                    title { "idle for " (short(to - from)) }
                }
            }
            @for span in &lane.spans {
                line class=(span_class(span.kind)) x1=(at(span.from)) x2=(at(span.to)) y1=(MIDDLE) y2=(MIDDLE) {
                    title { (one_line(&span.text)) " (" (short(span.to.saturating_sub(span.from))) ")" }
                }
            }
            @for mark in &lane.marks {
                text class={ "lane-mark " (mark.class) } x=(at(mark.at)) y=(MIDDLE + 5) text-anchor="middle" {
                    (mark.sign)
                    title { (one_line(&mark.text)) ", " (clock(mark.at)) }
                }
            }
        }
    }
}

fn span_class(kind: SpanKind) -> &'static str {
    match kind {
        SpanKind::Command => "lane-command",
        SpanKind::Check => "lane-check",
        SpanKind::Changeset => "lane-changeset",
        SpanKind::Plan => "lane-plan",
    }
}

/// The time of the day, to the second.
fn clock(ms: u64) -> String {
    let text = crate::times::rfc3339_ms(i64::try_from(ms).unwrap_or(i64::MAX));
    text.get(11..19).unwrap_or_default().to_owned()
}

/// Where on a lane a time is.
#[derive(Debug, Default)]
struct Axis {
    /// The times at which something began, ended or happened, and where they are, in order.
    places: Vec<(u64, f64)>,
    /// Pauses that were cut short.
    cuts: Vec<(u64, u64)>,
}

impl Axis {
    fn of(lanes: &[Lane]) -> Self {
        let spans = || lanes.iter().flat_map(|lane| &lane.spans);
        let ends = spans().flat_map(|span| [span.from, span.to.max(span.from)]);
        let marks = lanes.iter().flat_map(|lane| &lane.marks).map(|mark| mark.at);
        let mut times: Vec<u64> = ends.chain(marks).collect();
        times.sort_unstable();
        times.dedup();
        let whole = times
            .last()
            .zip(times.first())
            .map_or(0, |(last, first)| last - first);
        let is_pause = |from: u64, to: u64| {
            let gap = to - from;
            gap > SHORT_PAUSE_MS
                && gap > whole / 10
                && !spans().any(|span| span.from <= from && span.to >= to)
        };
        let gaps: Vec<(u64, u64)> = times.windows(2).map(|pair| (pair[0], pair[1])).collect();
        let cuts: Vec<(u64, u64)> = gaps
            .iter()
            .copied()
            .filter(|(from, to)| is_pause(*from, *to))
            .collect();
        let busy: u64 = gaps
            .iter()
            .filter(|gap| !cuts.contains(gap))
            .map(|(from, to)| to - from)
            .sum();
        let cut = (busy.max(1) as f64) * CUT;
        let length = |gap: &(u64, u64)| match cuts.contains(gap) {
            true => cut,
            false => (gap.1 - gap.0) as f64,
        };
        let total: f64 = gaps.iter().map(length).sum();
        let mut far = 0.0;
        let mut places: Vec<(u64, f64)> = times.first().map(|first| (*first, MARGIN)).into_iter().collect();
        for gap in &gaps {
            far += length(gap);
            places.push((gap.1, MARGIN + far / total * (100.0 - 2.0 * MARGIN)));
        }
        Self { places, cuts }
    }

    fn first(&self) -> Option<u64> {
        self.places.first().map(|(time, _)| *time)
    }

    fn last(&self) -> Option<u64> {
        self.places.last().map(|(time, _)| *time)
    }

    /// In per cent of the width. All times that are asked for are known.
    fn place(&self, time: u64) -> f64 {
        let known = self.places.partition_point(|(known, _)| *known < time);
        self.places
            .get(known)
            .or_else(|| self.places.last())
            .map_or(MARGIN, |(_, place)| *place)
    }
}

#[cfg(test)]
mod tests {
    use super::super::job_state::tests::{HOSTILE, assert_harmless};
    use super::*;

    fn lane(spans: &[(u64, u64)], marks: &[u64]) -> Lane {
        Lane {
            label: "claude".to_owned(),
            spans: spans
                .iter()
                .map(|(from, to)| Span {
                    kind: SpanKind::Command,
                    from: *from,
                    to: *to,
                    text: "make".to_owned(),
                })
                .collect(),
            marks: marks
                .iter()
                .map(|at| Mark {
                    at: *at,
                    sign: '▲',
                    class: "good",
                    text: "applied".to_owned(),
                })
                .collect(),
            summary: "1 command, applied".to_owned(),
            ..Lane::default()
        }
    }

    fn rounded(axis: &Axis) -> Vec<(u64, u64)> {
        let places = axis.places.iter();
        places
            .map(|(time, place)| (*time, place.round() as u64))
            .collect()
    }

    #[test]
    fn times_are_spread_over_the_width() {
        let axis = Axis::of(&[lane(&[(0, 10_000)], &[20_000])]);
        assert_eq!(rounded(&axis), [(0, 2), (10_000, 50), (20_000, 98)]);
        assert_eq!(axis.cuts, []);
        assert_eq!((axis.place(10_000).round(), axis.place(0).round()), (50.0, 2.0));
        assert_eq!(rounded(&Axis::of(&[lane(&[], &[7])])), [(7, 2)]);
        assert_eq!(rounded(&Axis::of(&[])), []);
    }

    #[test]
    fn a_long_pause_is_cut_short_but_not_while_something_runs() {
        let hour = 3_600_000;
        let axis = Axis::of(&[lane(&[(0, 10_000)], &[hour])]);
        assert_eq!(axis.cuts, [(10_000, hour)]);
        assert_eq!(rounded(&axis), [(0, 2), (10_000, 93), (hour, 98)]);
        let busy = Axis::of(&[lane(&[(0, 10_000)], &[hour]), lane(&[(0, hour)], &[])]);
        assert_eq!(busy.cuts, []);
    }

    #[test]
    fn a_lane_has_signs_texts_and_words() {
        let page = show(&[lane(&[(0, 1500)], &[2000])], &[('▲', "applied")]).into_string();
        for part in [
            "role=\"img\" aria-label=\"1 command, applied\"",
            "class=\"lane-command\" x1=\"2.00%\" x2=\"74.00%\"",
            "<title>make (1.5 s)</title>",
            "<text class=\"lane-mark good\" x=\"98.00%\" y=\"20\" text-anchor=\"middle\">▲<title>applied, 00:00:02</title>",
            "<b>▲</b> applied",
            "00:00:02 (2.0 s)",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("style="), "{page}");
        assert_eq!(show(&[], &[]).into_string(), "");
    }

    #[test]
    fn what_others_say_is_shown_as_text() {
        let mut hostile = lane(&[(0, 1)], &[2]);
        hostile.label = HOSTILE.to_owned();
        hostile.summary = HOSTILE.to_owned();
        hostile.spans[0].text = HOSTILE.to_owned();
        hostile.marks[0].text = HOSTILE.to_owned();
        assert_harmless(&show(&[hostile], &[]).into_string());
    }
}
