//! Shows a turn as it runs: a readable view for people, every event unchanged for programs.

use std::io::{self, ErrorKind};

use protocol::{PermissionId, TurnEvent, TurnResync, Usage};
use serde_json::{Value, json};

use super::follow::{Listener, TurnMessage};
use super::page::{Layout, Page, Stream};
use super::typed::{Typed, choices};
use super::view::{Prompts, TurnView};
use crate::client::Client;
use crate::commands::plan::{columns, short};
use crate::output::{self, Format, Palette, Tone, json_line};
use crate::printable::printable;

#[derive(Debug)]
pub(super) struct TurnPrinter {
    format: Format,
    session: String,
    view: TurnView,
    typed: Option<Typed>,
    asking: Option<PermissionId>,
    /// For programs: events that have not been written yet.
    pending: String,
    beginning: Beginning,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Beginning {
    Start,
    Tail(u64),
}

impl TurnPrinter {
    pub(super) fn new(client: &Client, session: &str, prompts: Prompts, beginning: Beginning) -> TurnPrinter {
        let palette = Palette::for_stderr();
        let page = Page::new(Layout::here(), palette);
        let format = client.format();
        let typed = match format {
            Format::Human => Typed::here(&client.context, session),
            Format::Json => None,
        };
        TurnPrinter {
            format,
            session: session.to_owned(),
            view: TurnView::new(page, palette, columns(), prompts),
            typed,
            asking: None,
            pending: String::new(),
            beginning,
        }
    }

    pub(super) fn usage(&self) -> Usage {
        self.view.usage
    }

    pub(super) fn close(mut self) {
        self.view.page.fresh(Stream::Out);
        self.view.page.fresh(Stream::Err);
        drop(self.flush());
    }
}

impl Listener for TurnPrinter {
    /// The message is shown by [`TurnPrinter::flush`] at the latest.
    fn hear(&mut self, said: &TurnMessage) -> io::Result<()> {
        if self.format == Format::Json {
            let line = match said {
                TurnMessage::Event(event) => json_line(&json!({ "event": event })),
                TurnMessage::Resync(resync) => json_line(&json!({ "resync": resync })),
                TurnMessage::End(end) => json_line(&json!({ "end": end })),
            };
            self.pending.push_str(&line);
            return Ok(());
        }
        match said {
            TurnMessage::Event(event) => {
                let event: TurnEvent = understood(event)?;
                self.view.event(&event);
            }
            TurnMessage::Resync(resync) => {
                let resync: TurnResync = understood(resync)?;
                if let Beginning::Tail(_) = self.beginning {
                    // What was shown is somewhere in the middle of the whole, at an unknown position.
                    self.note("the turn was compacted; showing all of it");
                    let palette = Palette::for_stderr();
                    let page = Page::new(Layout::here(), palette);
                    self.view.page.flush()?;
                    self.view = TurnView::new(page, palette, columns(), Prompts::Known);
                    self.beginning = Beginning::Start;
                }
                self.view.catch_up(&resync.snapshot);
            }
            TurnMessage::End(_) => {}
        }
        Ok(())
    }

    /// Shows everything received so far, and asks the open question.
    fn flush(&mut self) -> io::Result<()> {
        if self.format == Format::Json {
            let pending = std::mem::take(&mut self.pending);
            return output::write(io::stdout(), &pending);
        }
        let open = self.view.open_questions().next().cloned();
        let asked = open.as_ref().map(|question| question.permission);
        if asked != self.asking {
            self.asking = asked;
            match (&mut self.typed, &open) {
                (Some(typed), open) => {
                    if let Some(question) = open {
                        self.view.page.fresh(Stream::Err);
                        self.view.page.put(Stream::Err, &choices(question), Tone::Plain);
                    }
                    typed.ask(open.clone());
                }
                (None, Some(_)) => {
                    let text = format!(
                        "  answer with `tidelock session answer {} allow|always|deny`",
                        short(&self.session)
                    );
                    self.view.page.line(Stream::Err, &text, Tone::Plain);
                }
                (None, None) => {}
            }
        }
        self.view.page.flush()
    }

    fn note(&mut self, text: &str) {
        if self.format == Format::Human {
            self.view
                .page
                .line(Stream::Err, &format!("note: {text}"), Tone::Plain);
            // If the reader of the agent's text is gone, the next piece of text will show that.
            drop(self.view.page.flush());
        }
    }
}

fn understood<T: serde::de::DeserializeOwned>(value: &Value) -> io::Result<T> {
    printable(value).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}
