//! Hooks for metrics about turns.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use protocol::{PermissionAnswer, ToolState, TurnState};

use crate::event::TurnEvent;
use crate::service::Sessions;

/// Observes the turns of this daemon. Implementations only count: they must be quick, and nothing waits for them.
pub trait Observer: Send + Sync + fmt::Debug {
    /// This many events were written.
    fn wrote(&self, events: usize);

    /// A tool call ended.
    fn tool_ended(&self, tool: &str, state: ToolState);

    /// The user was asked a question.
    fn asked(&self);

    /// A question was answered, or timed out.
    fn answered(&self, answer: PermissionAnswer);

    /// A turn ended here, this long after it began.
    fn turn_ended(&self, state: TurnState, elapsed: Duration);
}

impl Sessions {
    /// Sets the observer of all turns from now on. Only the first call has an effect.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        drop(self.shared.observer.set(observer));
    }
}

/// Per-turn state needed to report events.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    /// The tools of the calls that haven't ended, by item. An agent waits for its calls, so there are few.
    tools: HashMap<u64, String>,
}

impl Observed {
    /// Reports one event.
    pub(crate) fn tell(&mut self, observer: &dyn Observer, event: &TurnEvent) {
        match event {
            TurnEvent::ToolCall { item, tool, .. } => {
                self.tools.insert(*item, tool.clone());
            }
            TurnEvent::ToolEnded { item, state, .. } => {
                if let Some(tool) = self.tools.remove(item) {
                    observer.tool_ended(&tool, *state);
                }
            }
            TurnEvent::PermissionAsked { .. } => observer.asked(),
            TurnEvent::PermissionAnswered { answer, .. } => observer.answered(*answer),
            _ => {}
        }
    }
}
