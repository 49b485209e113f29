//! `tidelock index`: the indexes that questions are answered with.

use std::path::Path;

use protocol::{ChangeContextIndex, ContextIndex, ContextIndexList, ContextIndexRemoved, ContextIndexState};
use serde_json::Value;

use super::words::grouped;
use crate::cli::{IndexArguments, IndexCommand};
use crate::client::{Client, ClientError};
use crate::commands::job::age;
use crate::commands::lsp::paths;
use crate::commands::lsp::printable::{cut, printable};
use crate::context::Context;
use crate::error::{Exit, Failure};
use crate::output::{Cell, Palette, Report, Tone, table};
use crate::start::{Repeat, with_daemon};
use crate::units::{format_bytes, format_duration};

const INDEXES: &str = "/v1/context/indexes";
/// How much of a reason is shown.
const WHY_CHARACTERS: usize = 100;

pub(in crate::commands) fn run(
    command: &IndexCommand,
    context: &Context,
    client: &Client,
) -> Result<Report, Failure> {
    match command {
        IndexCommand::List => list(context, client),
        IndexCommand::Rebuild(arguments) => rebuild(arguments, context, client),
        IndexCommand::Rm(arguments) => remove(arguments, context, client),
    }
}

fn list(context: &Context, client: &Client) -> Result<Report, Failure> {
    let answer = ask(context, client, |client| client.get(INDEXES))?;
    let list: ContextIndexList = printable(&answer)?;
    Ok(Report::success(answer, rows(context.palette, &list.indexes)))
}

fn rows(palette: Palette, indexes: &[ContextIndex]) -> String {
    if indexes.is_empty() {
        return "No indexes are in use. `tidelock context QUERY` builds one for this directory.\n".to_owned();
    }
    let heading = ["WORKSPACE", "STATE", "FILES", "SOURCE", "INDEX", "USED", ""];
    let mut rows = vec![heading.map(|word| Cell::toned(word, Tone::Quiet)).into()];
    rows.extend(indexes.iter().map(|index| {
        let used =
            age(&index.used_at).map_or_else(|| "-".to_owned(), |age| format!("{} ago", format_duration(age)));
        vec![
            Cell::new(&index.root),
            state(index.state),
            Cell::new(grouped(index.files)),
            Cell::new(format_bytes(index.source_bytes)),
            Cell::new(format_bytes(index.index_bytes)),
            Cell::new(used),
            Cell::toned(
                cut(index.why.as_deref().unwrap_or_default(), WHY_CHARACTERS),
                Tone::Bad,
            ),
        ]
    }));
    table(palette, &rows)
}

fn state(state: ContextIndexState) -> Cell {
    match state {
        ContextIndexState::Building => Cell::toned("building", Tone::Warning),
        ContextIndexState::Ready => Cell::toned("ready", Tone::Good),
        ContextIndexState::Failed => Cell::toned("failed", Tone::Bad),
    }
}

fn rebuild(arguments: &IndexArguments, context: &Context, client: &Client) -> Result<Report, Failure> {
    let change = ChangeContextIndex {
        directory: paths::directory(named(arguments))?,
    };
    let answer = ask(context, client, |client| {
        client.post(&format!("{INDEXES}/rebuild"), Some(&change))
    })?;
    let index: ContextIndex = printable(&answer)?;
    let text = format!(
        "Rebuilding the index of {}. `tidelock index list` shows the progress.\n",
        index.root
    );
    Ok(Report::success(answer, text))
}

fn remove(arguments: &IndexArguments, context: &Context, client: &Client) -> Result<Report, Failure> {
    let change = ChangeContextIndex {
        directory: even_if_gone(named(arguments))?,
    };
    let answer = ask(context, client, |client| {
        client.post(&format!("{INDEXES}/remove"), Some(&change))
    })?;
    let removed: ContextIndexRemoved = printable(&answer)?;
    let text = if removed.removed {
        format!("Removed the index of {}.\n", removed.root)
    } else {
        format!("There was no index of {}.\n", removed.root)
    };
    Ok(Report::success(answer, text))
}

fn named(arguments: &IndexArguments) -> &Path {
    arguments.directory.as_deref().unwrap_or(Path::new("."))
}

/// A directory, or the path of one that was there once: its index may still be.
fn even_if_gone(directory: &Path) -> Result<String, Failure> {
    if directory.exists() {
        return paths::directory(directory);
    }
    let absolute = std::path::absolute(directory).ok();
    let absolute = absolute.and_then(|path| path.into_os_string().into_string().ok());
    absolute.ok_or_else(|| {
        let message = format!(
            "`{}` cannot be used",
            directory.display().to_string().escape_debug()
        );
        Failure::new(Exit::Refused, "path_unusable", message).advise("give the path of a directory")
    })
}

fn ask(
    context: &Context,
    client: &Client,
    work: impl Fn(&Client) -> Result<Value, ClientError>,
) -> Result<Value, Failure> {
    // To make or remove an index twice is the same as to do it once.
    with_daemon(context, client, Repeat::Harmless, work).map(|(answer, _)| answer)
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    #[test]
    fn a_list_tells_how_far_each_is() {
        let failed = ContextIndex {
            why: Some("the disk is full".to_owned()),
            ..samples::index(ContextIndexState::Failed)
        };
        let indexes = [
            samples::index(ContextIndexState::Ready),
            samples::index(ContextIndexState::Building),
            failed,
        ];
        insta::assert_snapshot!(rows(Palette::Plain, &indexes));
        insta::assert_snapshot!(rows(Palette::Plain, &[]));
    }
}
