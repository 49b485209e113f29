//! Shows a job's output: bytes to their stream, and the progress below them.

use std::io::{self, IsTerminal, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use protocol::{JobChannel, JobOutput};
use serde_json::json;

use super::bar::Bar;
use super::escapes::{Kept, Stripper};
use super::follow::{JobMessage, Listener};
use super::times::local;
use crate::cli::Stamps;
use crate::output::{self, Format, json_line};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Escapes {
    Keep,
    /// Colors on a terminal whose user wants them, but no other escape sequences.
    OnTerminals,
}

impl Escapes {
    /// For output that may have been made for another terminal.
    pub(in crate::commands) fn for_here() -> Escapes {
        Escapes::OnTerminals
    }

    fn stripper(self, is_terminal: bool) -> Option<Stripper> {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        match self {
            Escapes::Keep => None,
            Escapes::OnTerminals if is_terminal && !unwanted => Some(Stripper::keeping(Kept::Colours)),
            Escapes::OnTerminals => Some(Stripper::default()),
        }
    }
}

#[derive(Debug)]
pub(in crate::commands) struct OutputPrinter {
    format: Format,
    stdout: Voice,
    stderr: Voice,
    bar: Bar,
    place: u64,
}

impl OutputPrinter {
    pub(in crate::commands) fn new(format: Format, escapes: Escapes, stamps: Stamps) -> OutputPrinter {
        let voice = |is_terminal| Voice {
            stripper: escapes.stripper(is_terminal),
            stamps,
            line: Line::Ended,
        };
        OutputPrinter {
            format,
            stdout: voice(io::stdout().is_terminal()),
            stderr: voice(io::stderr().is_terminal()),
            bar: Bar::new(format),
            place: 0,
        }
    }

    /// Writes a chunk of output unchanged, or as a JSON line for programs.
    pub(super) fn output(&mut self, output: &JobOutput) -> io::Result<()> {
        self.place = output.sequence;
        if self.format == Format::Json {
            return self.line(&json!({ "output": output }));
        }
        self.bar.hide();
        let bytes = bytes_of(output);
        match output.channel {
            JobChannel::Stdout => write(io::stdout(), &self.stdout.speak(&bytes, &output.at))?,
            // If standard error is closed, no one wants the output.
            JobChannel::Stderr => drop(write(io::stderr(), &self.stderr.speak(&bytes, &output.at))),
            JobChannel::Note => self.note(String::from_utf8_lossy(&bytes).trim_end()),
        }
        if self.stdout.line == Line::Ended && self.stderr.line == Line::Ended {
            self.bar.show_again();
        }
        Ok(())
    }

    pub(super) fn resync(&mut self, after: u64) -> io::Result<()> {
        if self.format == Format::Json {
            return self.line(&json!({ "resync": { "after": after } }));
        }
        if after < self.place {
            self.note("the database crashed and lost some of this output; continuing with what is left");
        } else {
            self.note(&format!(
                "output up to number {after} has expired and was deleted"
            ));
        }
        self.place = after;
        Ok(())
    }

    fn line(&self, value: &serde_json::Value) -> io::Result<()> {
        output::write(io::stdout(), &json_line(value))
    }
}

impl Listener for OutputPrinter {
    fn hear(&mut self, said: &JobMessage) -> io::Result<()> {
        match (said, self.format) {
            (JobMessage::Output(output), _) => self.output(output),
            (JobMessage::Resync(after), _) => self.resync(*after),
            // Programs find it in `waiting_for` of the job.
            (JobMessage::Waiting(_), Format::Json) => Ok(()),
            (JobMessage::Waiting(text), Format::Human) => {
                self.note(&format!("waiting for {text}"));
                Ok(())
            }
            (JobMessage::Progress(progress), Format::Json) => self.line(&json!({ "progress": progress })),
            (JobMessage::End(job), Format::Json) => self.line(&json!({ "end": job })),
            (JobMessage::Progress(progress), Format::Human) => {
                if self.stdout.line == Line::Ended && self.stderr.line == Line::Ended {
                    self.bar.show(progress);
                }
                Ok(())
            }
            (JobMessage::End(_), Format::Human) => {
                self.bar.hide();
                Ok(())
            }
        }
    }

    fn note(&mut self, text: &str) {
        if self.format == Format::Human {
            self.bar.hide();
            // A note starts on its own line if the command left one open.
            let open = if self.stderr.line == Line::Open { "\n" } else { "" };
            self.stderr.line = Line::Ended;
            drop(output::write(io::stderr(), &format!("{open}note: {text}\n")));
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Open,
    Ended,
}

#[derive(Debug)]
struct Voice {
    stripper: Option<Stripper>,
    stamps: Stamps,
    line: Line,
}

impl Voice {
    fn speak(&mut self, piece: &[u8], at: &str) -> Vec<u8> {
        let stripped = self.stripper.as_mut().map(|stripper| stripper.strip(piece));
        let piece = stripped.as_deref().unwrap_or(piece);
        let mut spoken = Vec::with_capacity(piece.len());
        for line in piece.split_inclusive(|byte| *byte == b'\n') {
            if self.stamps == Stamps::Time && self.line == Line::Ended {
                spoken.extend_from_slice(local(at).as_bytes());
                spoken.extend_from_slice(b"  ");
            }
            spoken.extend_from_slice(line);
            self.line = if line.ends_with(b"\n") {
                Line::Ended
            } else {
                Line::Open
            };
        }
        spoken
    }
}

/// Replaces output that cannot be decoded.
const UNREADABLE: &[u8] =
    b"[output that this version of tidelock cannot read; restart the daemon with: tidelock down]\n";

fn bytes_of(output: &JobOutput) -> Vec<u8> {
    match (&output.text, &output.base64) {
        (Some(text), _) => text.as_bytes().to_vec(),
        // If it isn't Base64, the daemon uses another encoding.
        (None, Some(base64)) => STANDARD.decode(base64).unwrap_or_else(|_| UNREADABLE.to_vec()),
        (None, None) => Vec::new(),
    }
}

fn write(mut stream: impl Write, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes)?;
    stream.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_gets_the_time_of_its_beginning() {
        let mut voice = Voice {
            stripper: Some(Stripper::default()),
            stamps: Stamps::Time,
            line: Line::Ended,
        };
        let mut spoken = Vec::new();
        for (piece, at) in [("a\nb", "1"), ("c\n\u{1b}[1m", "2"), ("d\n\n", "3")] {
            spoken.extend(voice.speak(piece.as_bytes(), at));
        }
        assert_eq!(String::from_utf8(spoken).unwrap(), "1  a\n1  bc\n3  d\n3  \n");
    }

    #[test]
    fn without_stamps_every_byte_is_as_it_came() {
        let mut voice = Voice {
            stripper: None,
            stamps: Stamps::None,
            line: Line::Ended,
        };
        let piece = b"\xff\x00\x1b[1mx\r\n\n";
        assert_eq!(voice.speak(piece, "1"), piece);
        assert_eq!(voice.line, Line::Ended);
        assert_eq!(voice.speak(b"y", "1"), b"y");
        assert_eq!(voice.line, Line::Open);
    }

    #[test]
    fn output_is_bytes_again_whatever_it_travelled_as() {
        let output = |text: Option<&str>, base64: Option<&str>| JobOutput {
            sequence: 1,
            at: String::new(),
            channel: JobChannel::Stdout,
            text: text.map(str::to_owned),
            base64: base64.map(str::to_owned),
        };
        for (output, expected) in [
            (output(Some("ü\n"), None), "ü\n".as_bytes()),
            (output(None, Some("/wA=")), b"\xff\x00"),
            (output(None, Some("?")), UNREADABLE),
            (output(None, None), b""),
        ] {
            assert_eq!(bytes_of(&output), expected, "{output:?}");
        }
    }
}
