//! What can go wrong with a request, and how to react.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode};
use serde_json::Value;

/// How much of a server's message to repeat.
const SAID_BYTES: usize = 600;

/// Why a request failed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in super::super) enum Fault {
    /// The server doesn't answer.
    Unreachable(String),
    /// The server answers, but can't be trusted.
    Tls(String),
    /// It took too long: what did, and how long.
    Slow(&'static str, Duration),
    Cut(String),
    /// The answer can't be parsed.
    Garbled(String),
    Refused(Refusal),
}

/// A server's refusal.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in super::super) struct Refusal {
    pub(in super::super) why: Why,
    /// The server's message, truncated.
    said: String,
    /// How long the server asks us to wait.
    pub(in super::super) retry_after: Option<Duration>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in super::super) enum Why {
    /// The key was rejected.
    Unauthorized,
    /// The model or the address doesn't exist.
    NotFound,
    /// The request exceeds the model's context.
    TooLong,
    /// Too many requests recently.
    Busy,
    /// The paid quota is used up.
    Quota,
    /// The server failed internally.
    Broken(u16),
    /// The server rejected the request itself.
    Request(u16),
}

impl Fault {
    /// The stable code that a turn ends with. `streamed` is true if part of the answer had arrived.
    pub(in super::super) fn code(&self, streamed: bool) -> &'static str {
        match self {
            Self::Unreachable(_) => "model_unreachable",
            Self::Tls(_) => "model_tls",
            Self::Slow(..) => "model_timeout",
            Self::Cut(_) => "model_stream_cut",
            Self::Garbled(_) => "model_garbled",
            Self::Refused(refusal) => match refusal.why {
                Why::Unauthorized => "model_unauthorized",
                Why::NotFound => "model_not_found",
                Why::TooLong | Why::Request(_) => "model_refused",
                Why::Busy | Why::Quota => "model_rate_limited",
                Why::Broken(_) if streamed => "model_stream_cut",
                Why::Broken(_) => "model_server_error",
            },
        }
    }

    /// A message for the user.
    pub(in super::super) fn text(&self) -> String {
        match self {
            Self::Unreachable(why) => format!("the server of the model cannot be reached: {why}"),
            Self::Tls(why) => format!("there is no safe connection to the server of the model: {why}"),
            Self::Slow(what, limit) => {
                format!("the server of the model {what} for {} s", limit.as_secs_f64())
            }
            Self::Cut(why) => format!("the answer of the model was cut off: {why}"),
            Self::Garbled(what) => format!("the answer of the model makes no sense: {what}"),
            Self::Refused(refusal) => refusal.text(),
        }
    }

    /// Whether the same request may succeed a little later.
    pub(in super::super) fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Slow(..) | Self::Cut(_) | Self::Garbled(_) => true,
            Self::Tls(_) => false,
            Self::Refused(refusal) => matches!(refusal.why, Why::Busy | Why::Broken(_)),
        }
    }

    /// Whether the server itself is unhealthy. If it rejects our request, it is healthy.
    pub(in super::super) fn is_outage(&self) -> bool {
        self.may_pass() || matches!(self, Self::Tls(_))
    }

    /// How long the server asks us to wait.
    pub(in super::super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(refusal) => refusal.retry_after,
            _ => None,
        }
    }
}

impl Refusal {
    /// Interprets the status, headers and body of a refusal.
    pub(in super::super) fn from_parts(
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        now: SystemTime,
    ) -> Self {
        let text = String::from_utf8_lossy(body);
        let error = serde_json::from_str::<Value>(&text).ok();
        let error = error.as_ref().map(|value| value.get("error").unwrap_or(value));
        let said = error.and_then(message).unwrap_or_else(|| text.trim().to_owned());
        let code = error.map(code_of).unwrap_or_default();
        Self {
            why: why(status.as_u16(), &code, &said),
            said: bounded(&said),
            retry_after: retry_after(headers, now),
        }
    }

    /// An error in the middle of a stream. Its code may be an HTTP status.
    pub(super) fn in_stream(error: &Value) -> Self {
        let said = message(error).unwrap_or_else(|| error.to_string());
        let code = code_of(error);
        let status = error
            .get("code")
            .and_then(Value::as_u64)
            .and_then(|code| u16::try_from(code).ok());
        let status = status.filter(|status| (400..600).contains(status)).unwrap_or(500);
        Self {
            why: why(status, &code, &said),
            said: bounded(&said),
            retry_after: None,
        }
    }

    fn text(&self) -> String {
        let what = match self.why {
            Why::Unauthorized => {
                "the server of the model does not accept the key; see `tidelock agent list`".to_owned()
            }
            Why::NotFound => "the server does not know the model, or the address is wrong".to_owned(),
            Why::TooLong => "this is more than the model can read".to_owned(),
            Why::Busy => "the server of the model wants to be asked less often".to_owned(),
            Why::Quota => "what was paid for at the server of the model is used up".to_owned(),
            Why::Broken(status) => format!("the server of the model failed with {status}"),
            Why::Request(status) => format!("the server of the model refused the request with {status}"),
        };
        if self.said.is_empty() {
            what
        } else {
            format!("{what}: {}", self.said)
        }
    }
}

fn why(status: u16, code: &str, said: &str) -> Why {
    let said = said.to_ascii_lowercase();
    let is_too_long = code == "context_length_exceeded"
        || [
            "context length",
            "context window",
            "maximum context",
            "prompt is too long",
            "too many tokens",
        ]
        .iter()
        .any(|sign| said.contains(sign));
    match status {
        401 | 403 => Why::Unauthorized,
        404 => Why::NotFound,
        413 => Why::TooLong,
        400 | 422 if is_too_long => Why::TooLong,
        402 => Why::Quota,
        429 if code == "insufficient_quota" => Why::Quota,
        408 | 409 | 425 | 429 => Why::Busy,
        500.. => Why::Broken(status),
        _ => Why::Request(status),
    }
}

/// The message of an error, in any of the known shapes.
fn message(error: &Value) -> Option<String> {
    let text = error
        .get("message")
        .or_else(|| error.get("detail"))
        .unwrap_or(error);
    text.as_str().map(|text| text.trim().to_owned())
}

fn code_of(error: &Value) -> String {
    let named = |name| error.get(name).and_then(Value::as_str);
    named("code")
        .or_else(|| named("type"))
        .unwrap_or_default()
        .to_owned()
}

fn bounded(text: &str) -> String {
    let end = text.floor_char_boundary(SAID_BYTES.min(text.len()));
    let more = if end < text.len() { "…" } else { "" };
    format!("{}{more}", &text[..end])
}

/// How long a server asks us to wait: given in milliseconds, in seconds, or as a date.
pub(in super::super) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::trim)
    };
    let number = |text: &str| {
        text.parse::<f64>()
            .ok()
            .filter(|number| number.is_finite() && *number >= 0.0)
    };
    if let Some(millis) = text("retry-after-ms").and_then(number) {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let after = text("retry-after")?;
    match number(after) {
        Some(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        None => {
            let date = httpdate::parse_http_date(after).ok()?;
            Some(date.duration_since(now).unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_have_a_code_and_a_way_on() {
        let error =
            |code: &str, text: &str| format!(r#"{{"error": {{"code": "{code}", "message": "{text}"}}}}"#);
        let cases = [
            (
                401,
                error("invalid_api_key", "no"),
                "model_unauthorized",
                false,
                Why::Unauthorized,
            ),
            (403, String::new(), "model_unauthorized", false, Why::Unauthorized),
            (
                404,
                error("model_not_found", "no"),
                "model_not_found",
                false,
                Why::NotFound,
            ),
            (
                400,
                error("context_length_exceeded", "x"),
                "model_refused",
                false,
                Why::TooLong,
            ),
            (
                400,
                error("", "This model's maximum context length is 8192"),
                "model_refused",
                false,
                Why::TooLong,
            ),
            (413, String::new(), "model_refused", false, Why::TooLong),
            (
                400,
                error("", "bad tool schema"),
                "model_refused",
                false,
                Why::Request(400),
            ),
            (302, String::new(), "model_refused", false, Why::Request(302)),
            (
                429,
                error("rate_limit_exceeded", "slow"),
                "model_rate_limited",
                true,
                Why::Busy,
            ),
            (
                429,
                error("insufficient_quota", "pay"),
                "model_rate_limited",
                false,
                Why::Quota,
            ),
            (
                500,
                "<html>oops</html>".to_owned(),
                "model_server_error",
                true,
                Why::Broken(500),
            ),
            (529, String::new(), "model_server_error", true, Why::Broken(529)),
        ];
        for (status, body, code, may_pass, why) in cases {
            let status = StatusCode::from_u16(status).unwrap();
            let refusal = Refusal::from_parts(status, &HeaderMap::new(), body.as_bytes(), SystemTime::now());
            assert_eq!(refusal.why, why, "{status} {body}");
            let fault = Fault::Refused(refusal);
            assert_eq!(
                (fault.code(false), fault.may_pass()),
                (code, may_pass),
                "{status} {body}"
            );
        }
    }

    #[test]
    fn words_of_servers_are_found_and_bounded() {
        let said = |body: &str| {
            let status = StatusCode::BAD_REQUEST;
            let refusal = Refusal::from_parts(status, &HeaderMap::new(), body.as_bytes(), SystemTime::now());
            refusal.text()
        };
        let refused = "the server of the model refused the request with 400";
        assert_eq!(said(""), refused);
        assert_eq!(
            said(r#"{"error": {"message": "bad"}}"#),
            format!("{refused}: bad")
        );
        assert_eq!(said(r#"{"error": "plain"}"#), format!("{refused}: plain"));
        assert_eq!(said(r#"{"detail": "vague"}"#), format!("{refused}: vague"));
        assert_eq!(said(r#"{"message": "flat"}"#), format!("{refused}: flat"));
        assert_eq!(
            said(&"x".repeat(5_000)).len(),
            refused.len() + 2 + SAID_BYTES + '…'.len_utf8()
        );
    }

    #[test]
    fn errors_in_a_stream_may_carry_a_status() {
        let why = |text: &str| Refusal::in_stream(&serde_json::from_str(text).unwrap()).why;
        assert_eq!(why(r#"{"code": 429, "message": "slow"}"#), Why::Busy);
        assert_eq!(
            why(r#"{"code": "server_error", "message": "oops"}"#),
            Why::Broken(500)
        );
        assert_eq!(why(r#""oops""#), Why::Broken(500));
        assert_eq!(why(r#"{"code": 7}"#), Why::Broken(500));
    }

    #[test]
    fn a_server_may_name_the_time_in_several_ways() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770);
        let seconds = |seconds: f64| Some(Duration::from_secs_f64(seconds));
        let cases = [
            ("retry-after", "7", seconds(7.0)),
            ("retry-after", " 0.5 ", seconds(0.5)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT", seconds(7.0)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:00 GMT", seconds(0.0)),
            ("retry-after-ms", "250", seconds(0.25)),
            ("retry-after", "-1", None),
            ("retry-after", "NaN", None),
            ("retry-after", "1e300", None),
            ("retry-after", "soon", None),
            ("x-other", "7", None),
        ];
        for (name, value, expected) in cases {
            let headers = HeaderMap::from_iter([(
                http::HeaderName::from_static(name),
                http::HeaderValue::from_static(value),
            )]);
            assert_eq!(retry_after(&headers, now), expected, "{name}: {value}");
        }
    }
}
