//! Circuit breakers over HTTP, so that agents in any language share one record of what is broken.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{FromRequestParts, Path, State};
use http::request::Parts;
use kernel::{CircuitSnapshot, CircuitState, Generation};
use protocol::{
    Breaker, BreakerList, BreakerState, ErrorCode, ForceBreaker, ForcedState, Outcome, RecordOutcome,
    ResetBreaker, ResetBreakers,
};

use super::body;
use super::log_problem::{ChangeBreakers, not_changed};
use super::problem::Problem;
use super::refusals::families;
use crate::app::{App, whole_ms_up};
use crate::durable::{Change, OverrideError, Who};

families! {
    Find = [InvalidName, BreakerUnknown];
    Reset = [StaleGeneration] + Find + ChangeBreakers;
    Force = [InvalidName] + ChangeBreakers;
    Record = [InvalidName, BreakerLimitReached];
}

/// The longest name of a breaker: enough for a path or an address, but not for a document.
const NAME_LIMIT_BYTES: usize = 128;

/// The name of the breaker in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BreakerName(String);

impl BreakerName {
    pub(crate) fn parse(text: String) -> Result<Self, Problem> {
        let detail = if text.is_empty() {
            "The name is empty."
        } else if text.len() > NAME_LIMIT_BYTES {
            "The name has more than 128 bytes."
        } else if text.chars().any(char::is_control) {
            "The name has control characters in it."
        } else {
            return Ok(Self(text));
        };
        Err(Problem::new(ErrorCode::InvalidName, detail))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromRequestParts<Arc<App>> for BreakerName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        match Path::<String>::from_request_parts(parts, app).await {
            Ok(Path(name)) => Self::parse(name),
            Err(_) => Err(Problem::new(ErrorCode::InvalidName, "The name is not UTF-8.")),
        }
    }
}

/// Lists all breakers, sorted by name.
#[utoipa::path(
    get, path = "/v1/breakers", operation_id = "list_breakers", tag = "breakers",
    responses((status = 200, description = "All known breakers.", body = BreakerList)),
)]
pub(crate) async fn list(State(app): State<Arc<App>>) -> Json<BreakerList> {
    Json(all(&app))
}

/// All breakers, for the API and the page.
pub(crate) fn all(app: &App) -> BreakerList {
    let snapshot = app.breakers.snapshot();
    BreakerList {
        breakers: snapshot.circuits.iter().map(to_wire).collect(),
        untracked: snapshot.untracked,
    }
}

/// Returns a breaker.
#[utoipa::path(
    get, path = "/v1/breakers/{name}", operation_id = "show_breaker", tag = "breakers",
    responses((status = 200, description = "The breaker.", body = Breaker), Find),
)]
pub(crate) async fn show(State(app): State<Arc<App>>, name: BreakerName) -> Result<Json<Breaker>, Problem> {
    find(&app, &name).map(Json)
}

/// Shows the breaker that has the same name as the path of [`reset_all`], which would otherwise hide it.
pub(crate) async fn show_named_reset(State(app): State<Arc<App>>) -> Result<Json<Breaker>, Problem> {
    find(&app, &BreakerName("reset".to_owned())).map(Json)
}

/// Resets a breaker to closed.
///
/// If a generation is given, the reset only applies if it is still the current one.
#[utoipa::path(
    post, path = "/v1/breakers/{name}/reset", operation_id = "reset_breaker", tag = "breakers",
    request_body = Option<ResetBreaker>,
    responses((status = 200, description = "The breaker after the reset.", body = Breaker), Reset),
)]
pub(crate) async fn reset(
    State(app): State<Arc<App>>,
    name: BreakerName,
    who: Who,
    body::OptionalJson(request): body::OptionalJson<ResetBreaker>,
) -> Result<Json<Breaker>, Problem> {
    let change = request
        .generation
        .map_or(Change::Reset, |seen| Change::ResetIf(Generation::from_u64(seen)));
    let changed = app.durable.overrides.change(name.as_str(), change, who).await;
    let circuit = changed.map_err(|error| match (&error, request.generation) {
        (OverrideError::Moved(current), Some(seen)) => {
            let detail = format!("You saw generation {seen}, and it is {} now.", current.generation);
            Problem::new(ErrorCode::StaleGeneration, detail).with_current(to_wire(current))
        }
        _ => not_changed(error, || unknown(&name)),
    })?;
    tracing::info!(breaker = name.as_str(), "a breaker was reset");
    Ok(Json(to_wire(&circuit)))
}

/// Resets all breakers to closed, in one step.
#[utoipa::path(
    post, path = "/v1/breakers/reset", operation_id = "reset_all_breakers", tag = "breakers",
    responses((status = 200, description = "How many there are.", body = ResetBreakers), ChangeBreakers),
)]
pub(crate) async fn reset_all(State(app): State<Arc<App>>, who: Who) -> Result<Json<ResetBreakers>, Problem> {
    let changed = app.durable.overrides.reset_all(who).await;
    let reset = changed.map_err(|error| not_changed(error, || Problem::internal(OverrideError::Unknown)))?;
    tracing::info!(reset, "all breakers were reset");
    Ok(Json(ResetBreakers { reset: reset as u64 }))
}

/// Forces a breaker open or closed until it is reset.
#[utoipa::path(
    post, path = "/v1/breakers/{name}/force", operation_id = "force_breaker", tag = "breakers",
    request_body = ForceBreaker,
    responses(
        (status = 200, description = "The breaker after the change, which is on disk.", body = Breaker),
        Force,
    ),
)]
pub(crate) async fn force(
    State(app): State<Arc<App>>,
    name: BreakerName,
    who: Who,
    body::Json(request): body::Json<ForceBreaker>,
) -> Result<Json<Breaker>, Problem> {
    let change = match request.state {
        ForcedState::Open => Change::ForceOpen,
        ForcedState::Closed => Change::ForceClosed,
    };
    let changed = app.durable.overrides.change(name.as_str(), change, who).await;
    let circuit = changed.map_err(|error| not_changed(error, || unknown(&name)))?;
    tracing::info!(breaker = name.as_str(), state = ?request.state, "a breaker was forced");
    Ok(Json(to_wire(&circuit)))
}

/// Records the outcome of a call that the caller made itself.
#[utoipa::path(
    post, path = "/v1/breakers/{name}/record", operation_id = "record_outcome", tag = "breakers",
    request_body = RecordOutcome,
    responses((status = 200, description = "The breaker after the report.", body = Breaker), Record),
)]
pub(crate) async fn record(
    State(app): State<Arc<App>>,
    name: BreakerName,
    body::Json(request): body::Json<RecordOutcome>,
) -> Result<Json<Breaker>, Problem> {
    let pause = request.retry_after_ms.map(Duration::from_millis);
    if request.outcome == Outcome::Success && pause.is_some() {
        let detail = "In `retry_after_ms`: only a failure can ask for a pause.";
        return Err(Problem::new(ErrorCode::InvalidRequest, detail).in_field("retry_after_ms"));
    }
    // Holding the circuit keeps it known until it has been shown, even after a success.
    let held = app.breakers.circuit(name.as_str());
    match (request.outcome, pause) {
        (Outcome::Success, _) => app.breakers.record_success(name.as_str()),
        (Outcome::Failure, None) => app.breakers.record_failure(name.as_str()),
        (Outcome::Failure, Some(pause)) => app.breakers.record_failure_retry_after(name.as_str(), pause),
    }
    let shown = app.breakers.get(name.as_str()).as_ref().map(to_wire);
    drop(held);
    shown.map(Json).ok_or_else(limit_reached)
}

fn find(app: &App, name: &BreakerName) -> Result<Breaker, Problem> {
    app.breakers
        .get(name.as_str())
        .as_ref()
        .map(to_wire)
        .ok_or_else(|| unknown(name))
}

fn unknown(name: &BreakerName) -> Problem {
    Problem::new(
        ErrorCode::BreakerUnknown,
        format!("No breaker is named `{}`.", name.as_str()),
    )
}

pub(crate) fn limit_reached() -> Problem {
    Problem::new(
        ErrorCode::BreakerLimitReached,
        "There is no room for another breaker: all that are tracked are in use.",
    )
}

pub(crate) fn to_wire(circuit: &CircuitSnapshot) -> Breaker {
    let (state, retry_after, probing) = match circuit.state {
        CircuitState::Closed => (BreakerState::Closed, None, false),
        CircuitState::Open { retry_after } => (BreakerState::Open, Some(retry_after), false),
        CircuitState::HalfOpen { probing } => (BreakerState::HalfOpen, None, probing),
        CircuitState::ForcedOpen => (BreakerState::ForcedOpen, None, false),
        CircuitState::ForcedClosed => (BreakerState::ForcedClosed, None, false),
    };
    Breaker {
        id: circuit.name.to_string(),
        state,
        generation: circuit.generation.get(),
        retry_after_ms: retry_after.map(whole_ms_up),
        probing,
        consecutive_failures: circuit.consecutive_failures,
        failures: circuit.failures,
        refused: circuit.refused,
        late_reports: circuit.late_reports,
        times_opened: circuit.times_opened,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_printable_and_not_too_long() {
        for (name, expected) in [
            ("a".to_owned(), true),
            ("lsp/rust-analyzer é".to_owned(), true),
            ("a".repeat(NAME_LIMIT_BYTES), true),
            ("a".repeat(NAME_LIMIT_BYTES + 1), false),
            ("é".repeat(NAME_LIMIT_BYTES / 2 + 1), false),
            (String::new(), false),
            ("a\nb".to_owned(), false),
            ("a\u{85}b".to_owned(), false),
            ("\0".to_owned(), false),
        ] {
            assert_eq!(BreakerName::parse(name.clone()).is_ok(), expected, "{name:?}");
        }
    }
}
