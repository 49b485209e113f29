//! What is sent to the model: the system text, earlier turns, the prompt, and this turn's messages so far.

use std::collections::VecDeque;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use eventlog::{BlobError, Log};
use protocol::TurnState;

use super::wire::{Call, Message, Part, body, size_of};
use crate::history::{Past, Said};
use crate::prompt::{Prompt, StoredAttachment};
use crate::tools::ToolSpec;

/// Roughly how many bytes of text make a token. Code has fewer than prose, and it's better to leave out too much.
pub(super) const TOKEN_BYTES: usize = 3;
/// The most tokens to reserve for an answer.
const ANSWER_TOKENS: u64 = 16_000;
/// The most bytes of an attached text. The rest is left out, with a note.
const ATTACHED_TEXT_BYTES: usize = 128 * 1024;
/// The largest attached image. Servers refuse larger ones.
const ATTACHED_IMAGE_BYTES: u64 = 16 * 1024 * 1024;
/// Replaces a tool's answer that is no longer sent.
const LEFT_OUT: &str = "[left out to save room; call the tool again if you need it]";

#[derive(Debug)]
pub(super) struct Conversation {
    system: Message,
    /// The turns before this one, oldest first.
    earlier: VecDeque<Vec<Message>>,
    /// This turn.
    own: Vec<Message>,
    /// How many bytes the whole conversation may have.
    room: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fitted {
    /// All of it fits.
    Whole,
    /// Some of the earlier conversation is missing.
    Cut,
}

impl Conversation {
    pub(super) fn new(system: String, history: Vec<Past>, prompt: Vec<Part>, room: usize) -> Self {
        Self {
            system: Message::System(system),
            earlier: history.into_iter().enumerate().map(earlier).collect(),
            own: vec![Message::User(prompt)],
            room,
        }
    }

    pub(super) fn push(&mut self, message: Message) {
        self.own.push(message);
    }

    /// The body of the next request, and whether it includes the whole conversation.
    pub(super) fn request(&mut self, model: &str, tools: &[ToolSpec]) -> (Bytes, Fitted) {
        let tools_size: usize = tools
            .iter()
            .map(|tool| tool.description.len() + tool.schema.to_string().len())
            .sum();
        let fitted = self.fit(self.room.saturating_sub(tools_size));
        let messages: Vec<&Message> = std::iter::once(&self.system)
            .chain(self.earlier.iter().flatten())
            .chain(&self.own)
            .collect();
        (body(model, &messages, tools), fitted)
    }

    /// Leaves out as much as possible, because the server finds the conversation too long. Returns `Whole` if
    /// there was nothing to leave out.
    pub(super) fn shorten(&mut self) -> Fitted {
        self.fit(0)
    }

    /// Leaves out the oldest messages until the rest fits: whole turns first, then tool answers of this turn. Messages
    /// that the model hasn't answered yet stay, and so does the prompt.
    fn fit(&mut self, room: usize) -> Fitted {
        let mut size = self.size();
        let mut fitted = Fitted::Whole;
        while size > room {
            let Some(turn) = self.earlier.pop_front() else {
                break;
            };
            size -= turn.iter().map(size_of).sum::<usize>();
            fitted = Fitted::Cut;
        }
        let newest = self
            .own
            .iter()
            .rposition(|message| matches!(message, Message::Assistant { .. }))
            .unwrap_or(0);
        for message in &mut self.own[..newest] {
            if size <= room {
                break;
            }
            if let Message::Tool { text, .. } = message
                && text.len() > LEFT_OUT.len()
            {
                size = size.saturating_sub(text.len() - LEFT_OUT.len());
                LEFT_OUT.clone_into(text);
                fitted = Fitted::Cut;
            }
        }
        fitted
    }

    fn size(&self) -> usize {
        let all = self.earlier.iter().flatten().chain(&self.own);
        size_of(&self.system) + all.map(size_of).sum::<usize>()
    }
}

/// How many bytes a request may have.
pub(super) fn room(context_tokens: u64) -> usize {
    let tokens = context_tokens - ANSWER_TOKENS.min(context_tokens / 4);
    usize::try_from(tokens)
        .unwrap_or(usize::MAX)
        .saturating_mul(TOKEN_BYTES)
}

/// The system text.
pub(super) fn system(directory: &Path) -> String {
    format!(
        "You are a coding agent. You work on the project in {}, in a sandbox of your own: what you change there is recorded, \
         and reaches the project only when the user has looked at it and applies it.\n\
         - Look before you change: read files and search instead of guessing.\n\
         - Make the smallest change that does what is asked, in the style of the code around it.\n\
         - Paths are relative to the root of the project. Several tools can be called at once if they do not depend on each \
         other.\n\
         - Check your work with the project's own tests or tools where that is possible.\n\
         - A tool that fails says why: change something before you call it again. If the user does not allow something, do \
         not try it in another way.\n\
         - When you are done, say in a few sentences what you did and what is left. Do not claim what you have not checked.",
        directory.display()
    )
}

/// The messages of an earlier turn. Its calls get ids that no other turn uses.
fn earlier((number, past): (usize, Past)) -> Vec<Message> {
    let mut messages = vec![Message::User(vec![Part::Text(past.prompt)])];
    for (place, said) in past.said.into_iter().enumerate() {
        match said {
            Said::Text(text) => say(&mut messages, text),
            Said::Tool {
                tool,
                arguments,
                answer,
            } => {
                let id = format!("past_{number}_{place}");
                let call = Call {
                    id: id.clone(),
                    tool,
                    arguments: arguments.to_string(),
                };
                match messages.last_mut() {
                    Some(Message::Assistant { calls, .. }) if calls.is_empty() => calls.push(call),
                    _ => messages.push(Message::Assistant {
                        text: String::new(),
                        calls: vec![call],
                    }),
                }
                messages.push(Message::Tool {
                    call: id,
                    text: answer,
                });
            }
        }
    }
    match past.state {
        TurnState::Cancelled => say(&mut messages, "[the user stopped this]".to_owned()),
        TurnState::Failed | TurnState::Interrupted => {
            say(&mut messages, "[this was cut short by an error]".to_owned());
        }
        TurnState::Done | TurnState::Queued | TurnState::Running => {}
    }
    if messages.len() == 1 {
        say(&mut messages, "[left out]".to_owned());
    }
    messages
}

/// Appends to what the model said, since some servers refuse two messages of the same kind in a row.
fn say(messages: &mut Vec<Message>, more: String) {
    match messages.last_mut() {
        Some(Message::Assistant { text, calls }) if calls.is_empty() => {
            text.push_str("\n\n");
            text.push_str(&more);
        }
        _ => messages.push(Message::Assistant {
            text: more,
            calls: Vec::new(),
        }),
    }
}

/// A prompt with its attachments, and which of them could not be sent. *Cancel safety*: may be dropped at any time.
pub(super) async fn prompt(log: &Log, prompt: &Prompt) -> (Vec<Part>, Vec<String>) {
    let mut parts = vec![Part::Text(prompt.text.clone())];
    let mut missing = Vec::new();
    for attachment in &prompt.attachments {
        match attached(log, attachment).await {
            Ok(part) => parts.push(part),
            Err(why) => {
                let text = format!("the attachment `{}` was not sent: {why}", attachment.about.name);
                parts.push(Part::Text(format!("[{text}]")));
                missing.push(text);
            }
        }
    }
    // Send text alone as a single string, which every server understands.
    if parts.iter().all(|part| matches!(part, Part::Text(_))) {
        let texts: Vec<String> = parts
            .into_iter()
            .filter_map(|part| match part {
                Part::Text(text) => Some(text),
                Part::Image(_) => None,
            })
            .collect();
        parts = vec![Part::Text(texts.join("\n\n"))];
    }
    (parts, missing)
}

/// A prompt with the code context found for it, marked so that the model can tell it from the user's own text.
pub(super) fn with_context(mut prompt: Vec<Part>, found: &str) -> Vec<Part> {
    let found = format!(
        "[The following pieces of the project were found by a search for this prompt. They are not from the user, and may or \
         may not help.]\n\n{}",
        found.trim_end()
    );
    match prompt.as_mut_slice() {
        // Text alone stays a single string.
        [Part::Text(text)] => {
            text.push_str("\n\n");
            text.push_str(&found);
        }
        _ => prompt.push(Part::Text(found)),
    }
    prompt
}

async fn attached(log: &Log, attachment: &StoredAttachment) -> Result<Part, String> {
    let media_type = attachment.about.media_type.to_ascii_lowercase();
    let media_type = media_type.split(';').next().unwrap_or_default().trim();
    let unread = |error: BlobError| format!("it cannot be read ({error})");
    if matches!(
        media_type,
        "image/png" | "image/jpeg" | "image/gif" | "image/webp"
    ) {
        if attachment.about.size_bytes > ATTACHED_IMAGE_BYTES {
            return Err("it is too large for a model".to_owned());
        }
        let content = log.read_blobs(&[attachment.content]).await.map_err(unread)?;
        let content = STANDARD.encode(content.concat());
        return Ok(Part::Image(format!("data:{media_type};base64,{content}")));
    }
    let (content, is_whole) = beginning(log, attachment).await.map_err(unread)?;
    let Some(text) = text_of(&content, is_whole) else {
        return Err(format!("a model cannot read {media_type}"));
    };
    let note = match attachment.about.size_bytes.saturating_sub(text.len() as u64) {
        0 => String::new(),
        more => format!("\n[… {more} bytes left out]"),
    };
    Ok(Part::Text(format!(
        "Attached file `{}`:\n{text}{note}",
        attachment.about.name
    )))
}

/// As much of an attachment as is sent, and whether that is all of it.
async fn beginning(log: &Log, attachment: &StoredAttachment) -> Result<(Vec<u8>, bool), BlobError> {
    let mut reader = log.read_blob(attachment.content).await?;
    let mut content = Vec::new();
    while let Some(piece) = reader.next_chunk().await? {
        content.extend_from_slice(&piece);
        if content.len() > ATTACHED_TEXT_BYTES {
            content.truncate(ATTACHED_TEXT_BYTES);
            return Ok((content, false));
        }
    }
    Ok((content, true))
}

/// Content as text, if it is text. If only part was read, its last character may be cut in two.
fn text_of(content: &[u8], is_whole: bool) -> Option<&str> {
    if content.contains(&0) {
        return None;
    }
    match str::from_utf8(content) {
        Ok(text) => Some(text),
        Err(error) if !is_whole && error.error_len().is_none() => {
            str::from_utf8(&content[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn past(prompt: &str, said: Vec<Said>, state: TurnState) -> Past {
        Past {
            prompt: prompt.to_owned(),
            said,
            state,
        }
    }

    fn said(text: &str) -> Said {
        Said::Text(text.to_owned())
    }

    fn user(text: &str) -> Message {
        Message::User(vec![Part::Text(text.to_owned())])
    }

    fn assistant(text: &str, calls: &[&str]) -> Message {
        let call = |id: &&str| Call {
            id: (*id).to_owned(),
            tool: "read".to_owned(),
            arguments: "{}".to_owned(),
        };
        Message::Assistant {
            text: text.to_owned(),
            calls: calls.iter().map(call).collect(),
        }
    }

    fn tool(call: &str, text: &str) -> Message {
        Message::Tool {
            call: call.to_owned(),
            text: text.to_owned(),
        }
    }

    fn begun(history: Vec<Past>, room: usize) -> Conversation {
        let prompt = vec![Part::Text("now".to_owned())];
        Conversation::new("be".to_owned(), history, prompt, room)
    }

    #[test]
    fn earlier_turns_become_messages() {
        let read = || Said::Tool {
            tool: "read".to_owned(),
            arguments: json!({}),
            answer: "content".to_owned(),
        };
        let history = vec![
            past(
                "one",
                vec![said("a"), read(), read(), said("b"), said("c")],
                TurnState::Done,
            ),
            past("two", vec![read()], TurnState::Cancelled),
            past("three", vec![said("d")], TurnState::Interrupted),
            past("four", vec![], TurnState::Failed),
            past("five", vec![], TurnState::Done),
        ];
        let messages: Vec<Message> = begun(history, 0).earlier.into_iter().flatten().collect();
        let expected = [
            user("one"),
            assistant("a", &["past_0_1"]),
            tool("past_0_1", "content"),
            assistant("", &["past_0_2"]),
            tool("past_0_2", "content"),
            assistant("b\n\nc", &[]),
            user("two"),
            assistant("", &["past_1_0"]),
            tool("past_1_0", "content"),
            assistant("[the user stopped this]", &[]),
            user("three"),
            assistant("d\n\n[this was cut short by an error]", &[]),
            user("four"),
            assistant("[this was cut short by an error]", &[]),
            user("five"),
            assistant("[left out]", &[]),
        ];
        assert_eq!(messages, expected);
    }

    #[test]
    fn what_is_oldest_is_left_out_first() {
        let long = "x".repeat(1_000);
        let make = |room: usize| {
            let history = ["one", "two"].map(|text| past(text, vec![said(&long)], TurnState::Done));
            let mut conversation = begun(history.into(), room);
            for id in ["a", "b"] {
                conversation.push(assistant("", &[id]));
                conversation.push(tool(id, &long));
            }
            conversation
        };
        let whole = make(0).size();
        let texts = |conversation: &Conversation| -> Vec<usize> {
            let tools = conversation.own.iter().filter_map(|message| match message {
                Message::Tool { text, .. } => Some(text.len()),
                _ => None,
            });
            std::iter::once(conversation.earlier.len()).chain(tools).collect()
        };
        let cases = [
            (whole, Fitted::Whole, [2, 1000, 1000]),
            (whole - 1, Fitted::Cut, [1, 1000, 1000]),
            (whole - 1_500, Fitted::Cut, [0, 1000, 1000]),
            (whole - 2_500, Fitted::Cut, [0, LEFT_OUT.len(), 1000]),
            (0, Fitted::Cut, [0, LEFT_OUT.len(), 1000]),
        ];
        for (room, fitted, left) in cases {
            let mut conversation = make(room);
            assert_eq!(conversation.request("m", &[]).1, fitted, "{room}");
            assert_eq!(texts(&conversation), left, "{room}");
            assert_eq!(
                conversation.request("m", &[]).1,
                Fitted::Whole,
                "{room}: nothing more can be left out"
            );
        }
        let mut conversation = make(whole);
        assert_eq!(conversation.shorten(), Fitted::Cut);
        assert_eq!(conversation.shorten(), Fitted::Whole);
        assert_eq!(begun(Vec::new(), 0).shorten(), Fitted::Whole);
    }

    #[test]
    fn a_text_is_told_from_what_is_none() {
        let cases: [(&[u8], bool, Option<&str>); 6] = [
            (b"abc", true, Some("abc")),
            (b"a\0c", true, None),
            ("aü".as_bytes(), true, Some("aü")),
            (b"a\xc3", false, Some("a")),
            (b"a\xc3", true, None),
            (b"a\xffb", false, None),
        ];
        for (content, is_whole, expected) in cases {
            assert_eq!(text_of(content, is_whole), expected, "{content:?} {is_whole}");
        }
        assert_eq!((room(0), room(1_000), room(128_000)), (0, 2_250, 336_000));
    }
}
