//! Agents that are used if they are installed, and what is missing for those that are only partly installed.

use super::agents::Variables;

/// A widely used agent.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    /// The program itself. It may be installed without the adapter that speaks the protocol.
    program: &'static str,
    /// The commands that speak the protocol. The first one that is installed is used.
    commands: &'static [&'static [&'static str]],
    /// How to install the first of these commands, for a program that doesn't include it.
    adapter: Option<&'static str>,
}

pub(super) const KNOWN: [Known; 8] = [
    Known {
        name: "claude",
        description: "Claude Code",
        program: "claude",
        // The second is the name of the first before version 0.17.
        commands: &[&["claude-agent-acp"], &["claude-code-acp"]],
        adapter: Some("npm install -g @agentclientprotocol/claude-agent-acp"),
    },
    Known {
        name: "codex",
        description: "Codex",
        program: "codex",
        commands: &[&["codex-acp"]],
        adapter: Some("npm install -g @agentclientprotocol/codex-acp"),
    },
    Known {
        name: "copilot",
        description: "GitHub Copilot CLI",
        program: "copilot",
        commands: &[&["copilot", "--acp"]],
        adapter: None,
    },
    Known {
        name: "cursor",
        description: "Cursor CLI",
        program: "cursor-agent",
        commands: &[&["cursor-agent", "acp"]],
        adapter: None,
    },
    Known {
        name: "gemini",
        description: "Gemini CLI",
        program: "gemini",
        // Older versions don't know `--acp`, and newer ones still accept this.
        commands: &[&["gemini", "--experimental-acp"]],
        adapter: None,
    },
    Known {
        name: "goose",
        description: "goose",
        program: "goose",
        commands: &[&["goose", "acp"]],
        adapter: None,
    },
    Known {
        name: "opencode",
        description: "opencode",
        program: "opencode",
        commands: &[&["opencode", "acp"]],
        adapter: None,
    },
    Known {
        name: "qwen",
        description: "Qwen Code",
        program: "qwen",
        commands: &[&["qwen", "--acp"]],
        adapter: None,
    },
];

/// A known agent that is installed, at least in part.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Found {
    /// The program and its arguments.
    pub(super) command: Vec<String>,
    /// What to do if the program isn't installed.
    pub(super) if_missing: Option<String>,
}

impl Known {
    /// What is on the search path; `None` if nothing is.
    pub(super) fn find(&self, variables: Variables<'_>) -> Option<Found> {
        let installed = self.commands.iter().find_map(|command| {
            let (program, arguments) = command.split_first()?;
            let program = variables.program(program)?.to_str()?.to_owned();
            let arguments = arguments.iter().map(ToString::to_string);
            Some(std::iter::once(program).chain(arguments).collect())
        });
        if let Some(command) = installed {
            return Some(Found {
                command,
                if_missing: None,
            });
        }
        let (adapter, command) = (self.adapter?, self.commands.first()?);
        variables.program(self.program)?;
        Some(Found {
            // By its bare name: it is looked up on each use, so it is found once it is installed.
            command: command.iter().map(ToString::to_string).collect(),
            if_missing: Some(format!(
                "`{}` is installed. Install its ACP adapter: {adapter}",
                self.program
            )),
        })
    }
}
