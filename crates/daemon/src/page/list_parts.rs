//! What the lists of sessions, plans, jobs and events have in common: a choice of what is shown, and the way to what is
//! older. Both stand in the address, so that they can be kept.

use std::str::FromStr;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Query};
use http::request::Parts;
use maud::{Markup, html};
use protocol::{ErrorCode, Machine};
use serde::de::DeserializeOwned;

use super::ansi::one_line;
use super::error::PageError;
use super::history::percent_encode;
use crate::app::App;

/// How many sessions, plans or jobs a page of a list shows: more than a screen has, and few enough to be drawn at once. Older
/// ones are behind a link.
pub(super) const SHOWN: u32 = 30;

/// A part of a list, as an address names it.
pub(super) trait ListFilter: DeserializeOwned {
    /// What is listed, for people and as the path of the list.
    const LISTED: &'static str;
}

/// The part of a list that an address asks for.
#[derive(Debug)]
pub(super) struct Asked<F>(pub(super) F);

impl<F: ListFilter> FromRequestParts<Arc<App>> for Asked<F> {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, PageError> {
        match Query::<F>::from_request_parts(parts, app).await {
            Ok(Query(filter)) => Ok(Self(filter)),
            Err(_) => Err(bad_address::<F>()),
        }
    }
}

/// The name of the machine that something is on, if that is not this one.
pub(super) fn elsewhere(machine: Option<&Machine>) -> Markup {
    let other = machine.filter(|machine| !machine.here);
    html! { @if let Some(other) = other { small class="machine" { "on " (one_line(&other.name)) } } }
}

/// An id that stands in the address of a list.
pub(super) fn id<F: ListFilter, I: FromStr>(text: Option<&str>) -> Result<Option<I>, PageError> {
    let id = text.map(|text| text.parse().map_err(|_| bad_address::<F>()));
    id.transpose()
}

fn bad_address<F: ListFilter>() -> PageError {
    let detail = html! {
        p { "The address doesn't say which " (F::LISTED) " to show." }
        p { a href={ "/" (F::LISTED) } { "All " (F::LISTED) } }
    };
    PageError::new(ErrorCode::InvalidQuery, detail)
}

/// A query of an address from those of its parts that are there; empty if none is.
pub(super) fn query(parts: &[(&str, Option<&str>)]) -> String {
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

/// One of the things that a list can be narrowed to.
#[derive(Debug)]
pub(super) struct Choice<'a> {
    pub(super) word: &'a str,
    pub(super) href: String,
    pub(super) is_chosen: bool,
}

/// The choices side by side, and then what else there is.
pub(super) fn choices(label: &str, choices: &[Choice<'_>], more: &Markup) -> Markup {
    html! {
        nav class="filter" aria-label=(label) data-part="filter" {
            @for choice in choices {
                a href=(choice.href) data-key={ "filter " (choice.word) }
                    aria-current=[choice.is_chosen.then_some("true")] { (choice.word) }
            }
            (more)
        }
    }
}

/// The ways to the newest and to older ones; nothing if there is one page only. `name` is what is listed.
pub(super) fn pages(name: &str, newest: Option<String>, older: Option<String>) -> Markup {
    html! {
        @if newest.is_some() || older.is_some() {
            p class="pages" {
                @if let Some(newest) = newest { a href=(newest) data-key="newest" { "Newest" } }
                @if let Some(older) = older { a id={ (name) "-older" } href=(older) data-key="older" { "Older" } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_has_the_parts_that_are_there() {
        for (parts, expected) in [
            (&[][..], ""),
            (&[("show", None), ("before", None)], ""),
            (&[("show", None), ("before", Some("a b"))], "?before=a%20b"),
            (
                &[("show", Some("over")), ("before", Some("x"))],
                "?show=over&before=x",
            ),
        ] {
            assert_eq!(query(parts), expected);
        }
    }

    #[test]
    fn there_are_ways_only_to_where_something_is() {
        assert_eq!(pages("jobs", None, None).into_string(), "");
        assert_eq!(
            pages(
                "jobs",
                Some("/jobs".to_owned()),
                Some("/jobs?before=1".to_owned())
            )
            .into_string(),
            "<p class=\"pages\"><a href=\"/jobs\" data-key=\"newest\">Newest</a>\
             <a id=\"jobs-older\" href=\"/jobs?before=1\" data-key=\"older\">Older</a></p>"
        );
    }
}
