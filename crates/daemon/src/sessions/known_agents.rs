//! Agents that are used if they are installed, and what is missing for those that are installed in part.

use super::agents::Variables;

/// An agent that many have.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) name: &'static str,
    /// For people.
    pub(super) description: &'static str,
    /// The program itself. It may be installed without what makes it speak the protocol.
    program: &'static str,
    /// How it is run to speak the protocol: the first that is installed.
    commands: &'static [&'static [&'static str]],
    /// How to get the first of these commands, for a program that does not come with it.
    adapter: Option<&'static str>,
}

pub(super) const KNOWN: [Known; 8] = [
    Known {
        name: "claude",
        description: "Claude Code",
        program: "claude",
        // The second is what the first was called before its version 0.17.
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
        // Older ones know no `--acp`, and newer ones still know this.
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

/// A known agent that is here, or a part of it.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Found {
    /// The program and its arguments.
    pub(super) command: Vec<String>,
    /// What to do if the program is not there.
    pub(super) if_missing: Option<String>,
}

impl Known {
    /// What there is of it on the search path; nothing if there is nothing.
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
            // By its bare name: it is looked for whenever somebody asks, so it is found once it is installed.
            command: command.iter().map(ToString::to_string).collect(),
            if_missing: Some(format!(
                "`{}` is installed. Install its ACP adapter: {adapter}",
                self.program
            )),
        })
    }
}
