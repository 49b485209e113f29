//! The page of settings: what is in force, and where it comes from. It is as it was when the daemon started.

use std::sync::Arc;

use axum::extract::State;
use maud::{Markup, html};
use protocol::{Setting, SettingSource};
use serde_json::Value;

use super::layout::{Place, still_page};
use super::plan_text::exact;
use super::sign_in::Visitor;
use crate::app::App;

pub(super) async fn show(State(app): State<Arc<App>>, visitor: Visitor) -> Markup {
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
        div class="card table" {
            table {
                thead {
                    tr {
                        th scope="col" { "Setting" }
                        th scope="col" { "Value" }
                        th scope="col" { "From" }
                    }
                }
                tbody { @for setting in &settings.settings { (row(setting)) } }
            }
        }
    };
    still_page(&app, &visitor, Place::Overview, "Configuration", &content)
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
