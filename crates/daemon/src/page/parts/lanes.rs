//! Lanes over time: a row for each actor, or for each plan, with what happened from left to right.
//!
//! They are drawn as SVG with positions in per cent, so that they fit any width without a script or inline styles.
//! Everything has a sign besides its colour and a tooltip, and each lane has a description in words. Long pauses are
//! shortened and marked.

use maud::{Markup, html};

use super::ansi::one_line;
use super::times::short;
use crate::times::rfc3339_ms;

/// How high a lane is, in pixels.
const HEIGHT: u32 = 30;
const MIDDLE: u32 = 15;
/// Margin at both ends of a lane, in per cent, so that no sign is cut off.
const MARGIN: f64 = 2.0;
/// Only longer pauses are shortened.
const SHORT_PAUSE_MS: u64 = 60_000;
/// The width of a shortened pause, relative to the rest.
const CUT: f64 = 0.06;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanKind {
    Command,
    Check,
    Changeset,
    Plan,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) kind: SpanKind,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) at: u64,
    pub(crate) sign: char,
    pub(crate) class: &'static str,
    pub(crate) text: String,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Lane {
    /// The actor or plan; may be a link.
    pub(crate) label: String,
    pub(crate) href: Option<String>,
    pub(crate) more: Option<Markup>,
    pub(crate) spans: Vec<Span>,
    pub(crate) marks: Vec<Mark>,
    pub(crate) summary: String,
}

/// The lanes one below the other, over the same time. `legend` says what the signs mean.
pub(crate) fn show(lanes: &[Lane], legend: &[(char, &str)]) -> Markup {
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
                    title data-utc=(written(mark.at)) { (one_line(&mark.text)) ", " (clock_text(mark.at)) }
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

/// The time of day, to the second. The script shows it in the browser's time zone.
fn clock(ms: u64) -> Markup {
    html! { time datetime=(written(ms)) { (clock_text(ms)) } }
}

fn clock_text(ms: u64) -> String {
    format!("{} UTC", written(ms).get(11..19).unwrap_or_default())
}

fn written(ms: u64) -> String {
    rfc3339_ms(i64::try_from(ms).unwrap_or(i64::MAX))
}

#[derive(Debug, Default)]
struct Axis {
    /// The times at which something began, ended or happened, with their positions, in order.
    places: Vec<(u64, f64)>,
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

    /// In per cent of the width. Callers only ask for known times.
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
    use super::*;
    use crate::page::parts::text::tests::{HOSTILE, assert_harmless, assert_parts};

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
        assert_parts(
            &page,
            &[
                "role=\"img\" aria-label=\"1 command, applied\"",
                "class=\"lane-command\" x1=\"2.00%\" x2=\"74.00%\"",
                "<title>make (1.5 s)</title>",
                "<text class=\"lane-mark good\" x=\"98.00%\" y=\"20\" text-anchor=\"middle\">▲<title data-utc=\"1970-01-01T00:00:02.000Z\">applied, 00:00:02 UTC</title>",
                "<b>▲</b> applied",
                "00:00:02 UTC</time> (2.0 s)",
            ],
        );
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
