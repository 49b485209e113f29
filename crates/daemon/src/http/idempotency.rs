//! The idempotency key, which makes a repeated request return the result of the first.

use http::HeaderMap;
use http::header::HeaderName;

use super::problem::Problem;
use crate::jobs::wire::invalid;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The key from the header or the body. If both have one, they must be equal.
pub(super) fn one_key(headers: &HeaderMap, in_body: Option<String>) -> Result<Option<String>, Problem> {
    let Some(in_header) = headers.get(IDEMPOTENCY_KEY) else {
        return Ok(in_body);
    };
    let in_header = std::str::from_utf8(in_header.as_bytes())
        .map_err(|_| invalid("Idempotency-Key", "is not UTF-8"))?
        .to_owned();
    match in_body {
        Some(in_body) if in_body != in_header => Err(invalid(
            "idempotency_key",
            "is not what the header `Idempotency-Key` says",
        )),
        _ => Ok(Some(in_header)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_and_the_field_are_one_key() {
        let given = |text: &str| Some(text.to_owned());
        for (in_header, in_body, expected) in [
            (None, None, Ok(None)),
            (None, given("a"), Ok(given("a"))),
            (Some("a"), None, Ok(given("a"))),
            (Some("a"), given("a"), Ok(given("a"))),
            (Some("a"), given("b"), Err("`idempotency_key` is not what")),
            (Some("\u{fffd}é"), None, Ok(given("\u{fffd}é"))),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(key) = in_header {
                headers.insert(IDEMPOTENCY_KEY, key.parse().unwrap());
            }
            let found = one_key(&headers, in_body.clone());
            match (&found, &expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(problem), Err(beginning)) => {
                    assert!(problem.detail().starts_with(beginning), "{problem:?}");
                }
                _ => panic!("{in_header:?} and {in_body:?}: {found:?}"),
            }
        }
    }
}
