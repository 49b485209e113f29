//! What a reader of a turn has, put together from what it was told: written down from the description of the events, and not
//! taken from the daemon, so that the two can be compared.

use protocol::{
    PermissionAnswer, PermissionId, TurnEvent, TurnEventBody, TurnItem, TurnResync, TurnState, TurnTranscript,
};
use serde_json::Value;

/// What a reader has of a turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Has {
    /// The last event that it has heard, or that was in a snapshot.
    pub(crate) place: u64,
    pub(crate) turn: TurnTranscript,
}

impl Has {
    /// One more event. It must be the next one: neither a gap nor a repetition is silently taken.
    #[track_caller]
    pub(crate) fn hear(&mut self, event: &TurnEvent) {
        assert_eq!(event.sequence, self.place + 1, "not the next one: {event:?}");
        self.place = event.sequence;
        self.apply(&event.data);
    }

    /// A snapshot in the place of everything before.
    pub(crate) fn resync(&mut self, resync: TurnResync) {
        (self.place, self.turn) = (resync.after, resync.snapshot);
    }

    /// All that the agent says.
    pub(crate) fn text(&self) -> String {
        let texts = self.turn.items.iter().map(|item| match item {
            TurnItem::Text { text } => text.as_str(),
            _ => "",
        });
        texts.collect()
    }

    /// The names of what went wrong without ending the turn.
    pub(crate) fn troubles(&self) -> Vec<&str> {
        let troubles = self.turn.items.iter().filter_map(|item| match item {
            TurnItem::Trouble { code, .. } => Some(code.as_str()),
            _ => None,
        });
        troubles.collect()
    }

    /// A question that is open.
    pub(crate) fn question(&self) -> Option<PermissionId> {
        self.turn.items.iter().find_map(|item| match item {
            TurnItem::Permission {
                permission,
                answer: None,
                ..
            } => Some(*permission),
            _ => None,
        })
    }

    fn apply(&mut self, event: &TurnEventBody) {
        match event {
            TurnEventBody::Accepted { .. } => self.turn.state = Some(TurnState::Queued),
            TurnEventBody::State { state, error } => {
                (self.turn.state, self.turn.error) = (Some(*state), error.clone());
            }
            TurnEventBody::Usage { total } => self.turn.usage = *total,
            TurnEventBody::Text { item, delta } => match self.numbered(*item) {
                Some(TurnItem::Text { text }) => text.push_str(delta),
                Some(other) => panic!("{delta:?} is said in {other:?}"),
                None => self.begin(Some(*item), TurnItem::Text { text: delta.clone() }),
            },
            TurnEventBody::Reasoning { item, delta } => match self.numbered(*item) {
                Some(TurnItem::Reasoning { text }) => text.push_str(delta),
                Some(other) => panic!("{delta:?} is thought in {other:?}"),
                None => self.begin(Some(*item), TurnItem::Reasoning { text: delta.clone() }),
            },
            TurnEventBody::PermissionAsked {
                permission,
                tool,
                subject,
                options,
                ..
            } => self.begin(
                None,
                TurnItem::Permission {
                    permission: *permission,
                    tool: tool.clone(),
                    subject: subject.clone(),
                    options: options.clone(),
                    answer: None,
                    by: None,
                },
            ),
            TurnEventBody::PermissionAnswered {
                permission,
                answer,
                by,
            } => self.answered(*permission, *answer, by),
            TurnEventBody::PlanChanged {
                plan,
                fingerprint,
                files,
                paths,
                ..
            } => self.begin(
                None,
                TurnItem::Plan {
                    plan: *plan,
                    fingerprint: fingerprint.clone(),
                    files: *files,
                    paths: paths.clone(),
                },
            ),
            TurnEventBody::ToolCall { item, call, tool } => self.begin(
                Some(*item),
                TurnItem::Tool {
                    call: call.clone(),
                    tool: tool.clone(),
                    title: String::new(),
                    arguments: Value::String(String::new()),
                    output: String::new(),
                    state: None,
                    answer: None,
                    full: None,
                },
            ),
            TurnEventBody::ToolArguments { item, .. }
            | TurnEventBody::ToolStarted { item, .. }
            | TurnEventBody::ToolOutput { item, .. }
            | TurnEventBody::ToolEnded { item, .. } => {
                let tool = self.numbered(*item).unwrap_or_else(|| panic!("{event:?}"));
                go_on(tool, event);
            }
            TurnEventBody::Trouble { code, text } => self.begin(
                None,
                TurnItem::Trouble {
                    code: code.clone(),
                    text: text.clone(),
                },
            ),
            TurnEventBody::Edited { .. } | TurnEventBody::Unknown => {
                panic!("nobody has caused this: {event:?}")
            }
        }
    }

    fn numbered(&mut self, number: u64) -> Option<&mut TurnItem> {
        let place = self
            .turn
            .numbers
            .iter()
            .position(|known| *known == Some(number))?;
        Some(&mut self.turn.items[place])
    }

    fn begin(&mut self, number: Option<u64>, item: TurnItem) {
        self.turn.items.push(item);
        self.turn.numbers.push(number);
    }

    fn answered(&mut self, asked: PermissionId, given: PermissionAnswer, whose: &str) {
        for item in &mut self.turn.items {
            if let TurnItem::Permission {
                permission,
                answer,
                by,
                ..
            } = item
                && *permission == asked
            {
                assert_eq!(*answer, None, "it is answered twice: {asked}");
                (*answer, *by) = (Some(given), Some(whose.to_owned()));
            }
        }
    }
}

/// What an event changes about a call of a tool.
fn go_on(item: &mut TurnItem, event: &TurnEventBody) {
    let TurnItem::Tool {
        title,
        arguments,
        output,
        state,
        answer,
        full,
        ..
    } = item
    else {
        panic!("{event:?} of {item:?}");
    };
    match event {
        TurnEventBody::ToolArguments { delta, .. } => {
            let so_far = arguments.as_str().unwrap_or_else(|| panic!("{event:?}"));
            *arguments = Value::String(format!("{so_far}{delta}"));
        }
        TurnEventBody::ToolStarted {
            title: given,
            arguments: whole,
            ..
        } => (*title, *arguments) = (given.clone(), whole.clone()),
        TurnEventBody::ToolOutput { delta, .. } => output.push_str(delta),
        TurnEventBody::ToolEnded {
            state: how,
            answer: told,
            full: all,
            ..
        } => (*state, *answer, *full) = (Some(*how), Some(told.clone()), all.clone()),
        _ => {}
    }
}
