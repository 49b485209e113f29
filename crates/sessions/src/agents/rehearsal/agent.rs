//! The agent itself.

use std::sync::Arc;

use async_trait::async_trait;
use protocol::{AgentChoice, AgentKind};

use super::default_script;
use super::script::Script;
use super::stage::Stage;
use crate::agent::{Agent, AgentEnd, AgentInfo, AgentTurn, Readiness};

/// An agent that follows a script: the one in the prompt, or its default one.
#[derive(Debug)]
pub struct Rehearsal {
    name: String,
}

impl Rehearsal {
    /// Creates a rehearsal with this name.
    #[expect(
        clippy::new_ret_no_self,
        reason = "whoever makes an agent hands it over as one"
    )]
    pub fn new(name: impl Into<String>) -> Arc<dyn Agent> {
        Arc::new(Self { name: name.into() })
    }
}

#[async_trait]
impl Agent for Rehearsal {
    fn info(&self) -> AgentInfo {
        AgentInfo {
            name: self.name.clone(),
            kind: AgentKind::Rehearsal,
            description: "follows a script; needs no model and no key".to_owned(),
            readiness: Readiness::Ready,
        }
    }

    fn check(&self, choice: &AgentChoice) -> Result<(), String> {
        match choice.script.as_deref().map(Script::parse) {
            Some(Err(wrong)) => Err(wrong.to_string()),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    async fn run(&self, turn: AgentTurn) -> AgentEnd {
        let script = match &turn.choice.script {
            Some(script) => Script::parse(script),
            None => default_script::for_turn(&turn).await,
        };
        match script {
            Ok(script) => Stage::new(&turn).play(&script).await,
            Err(wrong) => AgentEnd::failed("script_invalid", wrong.to_string()),
        }
    }
}
