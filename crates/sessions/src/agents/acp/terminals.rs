//! Commands that an agent runs through us. Each is a job in the plan's sandbox.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use kernel::{CancellationToken, Cause, Deadline, Scope, Slot};
use process::Tasks;
use protocol::PlanId;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};

use super::files::Roots;
use super::wire::{CreateTerminal, RpcError};
use crate::desk::PlanDesk;
use crate::ports::{Shell, ShellOrder};

/// How many commands of a turn may run at once. Further ones are refused.
const RUNNING_LIMIT: u32 = 32;
/// How many commands of a turn are remembered; agents release them after reading their output. Further ones are
/// refused.
const KNOWN_LIMIT: usize = 1024;
/// How much of a command's output is kept, unless the agent wants less. If there is more, the start is dropped; the job
/// keeps everything.
const OUTPUT_LIMIT_BYTES: usize = 1024 * 1024;
/// How many pieces of output may be queued. A faster command waits.
const PIECES_LIMIT: usize = 64;
/// How long a command may take. Agents stop commands that they no longer need, and the turn stops them all.
const TIME_LIMIT: Duration = Duration::from_secs(2 * 60 * 60);

#[derive(Debug)]
pub(super) struct Terminals {
    shell: Arc<dyn Shell>,
    desk: PlanDesk,
    plan: PlanId,
    roots: Roots,
    tasks: Tasks,
    /// Cancelled when the turn ends.
    turn: CancellationToken,
    running: Arc<Semaphore>,
    /// Guards the list; held for lookups, inserts and removals.
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    next: u64,
    terminals: HashMap<String, Arc<Terminal>>,
}

#[derive(Debug)]
struct Terminal {
    token: CancellationToken,
    limit: usize,
    /// Guards the output; held to append and to copy.
    output: Mutex<Output>,
    end: Slot<Option<End>>,
}

#[derive(Debug, Default)]
struct Output {
    bytes: Vec<u8>,
    is_cut: bool,
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct End {
    exit_code: Option<i32>,
    text: String,
}

impl End {
    fn to_wire(&self) -> Value {
        match self.exit_code {
            Some(code) => json!({ "exitCode": code, "signal": null }),
            None => json!({ "exitCode": null, "signal": self.text }),
        }
    }
}

impl Terminals {
    pub(super) fn new(
        shell: Arc<dyn Shell>,
        desk: PlanDesk,
        plan: PlanId,
        roots: Roots,
        tasks: Tasks,
        turn: CancellationToken,
    ) -> Self {
        Self {
            shell,
            desk,
            plan,
            roots,
            tasks,
            turn,
            running: Arc::new(Semaphore::new(RUNNING_LIMIT as usize)),
            known: Mutex::default(),
        }
    }

    pub(super) fn create(&self, wanted: CreateTerminal) -> Result<Value, RpcError> {
        let directory = match &wanted.cwd {
            Some(cwd) => self.roots.below(cwd)?.to_string_lossy().into_owned(),
            None => String::new(),
        };
        let Ok(place) = Arc::clone(&self.running).try_acquire_owned() else {
            return Err(RpcError::failed(format!("{RUNNING_LIMIT} commands run already")));
        };
        let terminal = Arc::new(Terminal {
            token: self.turn.child(),
            limit: wanted
                .output_byte_limit
                .map_or(OUTPUT_LIMIT_BYTES, |limit| limit.min(OUTPUT_LIMIT_BYTES)),
            output: Mutex::default(),
            end: Slot::new(None),
        });
        let name = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if known.terminals.len() >= KNOWN_LIMIT {
                return Err(RpcError::failed(format!(
                    "{KNOWN_LIMIT} terminals were not released"
                )));
            }
            known.next += 1;
            let name = format!("terminal-{}", known.next);
            known.terminals.insert(name.clone(), Arc::clone(&terminal));
            name
        };
        let order = ShellOrder {
            plan: self.plan,
            line: line_of(&wanted),
            directory,
            environment: wanted.env.into_iter().map(|env| (env.name, env.value)).collect(),
            actor: self.desk.actor(),
            timeout: TIME_LIMIT,
            scope: terminal.token.scope(),
        };
        let (shell, desk) = (Arc::clone(&self.shell), self.desk.clone());
        self.tasks.spawn("acp-terminal", async move {
            terminal.run(&*shell, order).await;
            desk.tell_changes(Vec::new()).await;
            drop(place);
        });
        Ok(json!({ "terminalId": name }))
    }

    /// A command's output so far, and how it ended if it has.
    pub(super) fn output(&self, name: &str) -> Result<Value, RpcError> {
        let terminal = self.find(name)?;
        let end = terminal.end.read().state;
        let (text, is_cut) = terminal.said();
        Ok(json!({
            "output": text,
            "truncated": is_cut,
            "exitStatus": end.as_ref().as_ref().map(End::to_wire),
        }))
    }

    /// A command's output so far, for people.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        Some(self.find(name).ok()?.said().0)
    }

    pub(super) async fn wait(&self, name: &str, scope: &Scope) -> Result<Value, RpcError> {
        let terminal = self.find(name)?;
        let waited = terminal
            .end
            .wait_until(|end| end.is_some(), Deadline::never(), scope);
        match waited.await {
            Ok(seen) => Ok(seen.state.as_ref().as_ref().map_or(Value::Null, End::to_wire)),
            Err(_) => Err(RpcError::failed("the turn is over")),
        }
    }

    /// Stops a command. Its output stays available.
    pub(super) fn kill(&self, name: &str) -> Result<Value, RpcError> {
        let cause = Cause::new("the agent", "it wants the command to stop");
        self.find(name)?.token.cancel(cause);
        Ok(json!({}))
    }

    /// Stops and forgets a command.
    pub(super) fn release(&self, name: &str) -> Result<Value, RpcError> {
        self.kill(name)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.terminals.remove(name);
        Ok(json!({}))
    }

    /// Waits until no command is running. The turn's token must be cancelled first.
    pub(super) async fn all_ended(&self) {
        drop(self.running.acquire_many(RUNNING_LIMIT).await);
    }

    fn find(&self, name: &str) -> Result<Arc<Terminal>, RpcError> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.terminals.get(name).cloned();
        found.ok_or_else(|| RpcError::refused(format!("there is no terminal `{name}`")))
    }
}

impl Terminal {
    async fn run(&self, shell: &dyn Shell, order: ShellOrder) {
        let (sender, mut pieces) = mpsc::channel::<Bytes>(PIECES_LIMIT);
        let take_in = async {
            while let Some(piece) = pieces.recv().await {
                self.take_in(&piece);
            }
        };
        let (ended, ()) = tokio::join!(shell.run(order, sender), take_in);
        let end = match ended {
            Ok(end) => End {
                exit_code: end.exit_code,
                text: end.text,
            },
            Err(error) => {
                self.take_in(error.text.as_bytes());
                End {
                    exit_code: Some(127),
                    text: error.text,
                }
            }
        };
        // There is no other writer.
        self.end.transition(self.end.read().generation, Some(end)).ok();
    }

    fn take_in(&self, piece: &[u8]) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.bytes.extend_from_slice(piece);
        let length = output.bytes.len();
        output.is_cut |= length > self.limit;
        // Cut only at twice the limit, so that a flood of output isn't moved with each piece.
        if length > 2 * self.limit {
            output.bytes.drain(..length - self.limit);
        }
    }

    fn said(&self) -> (String, bool) {
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let mut start = output.bytes.len().saturating_sub(self.limit);
        // A character that was cut in two is left out.
        while output.bytes.get(start).is_some_and(|byte| byte & 0xc0 == 0x80) {
            start += 1;
        }
        (
            String::from_utf8_lossy(&output.bytes[start..]).into_owned(),
            output.is_cut,
        )
    }
}

/// A command line for the shell. Several agents send a whole line as a command without arguments.
pub(super) fn line_of(wanted: &CreateTerminal) -> String {
    if wanted.args.is_empty() {
        return wanted.command.clone();
    }
    let words = std::iter::once(&wanted.command).chain(&wanted.args);
    words.map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,+@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_becomes_a_line() {
        let check = |command: &str, args: &[&str], expected: &str| {
            let wanted: CreateTerminal =
                serde_json::from_value(json!({ "command": command, "args": args })).unwrap();
            assert_eq!(line_of(&wanted), expected);
        };
        check("cargo test | tail", &[], "cargo test | tail");
        check("cargo", &["test", "-p", "a"], "cargo test -p a");
        check(
            "echo",
            &["a b", "", "it's", "$HOME"],
            r"echo 'a b' '' 'it'\''s' '$HOME'",
        );
    }

    #[test]
    fn of_a_long_output_the_end_is_kept() {
        let check = |limit: usize, pieces: &[&str], expected: (&str, bool)| {
            let terminal = Terminal {
                token: CancellationToken::new(),
                limit,
                output: Mutex::default(),
                end: Slot::new(None),
            };
            for piece in pieces {
                terminal.take_in(piece.as_bytes());
            }
            assert_eq!(terminal.said(), (expected.0.to_owned(), expected.1), "{pieces:?}");
        };
        check(4, &[], ("", false));
        check(4, &["abcd"], ("abcd", false));
        check(4, &["abcd", "e"], ("bcde", true));
        check(4, &["abcd", "e", "f", "ghijklmnop"], ("mnop", true));
        check(4, &["aöä"], ("öä", true));
        check(3, &["aöä"], ("ä", true));
        check(0, &["a"], ("", true));
    }
}
