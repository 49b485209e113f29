//! `tidelock workspace rescued`: content that an apply or undo could not leave in the workspace.

use protocol::{Rescued, RescuedList, RescuedRestored, RestoreRescued};
use serde_json::{Value, json};

use crate::cli::{RescuedArguments, RescuedCommand, RestoreArguments};
use crate::client::{Client, path_segment};
use crate::commands::ids::RESCUED;
use crate::commands::job::age;
use crate::error::Failure;
use crate::output::{Cell, Palette, Report, Tone, table};
use crate::printable::printable;
use crate::start::Repeat;
use crate::units::{format_bytes, format_duration};

const ROUTE: &str = "/v1/rescued";

pub(super) fn run(arguments: &RescuedArguments, client: &Client) -> Result<Report, Failure> {
    match &arguments.command {
        None | Some(RescuedCommand::List) => list(client),
        Some(RescuedCommand::Restore(arguments)) => restore(arguments, client),
        Some(RescuedCommand::Drop(arguments)) => drop_it(&arguments.id, client),
    }
}

fn read(client: &Client) -> Result<(Value, RescuedList), Failure> {
    let answer: Value = client.fetch(ROUTE)?;
    let list = printable(&answer)?;
    Ok((answer, list))
}

fn list(client: &Client) -> Result<Report, Failure> {
    let (answer, list) = read(client)?;
    let text = match list.rescued.is_empty() {
        true => "Nothing had to be rescued.\n".to_owned(),
        false => rows(client.palette(), &list.rescued),
    };
    let unreadable = list.unreadable.iter();
    let notes =
        unreadable.map(|path| format!("the description of {path} cannot be read; its content is in there"));
    Ok(Report::success(answer, text).with_notes(notes.collect()))
}

/// One block of lines per item. The texts must be printable.
pub(in crate::commands) fn rows(palette: Palette, rescued: &[Rescued]) -> String {
    let rows: Vec<Vec<Cell>> = rescued
        .iter()
        .flat_map(|rescued| {
            let kind = match rescued.bytes {
                Some(bytes) => format!("{}, {}", rescued.kind, format_bytes(bytes)),
                None => rescued.kind.clone(),
            };
            let age =
                age(&rescued.since).map_or_else(String::new, |age| format!("{} ago, ", format_duration(age)));
            let about = format!("{kind}, {age}{} in {}", rescued.what, rescued.root);
            [
                vec![Cell::new(&rescued.path), Cell::toned(&rescued.id, Tone::Quiet)],
                vec![
                    Cell::new(""),
                    Cell::toned(format!("{about}. {}", rescued.why), Tone::Quiet),
                ],
                vec![Cell::new(""), Cell::toned(&rescued.kept_at, Tone::Quiet)],
            ]
        })
        .collect();
    table(palette, &rows)
}

fn restore(arguments: &RestoreArguments, client: &Client) -> Result<Report, Failure> {
    let rescued = find(&arguments.id, client)?;
    let path = format!("{ROUTE}/{}/restore", path_segment(&rescued.id));
    let request = RestoreRescued {
        to: arguments.to.clone(),
        swap: arguments.swap,
    };
    let ask = |client: &Client| client.post_and_wait::<Value>(&path, Some(&request));
    let answer = client.ask(Repeat::Harmful, ask)?;
    let restored: RescuedRestored = printable(&answer)?;
    let mut text = format!("Restored to {} in {}.\n", restored.path, rescued.root);
    if let Some(replaced) = &restored.replaced {
        text.push_str(&format!("What was there is kept as {}.\n", replaced.id));
    }
    Ok(Report::success(answer, text))
}

fn drop_it(wanted: &str, client: &Client) -> Result<Report, Failure> {
    let rescued = find(wanted, client)?;
    let path = format!("{ROUTE}/{}", path_segment(&rescued.id));
    client.ask(Repeat::Harmless, |client| client.delete(&path))?;
    let value = json!({ "id": rescued.id, "state": "dropped", "path": rescued.path });
    Ok(Report::success(
        value,
        format!("Dropped what was kept of {} in {}.\n", rescued.path, rescued.root),
    ))
}

fn find(wanted: &str, client: &Client) -> Result<Rescued, Failure> {
    RESCUED.check_length(wanted)?;
    let (_, list) = read(client)?;
    let ids = list.rescued.iter().map(|rescued| rescued.id.clone());
    let id = RESCUED.pick(wanted, ids.collect())?;
    let mut all = list.rescued.into_iter();
    all.find(|rescued| rescued.id == id).ok_or_else(|| {
        Failure::new(
            crate::error::Exit::Refused,
            "rescued_not_found",
            "it was dropped meanwhile",
        )
    })
}
