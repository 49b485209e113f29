//! Prints a file of a sandbox.

use std::io::{self, ErrorKind, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use protocol::PlanFile;

use super::get;
use super::record::as_text;
use crate::cli::CatArguments;
use crate::client::{Client, ClientError, path_segment};
use crate::commands::ids::PLAN;
use crate::error::Failure;
use crate::output::{Format, Report};
use crate::printable::printable;

pub(super) fn run(arguments: &CatArguments, client: &Client) -> Result<Report, Failure> {
    let id = PLAN.find(&arguments.plan.plan, client)?;
    let query = arguments.path.as_ref().map_or_else(String::new, |path| {
        format!("?path={}", path_segment(&as_text(path)))
    });
    let answer = get(&id, &format!("/file{query}"), client)?;
    if client.format() == Format::Json {
        return Ok(Report::success(answer, String::new()));
    }
    let file: PlanFile =
        serde_json::from_value(answer.clone()).map_err(|source| ClientError::NotUnderstood { source })?;
    if let Some(bytes) = content(&file) {
        let mut stdout = io::stdout();
        match stdout.write_all(&bytes).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            written => written.map_err(|source| ClientError::Output { source })?,
        }
        return Ok(Report::already_told());
    }
    let shown: PlanFile = printable(&answer)?;
    Ok(Report::success(answer, told(&shown)))
}

/// The bytes of a file; `None` if it is not a regular file.
fn content(file: &PlanFile) -> Option<Vec<u8>> {
    match (&file.text, &file.base64) {
        (Some(text), _) => Some(text.as_bytes().to_vec()),
        (None, Some(base64)) => STANDARD.decode(base64).ok(),
        (None, None) => None,
    }
}

/// Describes something that is not a regular file.
fn told(file: &PlanFile) -> String {
    match &file.target {
        Some(target) => format!("{target}\n"),
        None => file.names.iter().map(|name| format!("{name}\n")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_its_bytes_and_the_rest_is_told() {
        let file = |kind: &str| PlanFile {
            path: "a".to_owned(),
            kind: kind.to_owned(),
            text: None,
            base64: None,
            target: None,
            names: Vec::new(),
            hash: None,
            mode: None,
        };
        let text = PlanFile {
            text: Some("ü\n".to_owned()),
            ..file("file")
        };
        let bytes = PlanFile {
            base64: Some("/wA=".to_owned()),
            ..file("file")
        };
        let link = PlanFile {
            target: Some("../b".to_owned()),
            ..file("symlink")
        };
        let directory = PlanFile {
            names: vec!["x".to_owned(), "y".to_owned()],
            ..file("directory")
        };
        for (file, expected_bytes, expected_text) in [
            (text, Some("ü\n".as_bytes()), ""),
            (bytes, Some(&b"\xff\x00"[..]), ""),
            (link, None, "../b\n"),
            (directory, None, "x\ny\n"),
        ] {
            assert_eq!(
                (content(&file).as_deref(), told(&file).as_str()),
                (expected_bytes, expected_text),
                "{file:?}"
            );
        }
    }
}
