//! Why a server did not come up, or went away.

use std::fmt;

/// Why a server did not come up or did not stay up, with its exit status and last output.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Failure {
    /// What went wrong, in a sentence.
    pub message: String,
    /// How the process ended, if it did.
    pub exit: Option<ServerExit>,
    /// The last lines that it wrote to standard error.
    pub stderr_tail: String,
}

/// Why a launch failed. Whoever returns it has left no process behind.
pub type LaunchFailure = Failure;

/// Why a running server ended.
pub type EndReason = Failure;

/// How a server's process ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ServerExit {
    /// It exited with this code.
    Code(i32),
    /// It was killed by this signal.
    Signal(i32),
}

impl Failure {
    /// A failure with only a message.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }
}

impl fmt::Display for ServerExit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(formatter, "exit code {code}"),
            Self::Signal(signal) => write!(formatter, "signal {signal}"),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)?;
        if let Some(exit) = self.exit {
            write!(formatter, " ({exit})")?;
        }
        // One line is enough for a message; the field has the rest.
        match self
            .stderr_tail
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty())
        {
            Some(line) => write!(formatter, ": {}", line.trim()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Failure, ServerExit};

    #[test]
    fn a_failure_reads_as_one_line() {
        let check = |exit, stderr_tail: &str, expected| {
            let failure = Failure {
                message: "the server ended while it was starting".to_owned(),
                exit,
                stderr_tail: stderr_tail.to_owned(),
            };
            assert_eq!(failure.to_string(), expected);
        };
        check(None, "", "the server ended while it was starting");
        check(
            Some(ServerExit::Code(3)),
            "reading\nno such option  \n\n",
            "the server ended while it was starting (exit code 3): no such option",
        );
        check(
            Some(ServerExit::Signal(9)),
            "",
            "the server ended while it was starting (signal 9)",
        );
    }
}
