//! The page's files, embedded in the binary. Each URL contains a hash of the content, so that a browser can
//! cache the file forever and still sees a new version at once.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::response::{IntoResponse, Response};
use http::Uri;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

use super::error::not_found;

pub(crate) const STYLE: Asset = Asset {
    stem: "style",
    extension: "css",
    media_type: "text/css; charset=utf-8",
    content: concat!(
        include_str!("../../../../../web/style.css"),
        include_str!("../../../../../web/tables.css"),
        include_str!("../../../../../web/jobs.css"),
        include_str!("../../../../../web/plans.css"),
        include_str!("../../../../../web/sessions.css"),
        include_str!("../../../../../web/context.css"),
        include_str!("../../../../../web/overview.css"),
        include_str!("../../../../../web/lanes.css")
    ),
};

pub(crate) const SCRIPT: Asset = script("app", include_str!("../../../../../web/app.js"));
pub(crate) const KEYS_SCRIPT: Asset = script("keys", include_str!("../../../../../web/keys.js"));
/// Interprets terminal escapes, for the output of jobs.
pub(crate) const ANSI_SCRIPT: Asset = script("ansi", include_str!("../../../../../web/ansi.js"));
/// The output of a job, live. It needs [`ANSI_SCRIPT`].
pub(crate) const OUTPUT_SCRIPT: Asset = script("output", include_str!("../../../../../web/output.js"));
/// The conversation of a session, live.
pub(crate) const SESSION_SCRIPT: Asset = script("session", include_str!("../../../../../web/session.js"));

pub(crate) const ICON: Asset = Asset {
    stem: "icon",
    extension: "svg",
    media_type: "image/svg+xml",
    content: include_str!("../../../../../web/icon.svg"),
};

const fn script(stem: &'static str, content: &'static str) -> Asset {
    Asset {
        stem,
        extension: "js",
        media_type: "text/javascript; charset=utf-8",
        content,
    }
}

pub(crate) struct Asset {
    stem: &'static str,
    extension: &'static str,
    media_type: &'static str,
    content: &'static str,
}

impl Asset {
    fn file_name(&self) -> String {
        // The hash only tells versions apart; it protects nothing.
        let mut hasher = DefaultHasher::new();
        hasher.write(self.content.as_bytes());
        format!("{}-{:016x}.{}", self.stem, hasher.finish(), self.extension)
    }

    pub(crate) fn url(&self) -> String {
        format!("/assets/{}", self.file_name())
    }
}

pub(crate) async fn show(file: Result<Path<String>, PathRejection>, uri: Uri) -> Response {
    let file = file.map(|Path(file)| file).unwrap_or_default();
    match [
        STYLE,
        SCRIPT,
        KEYS_SCRIPT,
        ANSI_SCRIPT,
        OUTPUT_SCRIPT,
        SESSION_SCRIPT,
        ICON,
    ]
    .into_iter()
    .find(|asset| asset.file_name() == file)
    {
        Some(asset) => {
            let headers = [
                (CONTENT_TYPE, asset.media_type),
                (CACHE_CONTROL, "public, max-age=31536000, immutable"),
            ];
            (headers, asset.content).into_response()
        }
        None => not_found(&uri),
    }
}
