//! The shell around every page: head, bar, navigation, foot.

use std::time::Duration;

use maud::{DOCTYPE, Markup, html};
use protocol::Phase;

use super::assets;
use super::sign_in::Visitor;
use crate::app::App;

/// The places that the navigation leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
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

impl Place {
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

    fn title(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Sessions => "Sessions",
            Self::Plans => "Plans",
            Self::Jobs => "Jobs",
            Self::Context => "Context",
            Self::Servers => "Servers",
            Self::Processes => "Processes",
            Self::Breakers => "Breakers",
            Self::Events => "Events",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Overview => "/",
            Self::Sessions => "/sessions",
            Self::Plans => "/plans",
            Self::Jobs => "/jobs",
            Self::Context => "/context",
            Self::Servers => "/servers",
            Self::Processes => "/processes",
            Self::Breakers => "/breakers",
            Self::Events => "/events",
        }
    }

    fn live_path(self) -> &'static str {
        match self {
            Self::Overview => "/live/overview",
            Self::Sessions => "/live/sessions",
            Self::Plans => "/live/plans",
            Self::Jobs => "/live/jobs",
            Self::Context => "/live/context",
            Self::Servers => "/live/servers",
            Self::Processes => "/live/processes",
            Self::Breakers => "/live/breakers",
            Self::Events => "/live/events",
        }
    }

    /// The key that leads here, after a `g`.
    fn key(self) -> char {
        match self {
            Self::Overview => 'o',
            Self::Sessions => 's',
            Self::Plans => 'p',
            Self::Jobs => 'j',
            Self::Context => 'c',
            Self::Servers => 'l',
            Self::Processes => 'x',
            Self::Breakers => 'b',
            Self::Events => 'e',
        }
    }

    /// The stream that tells the script to look again at once. The others are looked at from time to time.
    fn events(self) -> Option<&'static str> {
        match self {
            Self::Sessions => Some("/v1/sessions/events"),
            Self::Plans => Some("/v1/plans/events"),
            Self::Jobs => Some("/v1/jobs/events"),
            Self::Servers => Some("/v1/lsp/events"),
            Self::Overview | Self::Events => Some("/v1/activity/events"),
            Self::Context | Self::Processes | Self::Breakers => None,
        }
    }
}

/// A page for somebody who is signed in: `live` is the part that is kept current.
pub(super) fn page(app: &App, visitor: &Visitor, place: Place, live: &Markup) -> Markup {
    page_below(app, visitor, place, (place.title(), place.live_path()), live)
}

/// A page below a place, with a title and a live part of its own.
pub(super) fn page_below(
    app: &App,
    visitor: &Visitor,
    place: Place,
    (title, live_path): (&str, &str),
    live: &Markup,
) -> Markup {
    let live = html! { div data-live=(live_path) data-events=[place.events()] { (live) } };
    with_notices(app, visitor, place, title, &live)
}

/// A page with something above its live part that shows what was there when it was loaded.
pub(super) fn page_above_live(
    app: &App,
    visitor: &Visitor,
    place: Place,
    (above, live): (&Markup, &Markup),
) -> Markup {
    let content = html! {
        (above)
        div data-live=(place.live_path()) { (live) }
    };
    with_notices(app, visitor, place, place.title(), &content)
}

/// A page below a place, with something below its live part that follows a stream of its own. That one tells the
/// script when to look again, so that the page holds one connection and not two.
pub(super) fn page_with_stream(
    app: &App,
    visitor: &Visitor,
    place: Place,
    (title, live_path): (&str, &str),
    (live, below): (&Markup, &Markup),
) -> Markup {
    let content = html! {
        div data-live=(live_path) { (live) }
        (below)
    };
    with_notices(app, visitor, place, title, &content)
}

/// The same, side by side where there is room: what is live stands beside what follows a stream of its own.
pub(super) fn page_beside_stream(
    app: &App,
    visitor: &Visitor,
    place: Place,
    (title, live_path): (&str, &str),
    (live, main): (&Markup, &Markup),
) -> Markup {
    let content = html! {
        div class="beside" {
            div class="beside-live" data-live=(live_path) { (live) }
            div class="beside-main" { (main) }
        }
    };
    with_notices(app, visitor, place, title, &content)
}

fn with_notices(app: &App, visitor: &Visitor, place: Place, title: &str, content: &Markup) -> Markup {
    let notice = app.sessions.take_notice(visitor.session.id);
    let content = html! {
        @if let Some(notice) = notice { (notice.render()) }
        (content)
    };
    signed_in(app, visitor, (place, title), &content)
}

/// A page for somebody who is signed in that shows what was there when it was loaded. It belongs to a place.
pub(super) fn still_page(
    app: &App,
    visitor: &Visitor,
    place: Place,
    title: &str,
    content: &Markup,
) -> Markup {
    signed_in(app, visitor, (place, title), content)
}

fn signed_in(app: &App, visitor: &Visitor, (place, title): (Place, &str), content: &Markup) -> Markup {
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

fn bar(app: &App, place: Place, waiting: &str) -> Markup {
    let phase = (&*app.life.phase()).into();
    html! {
        nav aria-label="Main" {
            @for each in Place::ALL {
                a href=(each.path()) aria-current=[(each == place).then_some("page")] {
                    (each.title())
                    @if each == Place::Overview {
                        span class="waiting" data-needs hidden[waiting.is_empty()] aria-label={ (waiting) " need you" } { (waiting) }
                    }
                }
            }
        }
        span class=(phase_class(phase)) data-phase-badge { (phase_label(phase)) }
    }
}

/// What the keys do. It is shown by one of them, and by its link in the foot.
fn shortcuts() -> Markup {
    html! {
        dialog id="keys" aria-labelledby="keys-title" {
            form method="dialog" {
                div class="card-heading" {
                    h2 id="keys-title" { "Keys" }
                    button data-key="close keys" { "Close" }
                }
                dl class="facts" {
                    @for place in Place::ALL {
                        dt { kbd { "g" } " " kbd { (place.key()) } }
                        dd { a href=(place.path()) data-go=(place.key()) { (place.title()) } }
                    }
                    dt { kbd { "j" } " " kbd { "k" } } dd { "select the next or previous item" }
                    dt { kbd { "Enter" } } dd { "open it" }
                    dt { kbd { "?" } } dd { "show the keys" }
                }
            }
        }
    }
}

/// A page for anybody: no navigation, nothing live.
pub(super) fn plain_page(title: &str, content: &Markup) -> Markup {
    document(title, &html! {}, content)
}

/// What a live part says about itself to the script: the phase and the number of needs for the bar, and when to look again.
pub(super) fn live_part(app: &App, visitor: &Visitor, refresh: Duration, content: &Markup) -> Markup {
    let phase = (&*app.life.phase()).into();
    html! {
        div data-phase data-phase-label=(phase_label(phase)) data-phase-class=(phase_class(phase))
            data-waiting=(visitor.needs.count()) data-refresh-ms=(refresh.as_millis()) {
            (content)
        }
    }
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

fn phase_label(phase: Phase) -> &'static str {
    match phase {
        Phase::Starting => "Starting",
        Phase::Ready => "Ready",
        Phase::Draining => "Shutting down",
        Phase::Stopped => "Stopped",
    }
}

fn phase_class(phase: Phase) -> &'static str {
    match phase {
        Phase::Ready => "badge good",
        Phase::Starting | Phase::Draining => "badge warn",
        Phase::Stopped => "badge bad",
    }
}

/// A duration for people: its two largest units.
pub(super) fn human_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_their_two_largest_units() {
        for (seconds, expected) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min 0 s"),
            (3599, "59 min 59 s"),
            (3600, "1 h 0 min"),
            (86_399, "23 h 59 min"),
            (90_000, "1 d 1 h"),
        ] {
            assert_eq!(human_duration(Duration::from_secs(seconds)), expected);
        }
    }
}
