//! Files that stand for a directory, or for a server: some questions are about a workspace, but servers are chosen by file.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    ask::none_here,
    choices::{Choice, Choices},
    error::AskError,
};
use crate::servers::{Chosen, Environment};

/// How many files of a directory are examined. That is enough to find each kind.
const MOST_FILES: usize = 5_000;

/// The servers for the most common kind of file in a directory.
pub(super) fn of_directory(
    choices: &Choices,
    directory: &Path,
    workspace: Option<&Path>,
    caller: &Environment,
) -> Result<Arc<Choice>, AskError> {
    // The directory itself is checked first, so that its problems are reported.
    let of_directory = choices.choose(directory, workspace, caller)?;
    for file in one_of_each_kind(&of_directory.path) {
        let choice = choices.choose(&file, workspace, caller)?;
        if choice.primary.is_some() {
            return Ok(choice);
        }
    }
    Err(none_here(&of_directory))
}

/// The servers to start for a path: a file's own, or those for the files in a directory.
pub(super) fn to_start(
    choices: &Choices,
    path: &Path,
    workspace: Option<&Path>,
    server: Option<&str>,
    caller: &Environment,
) -> Result<Vec<Arc<Chosen>>, AskError> {
    let of_path = choices.choose(path, workspace, caller)?;
    let mut found: Vec<Arc<Choice>> = vec![Arc::clone(&of_path)];
    if of_path.path.is_dir() {
        for file in one_of_each_kind(&of_path.path) {
            found.push(choices.choose(&file, workspace, caller)?);
        }
        // A named server is started even if there is no file for it yet.
        if let Some(server) = server {
            let servers = choices.registry().workspace(&of_path.workspace)?;
            let definition = servers
                .definitions()
                .iter()
                .find(|definition| *definition.name == *server);
            let file = definition.and_then(|definition| {
                let language = definition.languages.first()?;
                let name = language.names.first().cloned();
                name.or_else(|| Some(format!("new{}", language.extensions.first()?)))
            });
            if let Some(file) = file {
                found.push(choices.choose_unwritten(&of_path.path.join(file), &of_path, caller)?);
            }
        }
    }
    let mut servers: BTreeMap<(Arc<str>, Arc<Path>), Arc<Chosen>> = BTreeMap::new();
    for chosen in found.iter().flat_map(|choice| choice.all()) {
        if server.is_none_or(|server| *chosen.name == *server) {
            let key = (Arc::clone(&chosen.name), Arc::clone(&chosen.root));
            servers.entry(key).or_insert_with(|| Arc::clone(chosen));
        }
    }
    if !servers.is_empty() {
        return Ok(servers.into_values().collect());
    }
    let with_missing = found.iter().find(|choice| {
        choice
            .missing
            .iter()
            .any(|missing| server.is_none_or(|server| *missing.name == *server))
    });
    Err(match (with_missing, server) {
        (Some(choice), _) => none_here(choice),
        (None, Some(server)) => AskError::OtherServer {
            server: server.to_owned(),
            path: of_path.path.to_path_buf(),
        },
        (None, None) => none_here(&of_path),
    })
}

/// One file of each kind (by extension) below a directory, the most common kind first.
fn one_of_each_kind(directory: &Path) -> Vec<PathBuf> {
    let mut kinds: BTreeMap<String, (usize, PathBuf)> = BTreeMap::new();
    for file in watch::files_below(directory, MOST_FILES) {
        let Some(name) = file.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        let kind = name
            .rsplit_once('.')
            .map_or(name, |(_, extension)| extension)
            .to_owned();
        kinds.entry(kind).or_insert_with(|| (0, file.clone())).0 += 1;
    }
    let mut kinds: Vec<(usize, PathBuf)> = kinds.into_values().collect();
    kinds.sort_by(|left, right| right.0.cmp(&left.0).then_with(|| left.1.cmp(&right.1)));
    kinds.into_iter().map(|(_, file)| file).collect()
}
