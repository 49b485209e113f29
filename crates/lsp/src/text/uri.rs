//! `file:` URIs and paths.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

/// A path without a URI, or a URI without a path.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum UriError {
    /// A server's text is UTF-8; a path doesn't have to be.
    #[error("the path {} is not UTF-8 and cannot be named to a language server", path.display())]
    NotUtf8 { path: PathBuf },
    #[error("the path {} is not absolute", path.display())]
    NotAbsolute { path: PathBuf },
    #[error("`{uri}` does not name a file of this machine")]
    NotAFile { uri: String },
    #[error("`{uri}` does not encode a path")]
    BadEncoding { uri: String },
}

/// The URI of an absolute path. Everything except letters, digits, `-._~` and `/` is percent-encoded, the colon
/// included, because most servers are tested with that.
pub fn uri_of_path(path: &Path) -> Result<String, UriError> {
    if !path.is_absolute() {
        return Err(UriError::NotAbsolute { path: path.into() });
    }
    let text = path
        .to_str()
        .ok_or_else(|| UriError::NotUtf8 { path: path.into() })?;
    let mut uri = String::with_capacity(text.len() + 8);
    uri.push_str("file://");
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'/') {
            uri.push(char::from(byte));
        } else {
            let written = write!(uri, "%{byte:02X}");
            debug_assert!(written.is_ok(), "a string takes everything");
        }
    }
    Ok(uri)
}

/// The path of a URI. Servers encode differently, so we compare paths, not URIs. A query or fragment is dropped, and a
/// `%` that doesn't begin a code stands for itself.
pub fn path_of_uri(uri: &str) -> Result<PathBuf, UriError> {
    let not_a_file = || UriError::NotAFile { uri: uri.to_owned() };
    let scheme_end = uri.find(':').ok_or_else(not_a_file)?;
    if !uri[..scheme_end].eq_ignore_ascii_case("file") {
        return Err(not_a_file());
    }
    let rest = &uri[scheme_end + 1..];
    let path = match rest.strip_prefix("//") {
        Some(with_host) => {
            let slash = with_host.find('/').ok_or_else(not_a_file)?;
            let host = &with_host[..slash];
            if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
                return Err(not_a_file());
            }
            &with_host[slash..]
        }
        None => rest,
    };
    if !path.starts_with('/') {
        return Err(not_a_file());
    }
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let bytes = decode(path.as_bytes());
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(PathBuf::from(text)),
        _ => Err(UriError::BadEncoding { uri: uri.to_owned() }),
    }
}

fn decode(text: &[u8]) -> Vec<u8> {
    let digit = |at: usize| char::from(*text.get(at)?).to_digit(16);
    let mut decoded = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let code = (byte == b'%').then(|| Some(digit(at + 1)? * 16 + digit(at + 2)?));
        match code.flatten().and_then(|code| u8::try_from(code).ok()) {
            Some(code) => {
                decoded.push(code);
                at += 3;
            }
            None => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    decoded
}
