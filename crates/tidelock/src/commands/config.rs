//! `tidelock config`: every setting with its value and its source. It works without a daemon.

use clap::Parser;
use protocol::{Setting, SettingList, SettingSource};
use serde_json::{Value, json};

use super::serve;
use crate::cli::{Cli, Command, SettingsArguments, SettingsCommand};
use crate::client::Client;
use crate::context::Context;
use crate::error::{Exit, Failure, chain};
use crate::output::{Cell, Palette, Report, Tone, list as list_of};
use crate::printable::{cut, one_line};
use crate::units::format_count;

const VALUE_CHARACTERS: usize = 60;

pub(super) fn run(arguments: &SettingsArguments, client: &Client) -> Result<Report, Failure> {
    match arguments.command {
        None => show(client),
        Some(SettingsCommand::Path) => path(&client.context),
        Some(SettingsCommand::Check) => check(&client.context),
    }
}

pub(super) fn settings(context: &Context) -> Result<SettingList, Failure> {
    // The parser reads the environment variables that stand for options, just as for `serve`.
    let cli = Cli::try_parse_from(["tidelock", "serve"]).map_err(|error| Failure::usage(&error))?;
    let Command::Serve(arguments) = cli.command else {
        return Err(Failure::new(Exit::Failed, "usage", "`serve` is not understood"));
    };
    let options = serve::options(arguments, context);
    let file = options.configuration.as_deref();
    let written = daemon::settings_of(file, &options.languages.environment).map_err(|error| {
        Failure::new(Exit::Failed, "configuration_unusable", chain(&error))
            .advise("fix that line, then run `tidelock config check` to check the file")
    })?;
    let mut settings = options.settings;
    settings.extend(written);
    let file = file.map(|path| path.display().to_string());
    Ok(SettingList { file, settings })
}

fn path(context: &Context) -> Result<Report, Failure> {
    let path = context.configuration().ok_or_else(|| {
        Failure::new(
            Exit::Failed,
            "path_unusable",
            "there is no directory for the configuration file",
        )
        .advise("set HOME, XDG_CONFIG_HOME or TIDELOCK_HOME to an absolute path")
    })?;
    let exists = path.exists();
    let path = path.display().to_string();
    let text = format!("{path}\n");
    Ok(Report::success(json!({ "path": path, "exists": exists }), text))
}

fn check(context: &Context) -> Result<Report, Failure> {
    let list = settings(context)?;
    let from_file = |setting: &&Setting| matches!(setting.source, SettingSource::File { .. });
    let count = list.settings.iter().filter(from_file).count();
    let file = list.file.unwrap_or_default();
    let text = match std::path::Path::new(&file).exists() {
        true => format!(
            "{file} is valid and sets {}.\n",
            format_count(count as u64, "value")
        ),
        false => format!("{file} doesn't exist, which is fine: the defaults apply.\n"),
    };
    Ok(Report::success(
        json!({ "state": "ok", "path": file, "settings": count }),
        text,
    ))
}

fn show(client: &Client) -> Result<Report, Failure> {
    let list = settings(&client.context)?;
    let running = running(&list, client);
    let notes = running.iter().map(|setting| {
        let value = cut(&one_line(&words(&setting.value)), VALUE_CHARACTERS);
        format!(
            "the running daemon has {} = {value}; restart it to use these settings: `tidelock down && tidelock up`",
            setting.key
        )
    });
    let notes = notes.collect();
    let text = rows(client.palette(), &list);
    let value = json!({ "file": list.file, "settings": list.settings, "running_differs": running });
    Ok(Report::success(value, text).with_notes(notes))
}

/// The settings for which a running daemon has other values. Empty without a daemon, or with an older one.
fn running(list: &SettingList, client: &Client) -> Vec<Setting> {
    let Ok(running) = client.get::<SettingList>("/v1/config") else {
        return Vec::new();
    };
    let differs = |setting: &Setting| {
        let here = list.settings.iter().find(|here| here.key == setting.key);
        here.is_none_or(|here| here.value != setting.value)
    };
    running.settings.into_iter().filter(differs).collect()
}

fn rows(palette: Palette, list: &SettingList) -> String {
    let mut rows = Vec::new();
    for setting in &list.settings {
        let value = cut(&one_line(&words(&setting.value)), VALUE_CHARACTERS);
        let (from, tone) = match &setting.source {
            SettingSource::Default => ("default".to_owned(), Tone::Quiet),
            SettingSource::File { line } => (format!("config.toml line {line}"), Tone::Good),
            SettingSource::Environment { variable } => (variable.clone(), Tone::Good),
            SettingSource::CommandLine { option } => (option.clone(), Tone::Good),
        };
        rows.push(vec![
            Cell::new(&setting.key),
            Cell::new(value),
            Cell::toned(from, tone),
        ]);
    }
    let mut text = list_of(palette, &["SETTING", "VALUE", "FROM"], rows, "");
    if let Some(file) = &list.file {
        text.push_str(&format!("\nThe file is {file}.\n"));
    }
    text
}

fn words(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        value => value.to_string(),
    }
}
