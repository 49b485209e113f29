//! The settings page: which are in effect, and where each comes from. It shows the values from the daemon's start.

use std::sync::Arc;

use axum::extract::State;
use maud::{Markup, html};
use protocol::{Setting, SettingSource};
use serde_json::Value;

use crate::app::App;
use crate::page::login::Visitor;
use crate::page::parts::layout::{NavItem, still_page};
use crate::page::parts::list::Column::Text;
use crate::page::parts::list::table_card;
use crate::page::parts::text::exact;

pub(crate) async fn show(State(app): State<Arc<App>>, visitor: Visitor) -> Markup {
    let settings = &app.settings;
    let content = html! {
        div class="heading" {
            div {
                h1 { "Configuration" }
                p {
                    "All settings of this daemon, as of its start. "
                    @if let Some(file) = &settings.file { "To change one, edit " code { (exact(file)) } " and run " }
                    @else { "To apply a change, run " }
                    code { "tidelock down && tidelock up" } "."
                }
            }
        }
        (table_card(&[Text("Setting"), Text("Value"), Text("From")], settings.settings.iter().map(row)))
    };
    still_page(&app, &visitor, NavItem::Overview, "Configuration", &content)
}

fn row(setting: &Setting) -> Markup {
    html! {
        tr {
            th scope="row" { code { (setting.key) } small { (setting.meaning.replace('`', "")) } }
            td class="act" data-label="Value" {
                @if setting.value == Value::Null { "none" } @else { code { (exact(&setting.value.to_string())) } }
            }
            td data-label="From" { (source(&setting.source)) }
        }
    }
}

fn source(source: &SettingSource) -> Markup {
    html! {
        @match source {
            SettingSource::Default => { "default" },
            SettingSource::File { line } => { span class="badge" { "line " (line) } },
            SettingSource::Environment { variable } => { code { (variable) } },
            SettingSource::CommandLine { option } => { code { (option) } },
        }
    }
}
