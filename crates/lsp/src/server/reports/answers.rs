//! Requests of a server that always have the same answer.

use std::path::Path;

use serde_json::{Value, json};

use crate::wire::ResponseError;

#[derive(Debug)]
pub(super) struct Answers {
    folder: Value,
    settings: Option<Value>,
}

impl Answers {
    pub(super) fn new(uri: String, root: &Path, settings: Option<Value>) -> Self {
        let name = root
            .file_name()
            .map_or_else(|| root.to_string_lossy(), |name| name.to_string_lossy());
        Self {
            folder: json!({"uri": uri, "name": name}),
            settings,
        }
    }

    pub(super) fn answer(&self, method: &str, params: &Value) -> Result<Value, ResponseError> {
        match method {
            "workspace/configuration" => {
                let items = params["items"].as_array().map(Vec::as_slice).unwrap_or_default();
                Ok(items
                    .iter()
                    .map(|item| self.section(item["section"].as_str()))
                    .collect())
            }
            "workspace/workspaceFolders" => Ok(json!([self.folder])),
            // Progress is accepted under any token, nothing is shown to a user, and nothing is cached that would
            // have to be refreshed.
            "window/workDoneProgress/create"
            | "workspace/codeLens/refresh"
            | "workspace/diagnostic/refresh"
            | "workspace/foldingRange/refresh"
            | "workspace/inlayHint/refresh"
            | "workspace/inlineValue/refresh"
            | "workspace/semanticTokens/refresh" => Ok(Value::Null),
            "window/showDocument" => Ok(json!({"success": false})),
            _ => Err(ResponseError::method_not_found(method)),
        }
    }

    /// The settings of a section: `a.b` is the value at `b` in the value at `a`. `None` means everything.
    fn section(&self, section: Option<&str>) -> Value {
        let Some(settings) = &self.settings else {
            return Value::Null;
        };
        let names = section
            .unwrap_or_default()
            .split('.')
            .filter(|name| !name.is_empty());
        let mut found = Some(settings);
        for name in names {
            found = found.and_then(|settings| settings.get(name));
        }
        found.cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_has_an_answer_or_an_error_that_says_so() {
        let settings = json!({"python": {"analysis": {"mode": "basic"}}, "x": 1});
        let answers = Answers::new(
            "file:///w/app".to_owned(),
            Path::new("/w/app"),
            Some(settings.clone()),
        );
        let configuration = json!({"items": [
            {"section": "python.analysis"}, {"section": "python.other"}, {"section": ""}, {}, {"section": "x"},
        ]});
        for (method, params, expected) in [
            (
                "workspace/configuration",
                configuration,
                Ok(json!([{"mode": "basic"}, null, settings, settings, 1])),
            ),
            ("workspace/configuration", json!(null), Ok(json!([]))),
            (
                "workspace/workspaceFolders",
                json!(null),
                Ok(json!([{"uri": "file:///w/app", "name": "app"}])),
            ),
            (
                "window/workDoneProgress/create",
                json!({"token": 1}),
                Ok(Value::Null),
            ),
            ("window/showDocument", json!({}), Ok(json!({"success": false}))),
            ("x/y", json!({}), Err(crate::wire::error_code::METHOD_NOT_FOUND)),
        ] {
            let answer = answers.answer(method, &params).map_err(|error| error.code);
            assert_eq!(answer, expected, "{method}");
        }
    }
}
