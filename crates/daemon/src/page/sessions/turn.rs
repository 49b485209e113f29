//! One turn: the prompt, what the agent said and did, and how it ended.
//!
//! Each turn names the last event in it; `web/session.js` continues from there. Items carry their number, so that later events
//! find the item they belong to.

use maud::{Markup, html};
use protocol::{
    FinishOutcome, PermissionAnswer, PlanFinish, ToolState, Turn, TurnItem, TurnState, TurnTranscript,
};

use super::state::turn_badge;
use crate::page::parts::ansi::one_line;
use crate::page::parts::text::counted;
use crate::page::plans::state as plan_state;

/// How much of one text is shown. The export has all of it.
const TEXT_CHARACTERS: usize = 200_000;

pub(crate) struct ShownTurn {
    pub(crate) turn: Turn,
    pub(crate) sequence: u64,
    pub(crate) transcript: TurnTranscript,
}

impl ShownTurn {
    /// The state in the transcript, which was read at the same moment as the rest.
    pub(crate) fn state(&self) -> TurnState {
        self.transcript.state.unwrap_or(self.turn.state)
    }
}

pub(crate) fn article(shown: &ShownTurn) -> Markup {
    let (turn, transcript) = (&shown.turn, &shown.transcript);
    let state = shown.state();
    let is_over = state.is_terminal();
    html! {
        article class="turn" data-turn=(turn.id) data-sequence=(shown.sequence) data-over[is_over] {
            div class="turn-prompt" {
                p class="turn-who" { strong { (one_line(&turn.by)) } " asked " (one_line(&turn.agent.name)) }
                p class="turn-text" { (visible(&turn.prompt)) }
                @for attachment in &turn.attachments { small { "with " (one_line(&attachment.name)) } }
            }
            div class="turn-items" data-items {
                @for (item, number) in transcript.items.iter().zip(&transcript.numbers) { (show(item, *number)) }
            }
            p class="turn-end" data-end {
                (turn_badge(state))
                @if let Some(error) = &transcript.error {
                    " " code { (one_line(&error.code)) } " " (one_line(&error.text))
                }
                @if transcript.usage.requests > 0 {
                    small {
                        (counted(transcript.usage.input_tokens, "token", "tokens")) " read, "
                        (counted(transcript.usage.output_tokens, "token", "tokens")) " written"
                    }
                }
                @if let Some(finished) = &turn.finished { small { (finish_text(finished)) } }
            }
        }
    }
}

/// What happened to the plan that the prompt asked to finish.
fn finish_text(finished: &PlanFinish) -> String {
    let why = finished.text.as_deref().map(one_line);
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    match finished.outcome {
        FinishOutcome::Unchanged => "Nothing to apply".to_owned(),
        FinishOutcome::Open => format!("The plan is still open{why}"),
        FinishOutcome::Sealed => "Ready for review".to_owned(),
        FinishOutcome::Done => format!(
            "Applied {}",
            counted(finished.files.unwrap_or_default(), "file", "files")
        ),
        FinishOutcome::Conflicted => "Not applied: there are conflicts".to_owned(),
        FinishOutcome::NotApplied if finished.why.as_deref() == Some("checks") => {
            "Not applied: not all checks passed".to_owned()
        }
        FinishOutcome::NotApplied => format!("Not applied{why}"),
        FinishOutcome::Over => "Someone else finished the plan first".to_owned(),
    }
}

fn show(item: &TurnItem, number: Option<u64>) -> Markup {
    match item {
        TurnItem::Text { text } => {
            html! { div class="item item-text" data-item=[number] { (visible(text)) } }
        }
        TurnItem::Reasoning { text } => html! {
            details class="item item-reasoning" data-item=[number] {
                summary { "Thinking" }
                div class="item-body" { (visible(text)) }
            }
        },
        TurnItem::Tool {
            tool,
            title,
            arguments,
            output,
            state,
            answer,
            ..
        } => {
            let state = match state {
                None => "running",
                Some(ToolState::Cancelled) => "stopped",
                Some(state) => state.name(),
            };
            let arguments = match arguments {
                serde_json::Value::String(text) => text.clone(),
                serde_json::Value::Null => String::new(),
                arguments => serde_json::to_string_pretty(arguments).unwrap_or_default(),
            };
            let answer = answer.as_deref().unwrap_or_default();
            // Most tools repeat their output in their answer.
            let output = match answer.starts_with(output) {
                true => "",
                false => output.as_str(),
            };
            html! {
                details class={ "item item-tool " (state) } data-item=[number] {
                    summary {
                        strong { (one_line(tool)) } " "
                        span data-title { (besides(title, tool)) } " "
                        span class="tool-state" data-tool-state { (state) }
                    }
                    pre class="tool-arguments" data-arguments { (visible(&arguments)) }
                    pre class="tool-output" data-output-text { (visible(output)) }
                    pre class="tool-answer" data-answer { (visible(answer)) }
                }
            }
        }
        TurnItem::Permission {
            permission,
            tool,
            subject,
            answer,
            by,
            ..
        } => html! {
            p class="item item-note" {
                "Asked you: " (one_line(tool)) " " code { (one_line(subject)) } " – "
                @match answer {
                    None => a href="#asking" data-answer-of=(permission) { "waiting for your answer" },
                    Some(PermissionAnswer::Deny) if by.as_deref().unwrap_or_default().is_empty() => "timed out without an answer",
                    Some(PermissionAnswer::Deny) => "denied",
                    Some(PermissionAnswer::Allow) => "allowed",
                    Some(PermissionAnswer::AllowAlways) => "always allowed",
                }
            }
        },
        TurnItem::Plan {
            plan, files, paths, ..
        } => html! {
            p class="item item-note" {
                a href=(plan_state::path(&plan.to_string())) { "Plan" } ": " (counted(*files, "file", "files")) " changed"
                @if let Some(first) = paths.first() {
                    " (" code { (one_line(first)) } @if paths.len() > 1 { ", …" } ")"
                }
            }
        },
        TurnItem::Trouble { code, text } => html! {
            p class="item item-note item-trouble" { code { (one_line(code)) } " " (one_line(text)) }
        },
    }
}

/// The title of a call without the name of its tool, which is shown before it. The script does the same.
fn besides(title: &str, tool: &str) -> String {
    let title = one_line(title);
    let rest = title.strip_prefix(tool).and_then(|rest| rest.strip_prefix(' '));
    rest.map_or_else(|| title.clone(), str::to_owned)
}

/// A text without the characters that hide the text around them or change its direction. The script does the same.
pub(crate) fn visible(text: &str) -> String {
    let is_hidden = |character: char| {
        let is_control = character.is_control() && !matches!(character, '\n' | '\t');
        is_control
            || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let shown = text.chars().take(TEXT_CHARACTERS);
    let mut shown: String = shown
        .map(|character| {
            if is_hidden(character) {
                '\u{fffd}'
            } else {
                character
            }
        })
        .collect();
    if text.chars().nth(TEXT_CHARACTERS).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use protocol::{AgentChoice, PermissionId, PlanId, Usage};

    use super::*;
    use crate::page::parts::text::tests::{HOSTILE, assert_parts};

    fn turn(state: TurnState, items: Vec<TurnItem>) -> ShownTurn {
        let numbers = (0..items.len() as u64).map(Some).collect();
        ShownTurn {
            turn: Turn {
                id: "turn_01JCZ8T6V8Y3N5K2M4Q7R9S1TX".to_owned(),
                state: TurnState::Running,
                session: "session_01JCZ8T6V8Y3N5K2M4Q7R9S1TX".to_owned(),
                number: 1,
                prompt: HOSTILE.to_owned(),
                attachments: Vec::new(),
                agent: AgentChoice::default(),
                by: HOSTILE.to_owned(),
                accepted_at: "2026-01-31T09:30:00.000Z".to_owned(),
                started_at: None,
                ended_at: None,
                plan: None,
                usage: Usage::default(),
                error: None,
                finish: None,
                finish_job: None,
                finished: None,
                last_sequence: 9,
            },
            sequence: 9,
            transcript: TurnTranscript {
                items,
                numbers,
                state: Some(state),
                ..TurnTranscript::default()
            },
        }
    }

    fn tool(title: &str, output: &str, answer: Option<&str>) -> TurnItem {
        TurnItem::Tool {
            call: String::new(),
            tool: "read".to_owned(),
            title: title.to_owned(),
            arguments: serde_json::json!({ "path": HOSTILE }),
            output: output.to_owned(),
            state: answer.map(|_| ToolState::Done),
            answer: answer.map(str::to_owned),
            full: None,
        }
    }

    #[test]
    fn whatever_an_agent_says_becomes_text() {
        let hostile = || HOSTILE.to_owned();
        let items = vec![
            TurnItem::Text { text: hostile() },
            TurnItem::Reasoning { text: hostile() },
            tool(HOSTILE, HOSTILE, Some("another answer")),
            tool(HOSTILE, "", Some(HOSTILE)),
            TurnItem::Permission {
                permission: PermissionId::generate(),
                tool: hostile(),
                subject: hostile(),
                options: Vec::new(),
                answer: None,
                by: None,
            },
            TurnItem::Plan {
                plan: PlanId::generate(),
                fingerprint: hostile(),
                files: 1,
                paths: vec![hostile()],
            },
            TurnItem::Trouble {
                code: hostile(),
                text: hostile(),
            },
        ];
        let page = article(&turn(TurnState::Running, items)).into_string();
        for trace in ["<script>", "\u{1b}", "\u{7}", "\u{202e}"] {
            assert!(!page.contains(trace), "{trace:?}: {page}");
        }
        // The prompt and who asked, and each of the items above.
        assert!(page.matches("&lt;script&gt;").count() >= 13, "{page}");
    }

    #[test]
    fn a_turn_says_how_far_it_goes_and_whether_it_is_over() {
        let open = article(&turn(TurnState::Running, Vec::new())).into_string();
        assert!(open.contains("data-sequence=\"9\""), "{open}");
        assert!(!open.contains("data-over"), "{open}");
        let over = article(&turn(TurnState::Interrupted, Vec::new())).into_string();
        assert!(over.contains("data-over"), "{over}");
        assert!(over.contains(">Interrupted</span>"), "{over}");
    }

    #[test]
    fn nothing_of_a_tool_is_said_twice() {
        let shown = |item: &TurnItem| show(item, Some(4)).into_string();
        let done = shown(&tool("read a.txt", "one\n", Some("one\n[exit 0]")));
        assert_parts(
            &done,
            &[
                "data-item=\"4\"",
                "<strong>read</strong> <span data-title>a.txt</span>",
                "data-output-text></pre>",
                "data-answer>one\n[exit 0]</pre>",
            ],
        );
        let running = shown(&tool("ready", "one\n", None));
        assert!(running.contains("<span data-title>ready</span>"), "{running}");
        assert!(running.contains("data-output-text>one\n</pre>"), "{running}");
    }

    #[test]
    fn text_stays_as_it_is_but_for_what_hides_or_turns_it() {
        for (text, expected) in [
            ("  a\n\tb  ", "  a\n\tb  "),
            ("größe 語 🌊", "größe 語 🌊"),
            ("\u{1b}[31m\r\0", "\u{fffd}[31m\u{fffd}\u{fffd}"),
            ("a\u{202e}b\u{2066}c\u{200f}", "a\u{fffd}b\u{fffd}c\u{fffd}"),
        ] {
            assert_eq!(visible(text), expected);
        }
        let long = "x".repeat(TEXT_CHARACTERS + 1);
        assert_eq!(visible(&long).chars().count(), TEXT_CHARACTERS + 1);
        assert!(visible(&long).ends_with('…'));
    }
}
