//! `tidelock export`: writes everything in the log to an archive.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use daemon::ArchiveWatch;
use serde_json::json;

use crate::cli::ArchiveArguments;
use crate::client::{Client, ClientError};
use crate::error::{Exit, Failure};
use crate::output::{self, Cell, Format, Report, Tone, fields, json_line};
use crate::printable::one_line;
use crate::progress::Progress;
use crate::start::Repeat;
use crate::units::format_bytes;

/// How long the daemon may take to send the next chunk: compressing a large blob takes a while on a busy machine.
const SILENCE: Duration = Duration::from_secs(60);

pub(super) fn run(arguments: &ArchiveArguments, client: &Client) -> Result<Report, Failure> {
    // Start a daemon before writing anything, so that its errors are reported first.
    client.ask(Repeat::Harmless, |client| {
        client.get::<protocol::Status>("/v1/status")
    })?;
    if arguments.path == Path::new("-") {
        let (size_bytes, left_out) = download(client, &mut io::stdout().lock())?;
        // Standard output carries nothing but the archive.
        let value = json!({ "state": "written", "size_bytes": size_bytes });
        let text = format!("{} were exported.\n", format_bytes(size_bytes));
        let report = with_damage(Report::success(value, text), &left_out);
        let said = match client.format() {
            Format::Human => format!("{}{}", report.text, report.notes.join("")),
            Format::Json => json_line(&report.value),
        };
        drop(output::write(io::stderr(), &said));
        return Ok(Report {
            exit: report.exit,
            ..Report::already_told()
        });
    }
    let path = std::path::absolute(&arguments.path).map_err(|error| unwritable(&arguments.path, &error))?;
    let (size_bytes, left_out) = to_file(client, &path)?;
    let text = fields(
        client.palette(),
        vec![
            ("archive", Cell::toned("written", Tone::Good)),
            ("path", Cell::new(path.display().to_string())),
            ("size", Cell::new(format_bytes(size_bytes))),
        ],
    );
    let value = json!({ "state": "written", "path": path.display().to_string(), "size_bytes": size_bytes });
    Ok(with_damage(Report::success(value, text), &left_out))
}

/// Reports what was damaged and left out of a copy of the log. That is a failure, although the copy exists.
pub(super) fn with_damage(mut report: Report, left_out: &[String]) -> Report {
    if left_out.is_empty() {
        return report;
    }
    report.value["left_out"] = json!(left_out);
    report.exit = Exit::Failed;
    report.text.push_str("Damaged in the log, so not in the copy:\n");
    for what in left_out {
        report.text.push_str(&format!("  {}\n", one_line(what)));
    }
    report
}

/// Writes the archive to `target`. Returns its size and what was left out.
fn download(client: &Client, target: &mut impl Write) -> Result<(u64, Vec<String>), ClientError> {
    let mut progress = Progress::new("exported");
    let failed = |source| ClientError::Output { source };
    let mut watch = ArchiveWatch::new().map_err(failed)?;
    client.download("/v1/log/export", &[], SILENCE, |piece| {
        target.write_all(piece)?;
        watch.write_all(piece)?;
        progress.advance(piece.len());
        Ok(())
    })?;
    target.flush().map_err(failed)?;
    Ok((progress.bytes(), watch.left_out().map_err(failed)?))
}

/// The archive gets its name once it is complete and on disk.
fn to_file(client: &Client, path: &Path) -> Result<(u64, Vec<String>), Failure> {
    if path.symlink_metadata().is_ok() {
        return Err(exists(path));
    }
    let mut unfinished = Unfinished::create(path).map_err(|error| unwritable(path, &error))?;
    let downloaded = download(client, &mut unfinished.file)?;
    unfinished.finish(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => exists(path),
        _ => unwritable(path, &error),
    })?;
    Ok(downloaded)
}

pub(super) fn exists(path: &Path) -> Failure {
    let message = format!("`{}` already exists and wasn't changed", path.display());
    Failure::new(Exit::Refused, "file_exists", message).advise("choose another path, or move the file away")
}

pub(super) fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let message = format!("`{}` cannot be written: {error}", path.display());
    Failure::new(Exit::Failed, "output_failed", message)
        .advise("make sure that you can write there and that there is room, and try again")
}

/// A file that does not have its final name yet. Dropping it removes it.
#[derive(Debug)]
pub(super) struct Unfinished {
    path: PathBuf,
    pub(super) file: File,
}

impl Unfinished {
    pub(super) fn create(path: &Path) -> io::Result<Unfinished> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".unfinished-{}", std::process::id()));
        let path = path.with_file_name(name);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        Ok(Unfinished { path, file })
    }

    /// A link does not replace an existing file, unlike a rename.
    pub(super) fn finish(self, path: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        fs::hard_link(&self.path, path)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // Whether or not the link worked, the temporary name is no longer needed.
        drop(fs::remove_file(&self.path));
    }
}
