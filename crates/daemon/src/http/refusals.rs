//! The problems that each operation can respond with, for the OpenAPI description.
//!
//! A family of operations declares its error codes once, next to the function that converts its errors to problems, and
//! an operation names its families among its responses. `ErrorCode` knows the status of each code. The codes of the
//! checks before every handler (`guard`, `body`, `query`) are added here, so that handlers don't have to repeat them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::OnceLock;

use axum::response::Response;
use http::Method;
use protocol::ErrorCode;
use utoipa::PartialSchema;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::{ContentBuilder, OpenApi, Ref, RefOr, Required, ResponseBuilder};

use super::openapi::description;
use super::problem::Problem;

/// Declares families of operations: the codes that they can fail with, and the families that they build on.
macro_rules! families {
    ($($(#[$doc:meta])* $name:ident = [$($code:ident),* $(,)?] $(+ $more:ident)*;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name;

        impl utoipa::IntoResponses for $name {
            fn responses() -> $crate::http::refusals::Declared {
                let codes: &[protocol::ErrorCode] = &[$(protocol::ErrorCode::$code),*];
                let more: Vec<$crate::http::refusals::Declared> =
                    vec![$(<$more as utoipa::IntoResponses>::responses()),*];
                let declared = $crate::http::refusals::declare(codes).into_iter();
                declared.chain(more.into_iter().flatten()).collect()
            }
        }
    )*};
}
pub(crate) use families;

/// Responses by status and code. [`describe`] merges those with the same status into one.
pub(crate) type Declared = BTreeMap<String, RefOr<utoipa::openapi::Response>>;

/// Codes for a request from another site.
const TO_ALL: &[ErrorCode] = &[ErrorCode::OriginNotAllowed, ErrorCode::HostNotAllowed];

/// Codes for a caller without valid credentials.
const TO_CALLERS: &[ErrorCode] = &[ErrorCode::Unauthorized];

/// Codes for a change that is authenticated by the page's cookie.
const TO_CHANGES: &[ErrorCode] = &[ErrorCode::FormTokenInvalid];

/// Codes while the daemon stops. `/healthz` and `/readyz` report this in their own format.
const WHEN_STOPPING: &[ErrorCode] = &[ErrorCode::ShuttingDown];

/// Codes for an invalid body.
const TO_BODIES: &[ErrorCode] = &[
    ErrorCode::MalformedJson,
    ErrorCode::RequestTimeout,
    ErrorCode::BodyTooLarge,
    ErrorCode::UnsupportedMediaType,
    ErrorCode::InvalidRequest,
];

/// Codes for an invalid query.
const TO_QUERIES: &[ErrorCode] = &[ErrorCode::InvalidQuery];

/// Codes that any request can get and that no operation declares: a bug in the daemon, and a body where none is read.
const UNDECLARED: [ErrorCode; 2] = [ErrorCode::Internal, ErrorCode::BodyTooLarge];

/// Descriptions of path parameters, by the end of the path up to the parameter.
const PATH_PARAMETERS: &[(&str, &str)] = &[
    ("/breakers/{name}", "The name, percent-encoded."),
    ("/jobs/{id}", "The id of the job."),
    ("/plans/{id}", "The id of the plan."),
    ("/rescued/{id}", "The id of the rescued content."),
    ("/servers/{id}", "The id, percent-encoded."),
    ("/sessions/{id}", "The id of the session."),
    ("/workspaces/{id}", "The id of the workspace."),
    ("/{changeset}", "The id of the changeset."),
    ("/{permission}", "The id of the question."),
    ("/{stream}", "The name of the stream, with `/` as `%2F`."),
    ("/{turn}", "The id of the turn."),
];

/// Declares codes as the responses of a family.
pub(crate) fn declare(codes: &[ErrorCode]) -> Declared {
    let response = |code: &ErrorCode| {
        let key = format!("{} {}", code.status(), code.as_str());
        (key, RefOr::T(ResponseBuilder::new().build()))
    };
    codes.iter().map(response).collect()
}

/// Completes the description: adds path parameters and the responses of the checks before every handler, and merges the
/// responses of each status into one that lists all its codes.
pub(super) fn describe(document: &mut OpenApi) {
    for (path, item) in &mut document.paths.paths {
        let is_asked_while_stopping = matches!(path.as_str(), "/healthz" | "/readyz");
        for (method, operation) in operations(item) {
            add_path_parameters(path, operation);
            let mut before = declare(TO_ALL);
            if !is_asked_while_stopping {
                before.extend(declare(WHEN_STOPPING));
            }
            // An operation without a security section inherits that of the document.
            if operation.security.is_none() {
                before.extend(declare(TO_CALLERS));
                if !method.is_safe() {
                    before.extend(declare(TO_CHANGES));
                }
            }
            if operation.request_body.is_some() {
                before.extend(declare(TO_BODIES));
            }
            if has_query(operation) {
                before.extend(declare(TO_QUERIES));
            }
            operation.responses.responses.extend(before);
            merge(&mut operation.responses.responses);
        }
    }
}

/// Whether the description allows this response to a request. Routes that it doesn't describe may respond in any way.
pub(super) fn declares(method: &Method, route: &str, response: &Response) -> bool {
    static DECLARED: OnceLock<HashSet<(Method, String, String)>> = OnceLock::new();
    let Some(problem) = response.extensions().get::<Problem>() else {
        return true;
    };
    let declared = DECLARED.get_or_init(|| {
        let mut document = description();
        let mut declared = HashSet::new();
        for (path, item) in &mut document.paths.paths {
            for (method, operation) in operations(item) {
                declared.insert((method.clone(), path.clone(), String::new()));
                for response in operation.responses.responses.values() {
                    let RefOr::T(response) = response else { continue };
                    let codes = response.description.split('`').skip(1).step_by(2);
                    declared.extend(codes.map(|code| (method.clone(), path.clone(), code.to_owned())));
                }
            }
        }
        declared
    });
    let has = |code: &str| declared.contains(&(method.clone(), route.to_owned(), code.to_owned()));
    UNDECLARED.contains(&problem.code()) || has(problem.code().as_str()) || !has("")
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (Method, &mut Operation)> {
    let operations = [
        (Method::GET, &mut item.get),
        (Method::PUT, &mut item.put),
        (Method::POST, &mut item.post),
        (Method::DELETE, &mut item.delete),
    ];
    operations
        .into_iter()
        .filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

fn has_query(operation: &Operation) -> bool {
    let mut parameters = operation.parameters.iter().flatten();
    parameters.any(|parameter| match parameter {
        RefOr::T(parameter) => parameter.parameter_in == ParameterIn::Query,
        RefOr::Ref(_) => false,
    })
}

fn add_path_parameters(path: &str, operation: &mut Operation) {
    let ends = path.match_indices('}').map(|(end, _)| &path[..=end]);
    let parameters = ends.filter_map(|place| {
        let (_, description) = PATH_PARAMETERS
            .iter()
            .find(|(ending, _)| place.ends_with(ending))?;
        let name = place.rsplit('{').next().unwrap_or_default().trim_end_matches('}');
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .description(Some(*description))
            .schema(Some(String::schema()));
        Some(RefOr::T(parameter.build()))
    });
    let parameters: Vec<_> = parameters.collect();
    if !parameters.is_empty() {
        let all = operation.parameters.get_or_insert_default();
        drop(all.splice(..0, parameters));
    }
}

/// Merges the declared responses into one for each status.
fn merge(responses: &mut Declared) {
    let mut codes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    responses.retain(|key, _| match key.split_once(' ') {
        Some((status, code)) => {
            let of_status = codes.entry(status.to_owned()).or_default();
            of_status.insert(format!("`{code}`"));
            false
        }
        None => true,
    });
    for (status, codes) in codes {
        let problem = ContentBuilder::new()
            .schema(Some(Ref::from_schema_name("Problem")))
            .build();
        let response = ResponseBuilder::new()
            .description(Vec::from_iter(codes).join(", "))
            .content(protocol::PROBLEM_MEDIA_TYPE, problem)
            .build();
        responses.insert(status, RefOr::T(response));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use serde_json::Value;

    use super::*;
    use crate::openapi_json;

    fn document() -> Value {
        serde_json::from_str(&openapi_json().unwrap()).unwrap()
    }

    /// The statuses that the description lists for a route.
    fn statuses(document: &Value, path: &str, method: &str) -> Vec<String> {
        let responses = document["paths"][path][method]["responses"].as_object().unwrap();
        responses.keys().cloned().collect()
    }

    /// The operations of the description, by path.
    fn all_operations(document: &Value) -> impl Iterator<Item = (&String, &Value)> {
        let paths = document["paths"].as_object().unwrap().iter();
        paths.flat_map(|(path, item)| item.as_object().unwrap().values().map(move |found| (path, found)))
    }

    #[test]
    fn what_stands_before_a_handler_is_described_with_it() {
        let document = document();
        for (path, method, expected) in [
            ("/healthz", "get", "200 403 421"),
            ("/openapi.json", "get", "200 403 421 503"),
            ("/v1/status", "get", "200 401 403 421 503"),
            ("/v1/boots", "get", "200 400 401 403 421 503"),
            (
                "/v1/breakers/{name}/force",
                "post",
                "200 400 401 403 408 413 415 421 422 503",
            ),
        ] {
            assert_eq!(statuses(&document, path, method).join(" "), expected, "{path}");
        }
    }

    #[test]
    fn a_status_lists_all_codes_of_its_families() {
        let document = document();
        let described = |path: &str, status: &str| {
            let response = &document["paths"][path]["post"]["responses"][status];
            response["description"].as_str().unwrap().to_owned()
        };
        assert_eq!(described("/v1/breakers/{name}/reset", "404"), "`breaker_unknown`");
        assert_eq!(
            described("/v1/breakers/{name}/reset", "503"),
            "`breaker_limit_reached`, `log_refusing`, `shutting_down`"
        );
    }

    #[test]
    fn every_parameter_in_a_path_is_described() {
        let document = document();
        for (path, operation) in all_operations(&document) {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let in_path = parameters.filter(|parameter| parameter["in"] == "path");
            assert_eq!(in_path.count(), path.matches('{').count(), "{path}");
        }
    }

    /// If a handler or an error conversion names a code that no operation of its family declares, the family lacks it.
    #[test]
    fn every_code_that_a_family_can_answer_with_is_declared() {
        let document = document();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        for (sources, paths) in [
            (
                ["http/plans", "http/workspaces.rs", "http/rescued.rs"].as_slice(),
                ["/v1/plans", "/v1/workspaces", "/v1/rescued", "/v1/jobs"].as_slice(),
            ),
            (&["http/jobs", "jobs/wire"], &["/v1/jobs"]),
            (&["http/sessions", "sessions/wire"], &["/v1/sessions"]),
            (&["http/context"], &["/v1/context"]),
            (&["http/lsp", "language_servers"], &["/v1/lsp"]),
            (&["http/breakers.rs", "http/events.rs"], &["/v1/breakers"]),
            (&["http/quarantine.rs", "http/log.rs"], &["/v1/log"]),
            (&["http", "plans"], &["/"]),
        ] {
            let operations = all_operations(&document)
                .filter(|(path, _)| paths.iter().any(|beginning| path.starts_with(beginning)));
            let declared: String = operations
                .map(|(_, found)| found["responses"].to_string())
                .collect();
            for file in sources.iter().flat_map(|file| rust_files(source.join(file))) {
                let text = fs::read_to_string(&file).unwrap();
                let text = text.split("#[cfg(test)]").next().unwrap();
                for code in named_in(text) {
                    let is_declared = declared.contains(&format!("`{}`", code.as_str()));
                    assert!(is_declared, "{} names {code:?}", file.display());
                }
            }
        }
    }

    /// The codes that a source file names as `ErrorCode::…`, except those that no operation declares.
    fn named_in(text: &str) -> impl Iterator<Item = ErrorCode> {
        let names = text.split("ErrorCode::").skip(1).filter_map(|rest| {
            let end = rest.find(|letter: char| !letter.is_alphanumeric())?;
            ErrorCode::ALL
                .into_iter()
                .find(|code| format!("{code:?}") == rest[..end])
        });
        let fallbacks = [ErrorCode::NotFound, ErrorCode::MethodNotAllowed];
        names.filter(move |code| !UNDECLARED.contains(code) && !fallbacks.contains(code))
    }

    fn rust_files(path: PathBuf) -> Vec<PathBuf> {
        if path.is_file() {
            return vec![path];
        }
        let entries = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<PathBuf> = entries.flat_map(rust_files).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
        files
    }
}
