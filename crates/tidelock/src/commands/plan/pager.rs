//! A pager for long texts on a terminal, like git's.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};
use std::process::{Child, Command, Stdio};

/// A running pager, or the terminal itself if there is none.
#[derive(Debug)]
pub(super) enum Pager {
    Program(Child),
    Terminal,
}

/// The shell command that starts the pager; `None` if no pager is wanted.
fn choose(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<OsString> {
    let chosen = ["GIT_PAGER", "PAGER"].into_iter().find_map(variable);
    let chosen = chosen.unwrap_or_else(|| OsString::from("less"));
    // An empty value and `cat` mean the terminal itself.
    Some(chosen).filter(|chosen| !chosen.is_empty() && chosen != "cat")
}

impl Pager {
    /// Starts the user's pager. Without one, the text goes straight to the terminal.
    pub(super) fn start() -> Pager {
        let variable = |name: &str| std::env::var_os(name);
        let Some(line) = choose(&variable) else {
            return Pager::Terminal;
        };
        let mut command = Command::new("sh");
        command.arg("-c").arg(&line).stdin(Stdio::piped());
        command.env_remove(daemon::DATABASE_URL);
        // As git does: exit at once if the text fits on a screen, pass colors through, and leave the text on
        // screen.
        for (name, value) in [("LESS", "FRX"), ("LV", "-c")] {
            if std::env::var_os(name).is_none() {
                command.env(name, value);
            }
        }
        command.spawn().map_or(Pager::Terminal, Pager::Program)
    }

    /// Writes a text. If the user has quit the pager, the error is of the kind `BrokenPipe`.
    pub(super) fn write(&mut self, text: &str) -> io::Result<()> {
        match self {
            Pager::Program(child) => match &mut child.stdin {
                Some(stdin) => stdin.write_all(text.as_bytes()),
                None => Err(ErrorKind::BrokenPipe.into()),
            },
            Pager::Terminal => crate::output::write(io::stdout(), text),
        }
    }

    /// Waits until the user has quit the pager.
    pub(super) fn finish(self) -> io::Result<()> {
        if let Pager::Program(mut child) = self {
            drop(child.stdin.take());
            child.wait()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pager_is_chosen_as_git_chooses_it() {
        type Case<'a> = (&'a [(&'a str, &'a str)], Option<&'a str>);
        let cases: [Case<'_>; 6] = [
            (&[], Some("less")),
            (&[("PAGER", "more -s")], Some("more -s")),
            (&[("GIT_PAGER", "delta"), ("PAGER", "more")], Some("delta")),
            (&[("GIT_PAGER", ""), ("PAGER", "more")], None),
            (&[("PAGER", "cat")], None),
            (&[("PAGER", "")], None),
        ];
        for (variables, expected) in cases {
            let variable = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            };
            assert_eq!(choose(&variable), expected.map(OsString::from), "{variables:?}");
        }
    }
}
