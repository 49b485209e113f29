//! Exports a whole session.

use std::io::{self, IsTerminal, StdoutLock, Write};
use std::time::Duration;

use serde_json::{Value, json};

use super::path;
use crate::cli::ExportArguments;
use crate::client::{Client, ClientError};
use crate::commands::export::{Unfinished, exists, unwritable};
use crate::commands::ids::SESSION;
use crate::commands::job::escapes::{Kept, Stripper};
use crate::error::Failure;
use crate::output::{Cell, Report, Tone, fields};
use crate::progress::Progress;
use crate::units::format_bytes;

/// How long the daemon may take to send the next chunk: a long turn is assembled first.
const SILENCE: Duration = Duration::from_secs(60);

pub(super) fn run(arguments: &ExportArguments, client: &Client) -> Result<Report, Failure> {
    let id = SESSION.find(&arguments.session.session, client)?;
    // Report a missing session or daemon before writing anything.
    client.fetch::<Value>(&path(&id, ""))?;
    let from = path(&id, &format!("/export?format={}", arguments.format.name()));
    let Some(output) = &arguments.output else {
        // Standard output carries nothing but the export.
        let ended = download(client, &from, &mut Shown::new(io::stdout().lock()));
        return match ended {
            Err(ClientError::Output { source }) if source.kind() == io::ErrorKind::BrokenPipe => {
                Ok(Report::already_told())
            }
            ended => Ok(ended.map(|_| Report::already_told())?),
        };
    };
    let file = std::path::absolute(output).map_err(|error| unwritable(output, &error))?;
    if file.symlink_metadata().is_ok() {
        return Err(exists(&file));
    }
    let mut unfinished = Unfinished::create(&file).map_err(|error| unwritable(&file, &error))?;
    let size_bytes = download(client, &from, &mut unfinished.file)?;
    unfinished.finish(&file).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists(&file),
        _ => unwritable(&file, &error),
    })?;
    let shown = file.display().to_string();
    let text = fields(
        client.palette(),
        vec![
            ("session", Cell::new(&id)),
            ("export", Cell::toned("written", Tone::Good)),
            ("path", Cell::new(&shown)),
            ("size", Cell::new(format_bytes(size_bytes))),
        ],
    );
    let value = json!({ "id": id, "state": "written", "path": shown, "size_bytes": size_bytes });
    Ok(Report::success(value, text))
}

/// Standard output. On a terminal, escape sequences in an agent's text are made visible; everywhere else the text is
/// unchanged.
#[derive(Debug)]
struct Shown {
    stdout: StdoutLock<'static>,
    stripper: Option<Stripper>,
}

impl Shown {
    fn new(stdout: StdoutLock<'static>) -> Shown {
        let stripper = stdout.is_terminal().then(|| Stripper::keeping(Kept::Colours));
        Shown { stdout, stripper }
    }
}

impl Write for Shown {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        match &mut self.stripper {
            Some(stripper) => self.stdout.write_all(&stripper.strip(piece))?,
            None => self.stdout.write_all(piece)?,
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }
}

fn download(client: &Client, from: &str, target: &mut impl Write) -> Result<u64, ClientError> {
    let mut progress = Progress::new("exported");
    client.download_patiently(from, &[], SILENCE, |piece| {
        target.write_all(piece)?;
        progress.advance(piece.len());
        Ok(())
    })?;
    target.flush().map_err(|source| ClientError::Output { source })?;
    Ok(progress.bytes())
}
