//! The shell around every page: head, bar, navigation, foot, and the live part.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{FromRequestParts, State};
use axum::routing::get;
use http::Uri;
use maud::{DOCTYPE, Markup, html};
use protocol::Phase;

use super::assets;
use super::error::PageError;
use crate::app::App;
use crate::page::login::Visitor;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NavItem {
    Overview,
    Sessions,
    Plans,
    Jobs,
    Context,
    Servers,
    Processes,
    Breakers,
    Events,
}

struct NavEntry {
    title: &'static str,
    path: &'static str,
    /// The key that goes there, after a `g`.
    key: char,
    /// The stream that tells the script to refresh at once. Without one, it refreshes periodically.
    events: Option<&'static str>,
}

impl NavItem {
    const ALL: [Self; 9] = [
        Self::Overview,
        Self::Sessions,
        Self::Plans,
        Self::Jobs,
        Self::Context,
        Self::Servers,
        Self::Processes,
        Self::Breakers,
        Self::Events,
    ];

    fn entry(self) -> NavEntry {
        let (title, path, key, events) = match self {
            Self::Overview => ("Overview", "/", 'o', Some("/v1/activity/events")),
            Self::Sessions => ("Sessions", "/sessions", 's', Some("/v1/sessions/events")),
            Self::Plans => ("Plans", "/plans", 'p', Some("/v1/plans/events")),
            Self::Jobs => ("Jobs", "/jobs", 'j', Some("/v1/jobs/events")),
            Self::Context => ("Context", "/context", 'c', None),
            Self::Servers => ("Servers", "/servers", 'l', Some("/v1/lsp/events")),
            Self::Processes => ("Processes", "/processes", 'x', None),
            Self::Breakers => ("Breakers", "/breakers", 'b', None),
            Self::Events => ("Events", "/events", 'e', Some("/v1/activity/events")),
        };
        NavEntry {
            title,
            path,
            key,
            events,
        }
    }
}

/// The live part of a page, in its current state.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) title: String,
    /// When the script fetches it again, if no stream tells it to do so earlier.
    pub(crate) refresh: Duration,
    pub(crate) content: Markup,
}

impl Live {
    pub(crate) fn new(title: impl Into<String>, refresh: Refresh, content: Markup) -> Self {
        Self {
            title: title.into(),
            refresh: Duration::from_secs(refresh as u64),
            content,
        }
    }

    /// Renders it with attributes for the script: the phase and the number of needs for the bar, and when to refresh.
    pub(crate) fn render(&self, app: &App, visitor: &Visitor) -> Markup {
        let (class, label) = phase_badge(app);
        html! {
            div data-phase data-phase-label=(label) data-phase-class=(class)
                data-waiting=(visitor.needs.count()) data-refresh-ms=(self.refresh.as_millis()) {
                (self.content)
            }
        }
    }
}

/// How often the script fetches a live part, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refresh {
    /// Something is moving or counting, and people are watching it.
    Moving = 1,
    Reading = 2,
    /// Memory, age and counters, which no stream reports.
    Counters = 3,
    /// A stream reports changes; this is for ages.
    Still = 5,
    /// It no longer changes, but it may be removed.
    Ended = 30,
}

impl Refresh {
    pub(crate) fn while_moving(is_moving: bool) -> Self {
        if is_moving { Self::Moving } else { Self::Still }
    }
}

/// The routes of a page that is live as a whole: the page itself, and its live part below `/live`. `read` makes that part.
pub(crate) fn live_page<A, F, R>(path: &'static str, place: NavItem, read: F) -> Router<Arc<App>>
where
    A: FromRequestParts<Arc<App>> + Send + 'static,
    F: Fn(Arc<App>, Visitor, A) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Result<Live, PageError>> + Send,
{
    let read_part = read.clone();
    let whole = move |State(app): State<Arc<App>>, visitor: Visitor, address: A, uri: Uri| async move {
        let live = read(Arc::clone(&app), visitor.clone(), address).await?;
        let live_path = live_path(uri.path_and_query().map_or("/", |address| address.as_str()));
        Ok::<_, PageError>(page(&app, &visitor, place, &live_path, &live))
    };
    let part = move |State(app): State<Arc<App>>, visitor: Visitor, address: A, _: Uri| async move {
        let live = read_part(Arc::clone(&app), visitor.clone(), address).await?;
        Ok::<_, PageError>(live.render(&app, &visitor))
    };
    Router::new()
        .route(path, get(whole))
        .route(&live_path(path), get(part))
}

pub(crate) fn live_path(address: &str) -> String {
    match address.split('?').next() {
        Some("/") => "/live/overview".to_owned(),
        _ => format!("/live{address}"),
    }
}

pub(crate) fn page(app: &App, visitor: &Visitor, place: NavItem, live_path: &str, live: &Live) -> Markup {
    let content = html! {
        div data-live=(live_path) data-events=[place.entry().events] { (live.render(app, visitor)) }
    };
    page_around(app, visitor, place, &live.title, &content)
}

/// A page with `content`, below a notice if one was left.
pub(crate) fn page_around(
    app: &App,
    visitor: &Visitor,
    place: NavItem,
    title: &str,
    content: &Markup,
) -> Markup {
    let notice = app.logins.take_notice(visitor.login.id);
    let content = html! {
        @if let Some(notice) = notice { (notice.render()) }
        (content)
    };
    still_page(app, visitor, place, title, &content)
}

pub(crate) fn still_page(
    app: &App,
    visitor: &Visitor,
    place: NavItem,
    title: &str,
    content: &Markup,
) -> Markup {
    let waiting = visitor.needs.count();
    let title = match waiting.as_str() {
        "" => title.to_owned(),
        count => format!("({count}) {title}"),
    };
    let content = html! {
        div class="notice warn" data-trouble hidden role="status" { p {} }
        (content)
        (shortcuts())
    };
    document(&title, &bar(app, place, &waiting), &content)
}

fn bar(app: &App, place: NavItem, waiting: &str) -> Markup {
    let (class, label) = phase_badge(app);
    html! {
        nav aria-label="Main" {
            @for each in NavItem::ALL {
                a href=(each.entry().path) aria-current=[(each == place).then_some("page")] {
                    (each.entry().title)
                    @if each == NavItem::Overview {
                        span class="waiting" data-needs hidden[waiting.is_empty()] aria-label={ (waiting) " need you" } { (waiting) }
                    }
                }
            }
        }
        span class=(class) data-phase-badge { (label) }
    }
}

/// The keyboard shortcuts. One of them shows this, and so does a link in the foot.
fn shortcuts() -> Markup {
    html! {
        dialog id="keys" aria-labelledby="keys-title" {
            form method="dialog" {
                div class="card-heading" {
                    h2 id="keys-title" { "Keys" }
                    button data-key="close keys" { "Close" }
                }
                dl class="facts" {
                    @for NavEntry { title, path, key, .. } in NavItem::ALL.map(NavItem::entry) {
                        dt { kbd { "g" } " " kbd { (key) } }
                        dd { a href=(path) data-go=(key) { (title) } }
                    }
                    dt { kbd { "j" } " " kbd { "k" } } dd { "select the next or previous item" }
                    dt { kbd { "Enter" } } dd { "open it" }
                    dt { kbd { "?" } } dd { "show the keys" }
                }
            }
        }
    }
}

/// A page for visitors who aren't signed in: no navigation, nothing live.
pub(crate) fn plain_page(title: &str, content: &Markup) -> Markup {
    document(title, &html! {}, content)
}

fn document(title: &str, bar: &Markup, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " · Tidelock" }
                link rel="icon" type="image/svg+xml" href=(assets::ICON.url());
                link rel="stylesheet" href=(assets::STYLE.url());
                script src=(assets::SCRIPT.url()) defer {}
                script src=(assets::KEYS_SCRIPT.url()) defer {}
            }
            body {
                a class="skip" href="#content" { "Skip to content" }
                header class="bar" {
                    div class="bar-inner" {
                        a class="brand" href="/" {
                            img src=(assets::ICON.url()) alt="" width="28" height="28";
                            "Tidelock"
                        }
                        (bar)
                    }
                }
                main id="content" { (content) }
                footer class="foot" {
                    div class="foot-inner" {
                        span { "Tidelock " (env!("CARGO_PKG_VERSION")) }
                        a href="/recovery" { "Recovery" }
                        a href="/configuration" { "Configuration" }
                        a href="/docs/errors" { "Error codes" }
                        a href="/openapi.json" { "API description" }
                        button type="button" class="plain-button" data-show-keys hidden { "Keys: ?" }
                    }
                }
            }
        }
    }
}

fn phase_badge(app: &App) -> (&'static str, &'static str) {
    match Phase::from(&*app.life.phase()) {
        Phase::Starting => ("badge warn", "Starting"),
        Phase::Ready => ("badge good", "Ready"),
        Phase::Draining => ("badge warn", "Shutting down"),
        Phase::Stopped => ("badge bad", "Stopped"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_its_live_part() {
        for (address, expected) in [
            ("/", "/live/overview"),
            ("/?from=mail", "/live/overview"),
            ("/jobs?state=failed", "/live/jobs?state=failed"),
        ] {
            assert_eq!(live_path(address), expected);
        }
    }
}
