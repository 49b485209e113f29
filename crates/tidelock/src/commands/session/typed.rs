//! Answers from the keyboard, while the stream of a turn continues.
//!
//! A separate thread reads lines, because only a thread can block on a keyboard and be abandoned at any time. It ends
//! with the process. Its answers come back through the stream, like anyone else's.

use std::io::{self, BufRead, IsTerminal};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use protocol::{AnswerPermission, PermissionAnswer};
use serde_json::Value;

use super::answer::permission_path;
use super::view::Question;
use crate::client::Client;
use crate::context::Context;
use crate::error::chain;
use crate::output;

#[derive(Debug)]
pub(super) struct Typed {
    /// The question that the next line answers. Locked only to read or replace it, never during a wait.
    question: Arc<Mutex<Option<Question>>>,
    /// What the thread needs, until it is started.
    ready: Option<(Client, String)>,
}

impl Typed {
    /// Returns `None` unless there is a keyboard and a user who sees the questions.
    pub(super) fn here(context: &Context, session: &str) -> Option<Typed> {
        let has_both = io::stdin().is_terminal() && io::stderr().is_terminal();
        let client = Client::new(context).ok().filter(|_| has_both)?;
        Some(Typed {
            question: Arc::default(),
            ready: Some((client, session.to_owned())),
        })
    }

    /// From now on a line answers this question, or none.
    pub(super) fn ask(&mut self, question: Option<Question>) {
        let asks = question.is_some();
        *self.question.lock().unwrap_or_else(PoisonError::into_inner) = question;
        // Don't read the keyboard before there is a question.
        if asks
            && is_in_front()
            && let Some((client, session)) = self.ready.take()
        {
            let question = Arc::clone(&self.question);
            let reading = thread::Builder::new().name("answers".to_owned());
            // Without the thread, the question can be answered from another terminal.
            drop(reading.spawn(move || read(&client, &session, &question)));
        }
    }
}

/// Whether this process receives keyboard input. A background process would be stopped if it read.
fn is_in_front() -> bool {
    rustix::termios::tcgetpgrp(io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}

// The lock guards the question that a line would answer.
fn read(client: &Client, session: &str, question: &Mutex<Option<Question>>) {
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        let asked = question
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .map(|question| (question.permission, choices(question)));
        // Ignore a line that answers no question.
        let Some((permission, choices)) = asked else {
            continue;
        };
        let Some(answer) = understand(&line) else {
            drop(output::write(io::stderr(), &choices));
            continue;
        };
        let request = AnswerPermission { answer };
        let path = permission_path(session, &permission.to_string());
        if let Err(error) = client.post::<Value>(&path, Some(&request)) {
            let text = format!("note: couldn't send the answer: {}\n{choices}", chain(&error));
            drop(output::write(io::stderr(), &text));
        }
    }
}

pub(super) fn choices(question: &Question) -> String {
    let has_always = question
        .options
        .iter()
        .any(|option| option.answer == PermissionAnswer::AllowAlways);
    let always = if has_always || question.options.is_empty() {
        "[a]lways in this session, "
    } else {
        ""
    };
    format!("  [y]es, {always}[n]o: ")
}

fn understand(line: &str) -> Option<PermissionAnswer> {
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" | "allow" => Some(PermissionAnswer::Allow),
        "a" | "always" => Some(PermissionAnswer::AllowAlways),
        "n" | "no" | "deny" => Some(PermissionAnswer::Deny),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_words_or_their_first_letters() {
        for (line, expected) in [
            ("y\n", Some(PermissionAnswer::Allow)),
            (" YES ", Some(PermissionAnswer::Allow)),
            ("a", Some(PermissionAnswer::AllowAlways)),
            ("deny", Some(PermissionAnswer::Deny)),
            ("n", Some(PermissionAnswer::Deny)),
            ("", None),
            ("maybe", None),
        ] {
            assert_eq!(understand(line), expected, "{line:?}");
        }
    }
}
