//! What is counted about turns, for whoever wants to know how a daemon is doing.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use protocol::{PermissionAnswer, ToolState, TurnState};

use crate::event::TurnEvent;
use crate::service::Sessions;

/// Is told what turns of this daemon do. It only counts: what it does must be quick, and nothing waits for it.
pub trait Observer: Send + Sync + fmt::Debug {
    /// So many events were written.
    fn wrote(&self, events: usize);

    /// A call of a tool ended.
    fn tool_ended(&self, tool: &str, state: ToolState);

    /// The user was asked something.
    fn asked(&self);

    /// A question was answered, by somebody or by its time being over.
    fn answered(&self, answer: PermissionAnswer);

    /// A turn ended here, so long after it began.
    fn turn_ended(&self, state: TurnState, elapsed: Duration);
}

impl Sessions {
    /// Tells somebody what turns do from now on. The first one stays.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        drop(self.shared.observer.set(observer));
    }
}

/// What has to be remembered of one turn to tell about it.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    /// The tools of the calls that have not ended, by item. An agent waits for its calls, so they are few.
    tools: HashMap<u64, String>,
}

impl Observed {
    /// Tells of one event.
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
