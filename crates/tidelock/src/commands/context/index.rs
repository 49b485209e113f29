//! `tidelock index`: the indexes that questions are answered with.

use std::path::Path;

use protocol::{ChangeContextIndex, ContextIndex, ContextIndexList, ContextIndexRemoved, ContextIndexState};

use super::text::grouped;
use crate::cli::{IndexArguments, IndexCommand};
use crate::client::Client;
use crate::commands::job::age;
use crate::error::{Exit, Failure};
use crate::output::{Cell, Palette, Report, Tone, list as list_of};
use crate::paths;
use crate::printable::{Answer, cut};
use crate::start::Repeat;
use crate::units::{format_bytes, format_duration};

const INDEXES: &str = "/v1/context/indexes";
const WHY_CHARACTERS: usize = 100;

pub(in crate::commands) fn run(command: &IndexCommand, client: &Client) -> Result<Report, Failure> {
    match command {
        IndexCommand::List => list(client),
        IndexCommand::Rebuild(arguments) => rebuild(arguments, client),
        IndexCommand::Rm(arguments) => remove(arguments, client),
    }
}

fn list(client: &Client) -> Result<Report, Failure> {
    let list: Answer<ContextIndexList> = client.fetch(INDEXES)?;
    Ok(Report::shown(rows(client.palette(), &list.indexes), list))
}

fn rows(palette: Palette, indexes: &[ContextIndex]) -> String {
    let row = |index: &ContextIndex| {
        vec![
            Cell::new(&index.root),
            state(index.state),
            Cell::new(grouped(index.files)),
            Cell::new(format_bytes(index.source_bytes)),
            Cell::new(format_bytes(index.index_bytes)),
            Cell::or_dash(age(&index.used_at).map(|age| format!("{} ago", format_duration(age)))),
            Cell::toned(
                cut(index.why.as_deref().unwrap_or_default(), WHY_CHARACTERS),
                Tone::Bad,
            ),
        ]
    };
    list_of(
        palette,
        &["WORKSPACE", "STATE", "FILES", "SOURCE", "INDEX", "USED", ""],
        indexes.iter().map(row).collect(),
        "No indexes are in use. `tidelock context QUERY` builds one for this directory.",
    )
}

fn state(state: ContextIndexState) -> Cell {
    match state {
        ContextIndexState::Building => Cell::toned("building", Tone::Warning),
        ContextIndexState::Ready => Cell::toned("ready", Tone::Good),
        ContextIndexState::Failed => Cell::toned("failed", Tone::Bad),
    }
}

fn rebuild(arguments: &IndexArguments, client: &Client) -> Result<Report, Failure> {
    let change = ChangeContextIndex {
        directory: paths::directory(named(arguments))?,
    };
    let index: Answer<ContextIndex> = client.ask(Repeat::Harmless, |client| {
        client.post(&format!("{INDEXES}/rebuild"), Some(&change))
    })?;
    let text = format!(
        "Rebuilding the index of {}. `tidelock index list` shows the progress.\n",
        index.root
    );
    Ok(Report::shown(text, index))
}

fn remove(arguments: &IndexArguments, client: &Client) -> Result<Report, Failure> {
    let change = ChangeContextIndex {
        directory: even_if_gone(named(arguments))?,
    };
    let removed: Answer<ContextIndexRemoved> = client.ask(Repeat::Harmless, |client| {
        client.post(&format!("{INDEXES}/remove"), Some(&change))
    })?;
    let text = if removed.removed {
        format!("Removed the index of {}.\n", removed.root)
    } else {
        format!("There was no index of {}.\n", removed.root)
    };
    Ok(Report::shown(text, removed))
}

fn named(arguments: &IndexArguments) -> &Path {
    arguments.directory.as_deref().unwrap_or(Path::new("."))
}

/// A directory, or the path of a deleted one: its index may still exist.
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
