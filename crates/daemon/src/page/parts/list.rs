//! What the lists have in common: a filter in the URL, links to older entries, a table, and a placeholder for an empty
//! list.
//!
//! Every list takes the same filter, so that URLs look the same everywhere and can be bookmarked.

use std::str::FromStr;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Query};
use http::request::Parts;
use maud::{Markup, html};
use protocol::Machine;
use serde::Deserialize;

use super::ansi::one_line;
use super::error::PageError;
use super::text::percent_encode;
use crate::app::App;

/// How many sessions, plans or jobs a list shows per page: more than fit on a screen, and few enough to render at once.
/// Older ones are behind a link.
pub(crate) const SHOWN: u32 = 30;

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Filter {
    /// What is listed, for people and as the path of the list.
    #[serde(skip)]
    pub(crate) listed: String,
    /// Only entries in this state. Older URLs of the page call it `show`.
    #[serde(alias = "show")]
    pub(crate) state: Option<String>,
    /// Only entries of this kind.
    pub(crate) kind: Option<String>,
    /// Only entries of this workspace.
    pub(crate) workspace: Option<String>,
    /// Only entries older than this one.
    pub(crate) before: Option<String>,
}

impl FromRequestParts<Arc<App>> for Filter {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, PageError> {
        let listed = parts.uri.path().rsplit('/').next().unwrap_or_default().to_owned();
        match Query::<Self>::from_request_parts(parts, app).await {
            Ok(Query(filter)) => Ok(Self { listed, ..filter }),
            Err(_) => Err(PageError::bad_address(&listed)),
        }
    }
}

impl Filter {
    pub(crate) fn all(listed: &str) -> Self {
        Self {
            listed: listed.to_owned(),
            ..Self::default()
        }
    }

    pub(crate) fn path(&self) -> String {
        let parts = [
            ("state", &self.state),
            ("kind", &self.kind),
            ("workspace", &self.workspace),
            ("before", &self.before),
        ];
        let parts = parts.map(|(name, value)| (name, value.as_deref()));
        format!("/{}{}", self.listed, query(&parts))
    }

    pub(crate) fn is_everything(&self) -> bool {
        *self == Self::all(&self.listed)
    }

    pub(crate) fn id<I: FromStr>(&self, text: Option<&str>) -> Result<Option<I>, PageError> {
        let id = text.map(|text| text.parse().map_err(|_| PageError::bad_address(&self.listed)));
        id.transpose()
    }

    /// The choice named in the URL, or the first one by default.
    pub(crate) fn chosen<T: Clone>(&self, word: Option<&str>, choices: &[Choice<T>]) -> Result<T, PageError> {
        let word = word.unwrap_or_default();
        let chosen = choices.iter().find(|choice| choice.is_named(word));
        chosen
            .map(|choice| choice.value.clone())
            .ok_or_else(|| PageError::bad_address(&self.listed))
    }

    pub(crate) fn state_links<T>(&self, label: &str, choices: &[Choice<T>], more: &Markup) -> Markup {
        self.links(label, choices, self.state.as_deref(), more, |state| Self {
            state,
            before: None,
            ..self.clone()
        })
    }

    pub(crate) fn kind_links<T>(&self, label: &str, choices: &[Choice<T>]) -> Markup {
        self.links(label, choices, self.kind.as_deref(), &html! {}, |kind| Self {
            kind,
            before: None,
            ..self.clone()
        })
    }

    fn links<T>(
        &self,
        label: &str,
        choices: &[Choice<T>],
        chosen: Option<&str>,
        more: &Markup,
        narrowed: impl Fn(Option<String>) -> Self,
    ) -> Markup {
        let chosen = chosen.unwrap_or_default();
        html! {
            nav class="filter" aria-label=(label) data-part="filter" {
                @for choice in choices {
                    @let word = choice.word.split(' ').next().filter(|word| !word.is_empty());
                    a href=(narrowed(word.map(str::to_owned)).path()) data-key={ "filter " (choice.label) }
                        aria-current=[choice.is_named(chosen).then_some("true")] { (choice.label) }
                }
                (more)
            }
        }
    }

    /// Links to the newest and to older entries; empty if there is only one page. `next` is where older ones begin.
    pub(crate) fn pages(&self, next: Option<&String>) -> Markup {
        let at = |before: Option<&String>| {
            let before = before.cloned();
            Self {
                before,
                ..self.clone()
            }
            .path()
        };
        html! {
            @if self.before.is_some() || next.is_some() {
                p class="pages" {
                    @if self.before.is_some() { a href=(at(None)) data-key="newest" { "Newest" } }
                    @if next.is_some() { a id={ (self.listed) "-older" } href=(at(next)) data-key="older" { "Older" } }
                }
            }
        }
    }
}

/// One of the filters of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice<T> {
    /// Its name in a URL: empty for the default. After a space, a name from older URLs.
    pub(crate) word: &'static str,
    pub(crate) label: &'static str,
    pub(crate) value: T,
}

impl<T> Choice<T> {
    pub(crate) const fn new(word: &'static str, label: &'static str, value: T) -> Self {
        Self { word, label, value }
    }

    fn is_named(&self, word: &str) -> bool {
        self.word.split(' ').any(|known| known == word)
    }
}

/// A URL query built from the parts that are present; empty if there are none.
pub(crate) fn query(parts: &[(&str, Option<&str>)]) -> String {
    let mut text = String::new();
    for (name, value) in parts {
        if let Some(value) = value {
            text.push(if text.is_empty() { '?' } else { '&' });
            text.push_str(name);
            text.push('=');
            text.push_str(&percent_encode(value));
        }
    }
    text
}

/// The head of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Column {
    Text(&'static str),
    Count(&'static str),
    /// Buttons. Only screen readers announce this head.
    Actions,
}

pub(crate) fn table_card(columns: &[Column], rows: impl IntoIterator<Item = Markup>) -> Markup {
    html! { div class="card table" { (table(columns, rows)) } }
}

pub(crate) fn table(columns: &[Column], rows: impl IntoIterator<Item = Markup>) -> Markup {
    html! {
        table {
            thead {
                tr {
                    @for column in columns {
                        @match column {
                            Column::Text(title) => th scope="col" { (title) },
                            Column::Count(title) => th scope="col" class="count" { (title) },
                            Column::Actions => th scope="col" { span class="skip" { "Actions" } },
                        }
                    }
                }
            }
            tbody { @for row in rows { (row) } }
        }
    }
}

/// A cell with a number. On narrow screens, which have no columns, its name is shown beside it.
pub(crate) fn count(name: &str, value: impl maud::Render) -> Markup {
    html! { td class="count" data-label=(name) { (value) } }
}

/// The top of a page: its name and purpose.
pub(crate) fn heading(title: &str, purpose: &str) -> Markup {
    html! { div class="heading" data-part="heading" { div { h1 { (title) } p { (purpose) } } } }
}

/// The placeholder for an empty list: what it lists, and the command that adds something.
pub(crate) fn empty(title: &str, text: &str, command: &str) -> Markup {
    html! { div class="card empty" { h2 { (title) } p { (text) } p { code { (command) } } } }
}

pub(crate) fn no_match(filter: &Filter, everything: &str) -> Markup {
    html! {
        div class="card empty" {
            h2 { "No matching " (filter.listed) }
            p { a href={ "/" (filter.listed) } data-key="all" { (everything) } }
        }
    }
}

/// The name of the machine that something is on, unless it is this one.
pub(crate) fn elsewhere(machine: Option<&Machine>) -> Markup {
    let other = machine.filter(|machine| !machine.here);
    html! { @if let Some(other) = other { small class="machine" { "on " (one_line(&other.name)) } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_has_the_parts_that_are_there() {
        for (parts, expected) in [
            (&[][..], ""),
            (&[("state", None), ("before", None)], ""),
            (&[("state", None), ("before", Some("a b"))], "?before=a%20b"),
            (
                &[("state", Some("over")), ("before", Some("x"))],
                "?state=over&before=x",
            ),
        ] {
            assert_eq!(query(parts), expected);
        }
    }

    #[test]
    fn a_filter_fits_into_the_address() {
        for (state, before, expected) in [
            (None, None, ""),
            (Some("queued"), None, "?state=queued"),
            (None, Some("job_1"), "?before=job_1"),
            (
                Some("failed"),
                Some("a&b=ü"),
                "?state=failed&before=a%26b%3D%C3%BC",
            ),
        ] {
            let filter = Filter {
                state: state.map(str::to_owned),
                before: before.map(str::to_owned),
                ..Filter::all("jobs")
            };
            assert_eq!(filter.path(), format!("/jobs{expected}"));
        }
    }

    #[test]
    fn a_choice_is_found_by_its_word_and_by_its_older_one() {
        let choices = [
            Choice::new("", "Open", 0),
            Choice::new("finished over", "Finished", 1),
        ];
        let filter = Filter::all("plans");
        for (word, expected) in [
            (None, Some(0)),
            (Some("finished"), Some(1)),
            (Some("over"), Some(1)),
            (Some("lazy"), None),
        ] {
            assert_eq!(filter.chosen(word, &choices).ok(), expected, "{word:?}");
        }
    }

    #[test]
    fn there_are_ways_only_to_where_something_is() {
        let first = Filter::all("jobs");
        assert_eq!(first.pages(None).into_string(), "");
        let later = Filter {
            before: Some("9".to_owned()),
            ..first
        };
        assert_eq!(
            later.pages(Some(&"1".to_owned())).into_string(),
            "<p class=\"pages\"><a href=\"/jobs\" data-key=\"newest\">Newest</a>\
             <a id=\"jobs-older\" href=\"/jobs?before=1\" data-key=\"older\">Older</a></p>"
        );
    }
}
