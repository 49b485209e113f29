//! `tidelock workspace rescued`: content that an apply or undo could not leave in the workspace.

use protocol::{Rescued, RescuedList, RescuedRestored, RestoreRescued};
use serde_json::{Value, json};

use crate::cli::{RescuedArguments, RescuedCommand, RestoreArguments};
use crate::client::{Client, path_segment};
use crate::commands::ids::RESCUED;
use crate::commands::job::age;
use crate::commands::lsp::printable::printable;
use crate::context::Context;
use crate::error::Failure;
use crate::output::{Cell, Palette, Report, Tone, table};
use crate::start::{Repeat, with_daemon};
use crate::units::{format_bytes, format_duration};

const ROUTE: &str = "/v1/rescued";

pub(super) fn run(
    arguments: &RescuedArguments,
    context: &Context,
    client: &Client,
) -> Result<Report, Failure> {
    match &arguments.command {
        None | Some(RescuedCommand::List) => list(context, client),
        Some(RescuedCommand::Restore(arguments)) => restore(arguments, context, client),
        Some(RescuedCommand::Drop(arguments)) => drop_it(&arguments.id, context, client),
    }
}

fn read(context: &Context, client: &Client) -> Result<(Value, RescuedList), Failure> {
    let ask = |client: &Client| client.get::<Value>(ROUTE);
    let (answer, _) = with_daemon(context, client, Repeat::Harmless, ask)?;
    let list = printable(&answer)?;
    Ok((answer, list))
}

fn list(context: &Context, client: &Client) -> Result<Report, Failure> {
    let (answer, list) = read(context, client)?;
    let text = match list.rescued.is_empty() {
        true => "Nothing had to be rescued.\n".to_owned(),
        false => rows(context.palette, &list.rescued),
    };
    let unreadable = list.unreadable.iter();
    let notes =
        unreadable.map(|path| format!("the description of {path} cannot be read; its content is in there"));
    Ok(Report::success(answer, text).with_notes(notes.collect()))
}

/// One block of lines for each. The texts must be printable.
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

fn restore(arguments: &RestoreArguments, context: &Context, client: &Client) -> Result<Report, Failure> {
    let rescued = find(&arguments.id, context, client)?;
    let path = format!("{ROUTE}/{}/restore", path_segment(&rescued.id));
    let request = RestoreRescued {
        to: arguments.to.clone(),
        swap: arguments.swap,
    };
    let ask = |client: &Client| client.post_and_wait::<Value>(&path, Some(&request));
    let (answer, _) = with_daemon(context, client, Repeat::Harmful, ask)?;
    let restored: RescuedRestored = printable(&answer)?;
    let mut text = format!("Restored to {} in {}.\n", restored.path, rescued.root);
    if let Some(replaced) = &restored.replaced {
        text.push_str(&format!("What was there is kept as {}.\n", replaced.id));
    }
    Ok(Report::success(answer, text))
}

fn drop_it(wanted: &str, context: &Context, client: &Client) -> Result<Report, Failure> {
    let rescued = find(wanted, context, client)?;
    let path = format!("{ROUTE}/{}", path_segment(&rescued.id));
    with_daemon(context, client, Repeat::Harmless, |client| client.delete(&path))?;
    let value = json!({ "id": rescued.id, "state": "dropped", "path": rescued.path });
    Ok(Report::success(
        value,
        format!("Dropped what was kept of {} in {}.\n", rescued.path, rescued.root),
    ))
}

fn find(wanted: &str, context: &Context, client: &Client) -> Result<Rescued, Failure> {
    let part = RESCUED.part(wanted)?;
    let (_, list) = read(context, client)?;
    let ids = list.rescued.iter().map(|rescued| rescued.id.clone());
    let id = part.only(ids.filter(|id| part.is_of(id)).collect())?;
    let mut all = list.rescued.into_iter();
    all.find(|rescued| rescued.id == id).ok_or_else(|| {
        Failure::new(
            crate::error::Exit::Refused,
            "rescued_not_found",
            "it was dropped meanwhile",
        )
    })
}
