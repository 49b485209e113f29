//! The output of a job: its last lines as they were when the page was loaded. The script takes over and follows the
//! job.

use std::time::Duration;

use ::jobs::{FollowEnd, OutputItem, Piece};
use eventlog::Sequence;
use kernel::Deadline;
use maud::{Markup, html};
use protocol::{Job, JobChannel, JobId};

use crate::app::App;
use crate::http::log_problem::reason_text;
use crate::page::parts::ansi::Lines;
use crate::page::parts::assets;
use crate::page::parts::text::percent_encode;
use crate::page::parts::times::time;
use crate::times::rfc3339_ms;

/// How many lines are shown without the script.
const SHOWN_LINES: usize = 200;

/// How many lines are held while more are read. Beyond that, the output is trimmed to the lines that are shown.
const HELD_LINES: usize = 4 * SHOWN_LINES;

/// About how much is read for those lines. The size of the pieces is unknown, so their number is bounded too.
const READ: Window = Window {
    bytes: 64 * 1024,
    least: 16,
    most: 400,
};

/// What the script reads first. It shows 5,000 lines, and a piece is a line or more.
const FOLLOWED: Window = Window {
    bytes: 2 * 1024 * 1024,
    least: 64,
    most: 5000,
};

/// How long the page waits for output that exists already. It never waits for new output.
const PATIENCE: Duration = Duration::from_secs(2);

/// How much of the end of an output is read.
struct Window {
    bytes: u64,
    least: u64,
    most: u64,
}

impl Window {
    fn start(&self, job: &Job) -> u64 {
        let kept = job.output_bytes.saturating_sub(job.cut_bytes);
        let of_one = (kept / job.output_sequence.max(1)).max(1);
        let pieces = (self.bytes / of_one).clamp(self.least, self.most);
        job.output_sequence.saturating_sub(pieces)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Ending {
    lines: Vec<Line>,
    is_cut: bool,
    trouble: Option<String>,
    channels: [Writing; 3],
}

/// A channel. A line on it can be unfinished while other channels write theirs.
#[derive(Debug, Default)]
struct Writing {
    text: Lines,
    open: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    channel: JobChannel,
    at: String,
    text: String,
}

pub(crate) async fn read(app: &App, id: JobId, job: &Job) -> Ending {
    let start = READ.start(job);
    let mut ending = Ending {
        is_cut: start > 0,
        ..Ending::default()
    };
    let patience = Deadline::after(&app.clock, PATIENCE);
    let scope = app.life.scope();
    let mut tail = app.jobs.follow(id, Sequence::from_u64(start), &scope);
    let mut seen = start;
    while seen < job.output_sequence {
        let item = tokio::select! {
            biased;
            item = tail.next() => item,
            () = patience.clone().passed() => {
                ending.trouble = Some("reading it takes too long".to_owned());
                break;
            }
        };
        seen = match item {
            Ok(OutputItem::Piece(piece)) => ending.take(&piece),
            Ok(OutputItem::Progress { sequence, .. }) => sequence.get(),
            Ok(OutputItem::Resync { after }) => {
                ending.is_cut = true;
                after.get()
            }
            Ok(OutputItem::End(..)) | Err(FollowEnd::NotFound | FollowEnd::Cancelled(_)) => break,
            Err(FollowEnd::Log(error)) => {
                ending.trouble = Some(reason_text(&error));
                break;
            }
        };
    }
    ending.trim(SHOWN_LINES);
    ending
}

impl Ending {
    fn take(&mut self, piece: &Piece) -> u64 {
        let channel = piece.channel;
        let position = match channel {
            JobChannel::Stdout => 0,
            JobChannel::Stderr => 1,
            JobChannel::Note => 2,
        };
        let at = rfc3339_ms(piece.at_ms);
        let mut text = String::from_utf8_lossy(&piece.bytes).into_owned();
        // A remark is a line of its own.
        if channel == JobChannel::Note && !text.ends_with('\n') {
            text.push('\n');
        }
        let writing = &mut self.channels[position];
        let ended = writing
            .text
            .feed(&text)
            .into_iter()
            .map(|text| (text, IsOpen::No));
        let rest = writing.text.open().map(|text| (text, IsOpen::Yes));
        for (text, is_open) in ended.chain(rest) {
            let place = match writing.open.take() {
                Some(place) => {
                    self.lines[place].text = text;
                    place
                }
                None => {
                    let at = at.clone();
                    self.lines.push(Line { channel, at, text });
                    self.lines.len() - 1
                }
            };
            writing.open = (is_open == IsOpen::Yes).then_some(place);
        }
        if self.lines.len() > HELD_LINES {
            self.trim(SHOWN_LINES);
        }
        piece.sequence.get()
    }

    /// Keeps the last lines. If an unfinished line is dropped, the next piece starts it again.
    fn trim(&mut self, most: usize) {
        let surplus = self.lines.len().saturating_sub(most);
        if surplus == 0 {
            return;
        }
        self.is_cut = true;
        self.lines.drain(..surplus);
        for writing in &mut self.channels {
            writing.open = writing.open.and_then(|place| place.checked_sub(surplus));
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IsOpen {
    Yes,
    No,
}

pub(crate) fn section(job: &Job, ending: &Ending) -> Markup {
    let address = format!("/v1/jobs/{}", percent_encode(&job.id));
    let raw = format!("{address}/output");
    let after = FOLLOWED.start(job);
    html! {
        section class="card" id="job-output" aria-labelledby="output" data-output={ (address) "/logs?follow=true" }
            data-after=(after) {
            div class="card-heading" {
                h2 id="output" { "Output" }
                a id="raw-output" href=(raw) { "Raw output" }
            }
            (tools())
            p class="more" id="output-older" hidden[!ending.is_cut] { "Older lines are not shown here." }
            @if let Some(trouble) = &ending.trouble { p class="error" { "Some output is missing: " (trouble) "." } }
            p id="output-none" hidden[!ending.lines.is_empty()] { "No output." }
            div class="log output" id="output-lines" tabindex="0" role="region" aria-label="Output lines"
                hidden[ending.lines.is_empty()] {
                @for line in &ending.lines { (shown(line)) }
            }
            p class="more" id="output-state" role="status" {}
            noscript { p class="more" { "Showing the last " (SHOWN_LINES) " lines, without colors." } }
        }
        script src=(assets::ANSI_SCRIPT.url()) defer {}
        script src=(assets::OUTPUT_SCRIPT.url()) defer {}
    }
}

/// Controls that only work with the script, which reveals them.
fn tools() -> Markup {
    html! {
        div class="output-tools" id="output-tools" role="search" hidden {
            label class="skip" for="output-search" { "Search the output" }
            input type="search" id="output-search" placeholder="Search ( / )" autocomplete="off" spellcheck="false";
            button type="button" id="output-previous" title="Previous match (Shift+Enter)" { "Previous" }
            button type="button" id="output-next" title="Next match (Enter)" { "Next" }
            span id="output-hits" role="status" {}
            label { input type="checkbox" id="output-only"; "Only matching lines" }
            label { input type="checkbox" id="output-times"; "Times" }
            label { input type="checkbox" id="output-follow" checked; "Follow" }
        }
    }
}

fn shown(line: &Line) -> Markup {
    html! {
        div class={ "out-line " (line.channel.as_str()) } {
            (time(&line.at))
            span class="out-text" { (line.text) }
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::JobState;

    use super::*;
    use crate::page::jobs::state::tests::job;
    use crate::page::parts::text::tests::{HOSTILE, assert_harmless, assert_parts};

    fn piece(sequence: u64, channel: JobChannel, bytes: &[u8]) -> Piece {
        Piece {
            sequence: Sequence::from_u64(sequence),
            at_ms: sequence as i64,
            channel,
            bytes: bytes.into(),
        }
    }

    fn ending(pieces: &[(JobChannel, &str)]) -> Ending {
        let mut ending = Ending::default();
        for (sequence, (channel, text)) in (1..).zip(pieces) {
            ending.take(&piece(sequence, *channel, text.as_bytes()));
        }
        ending
    }

    fn texts(ending: &Ending) -> Vec<(JobChannel, &str, &str)> {
        let lines = ending.lines.iter();
        lines
            .map(|line| (line.channel, &line.at[20..23], line.text.as_str()))
            .collect()
    }

    #[test]
    fn channels_do_not_break_each_others_lines() {
        use JobChannel::{Note, Stderr, Stdout};
        let ending = ending(&[
            (Stdout, "Compi"),
            (Stderr, "warning: "),
            (Note, "attempt 2"),
            (Note, "attempt 3\n"),
            (Stdout, "ling\nnext\n"),
            (Stderr, "unused\n"),
        ]);
        assert_eq!(
            texts(&ending),
            [
                (JobChannel::Stdout, "001", "Compiling"),
                (JobChannel::Stderr, "002", "warning: unused"),
                (JobChannel::Note, "003", "attempt 2"),
                (JobChannel::Note, "004", "attempt 3"),
                (JobChannel::Stdout, "005", "next"),
            ]
        );
        assert!(!ending.is_cut);
    }

    #[test]
    fn the_last_lines_are_kept_and_a_line_under_way_stays_whole() {
        let mut ending = ending(&[(JobChannel::Stderr, "lost "), (JobChannel::Stdout, "kept?\n")]);
        let mut sequence = 3;
        for number in 0..HELD_LINES * 3 {
            ending.take(&piece(
                sequence,
                JobChannel::Stdout,
                format!("{number}\n").as_bytes(),
            ));
            assert!(ending.lines.len() <= HELD_LINES + 1);
            sequence += 1;
        }
        ending.take(&piece(sequence, JobChannel::Stdout, b"half"));
        ending.trim(SHOWN_LINES);
        ending.take(&piece(sequence + 1, JobChannel::Stdout, b" whole\n"));
        ending.take(&piece(sequence + 2, JobChannel::Stderr, b"and on\n"));
        ending.trim(2);
        let shown: Vec<&str> = ending.lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!((shown, ending.is_cut), (vec!["half whole", "lost and on"], true));
    }

    #[test]
    fn what_is_no_text_is_shown_as_far_as_it_is() {
        let mut ending = Ending::default();
        ending.take(&piece(1, JobChannel::Stdout, b"a\xff\x00b\n"));
        assert_eq!(ending.lines[0].text, "a\u{fffd}b");
    }

    #[test]
    fn output_is_shown_as_text_without_escapes() {
        let ending = ending(&[
            (JobChannel::Stdout, HOSTILE),
            (JobChannel::Stderr, "</div><img src=x onerror=alert(1)>\n"),
        ]);
        let page = section(&job(JobState::Running), &ending).into_string();
        assert_harmless(&page);
        assert_parts(
            &page,
            &[
                "<div class=\"out-line stdout\"><time datetime=\"1970-01-01T00:00:00.001Z\">",
                "<div class=\"out-line stderr\">",
                "&lt;/div&gt;&lt;img src=x onerror=alert(1)&gt;</span>",
                "<p class=\"more\" id=\"output-older\" hidden>",
                "<p id=\"output-none\" hidden>",
            ],
        );
        assert!(!page.contains("<img"), "{page}");
    }

    #[test]
    fn the_script_is_told_where_to_begin() {
        let running = section(
            &Job {
                output_bytes: 600_000,
                output_sequence: 6000,
                ..job(JobState::Running)
            },
            &Ending::default(),
        )
        .into_string();
        assert_parts(
            &running,
            &[
                "data-output=\"/v1/jobs/job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX/logs?follow=true\" data-after=\"1000\">",
                "href=\"/v1/jobs/job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX/output\"",
                "<p id=\"output-none\">No output.",
                "id=\"output-tools\" role=\"search\" hidden>",
            ],
        );
        let ended = section(&job(JobState::Failed), &Ending::default()).into_string();
        assert!(ended.contains("data-after=\"0\">"), "{ended}");
    }

    #[test]
    fn the_end_of_an_output_is_found_by_the_size_of_its_pieces() {
        for (output_bytes, cut_bytes, output_sequence, expected) in [
            // Nothing, and very little.
            (0, 0, 0, 0),
            (100, 0, 10, 0),
            // Lines of a hundred bytes: the maximum.
            (1_000_000, 0, 10_000, 9600),
            // Pieces of a kibibyte: 64 of them.
            (1_024_000, 0, 1000, 936),
            // Large pieces: the minimum.
            (65_536_000, 0, 1000, 984),
            // Output that wasn't kept doesn't count.
            (1_000_000_000, 999_000_000, 10_000, 9600),
            (5, 10, 1000, 600),
        ] {
            let job = Job {
                output_bytes,
                cut_bytes,
                output_sequence,
                ..job(JobState::Running)
            };
            assert_eq!(READ.start(&job), expected, "{output_bytes} in {output_sequence}");
        }
    }
}
