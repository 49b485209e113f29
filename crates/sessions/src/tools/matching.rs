//! Which files a walk covers: a starting path, and a pattern for paths below it.

use globset::{GlobBuilder, GlobMatcher};
use plans::RelPath;

use super::error::ToolError;
use super::path::SandboxPath;
use super::text::one_line;

/// The longest pattern. People write short ones.
const PATTERN_LIMIT_BYTES: usize = 1024;

/// A pattern for paths below a starting path. A pattern without a slash matches names, at any depth.
#[derive(Debug)]
pub(super) struct PathPattern {
    matcher: GlobMatcher,
    is_of_names: bool,
}

impl PathPattern {
    pub(super) fn new(text: &str) -> Result<Self, ToolError> {
        let bad = |why: String| {
            ToolError::Refused(format!(
                "`glob` cannot be used: {why}. Examples: `*.rs`, `src/**/*.ts`, `**/test_*.py`."
            ))
        };
        if text.len() > PATTERN_LIMIT_BYTES {
            return Err(bad(format!("it has more than {PATTERN_LIMIT_BYTES} bytes")));
        }
        let text = text.strip_prefix("./").unwrap_or(text);
        let glob = GlobBuilder::new(text)
            .literal_separator(true)
            .build()
            .map_err(|error| bad(one_line(&error.to_string())))?;
        Ok(Self {
            matcher: glob.compile_matcher(),
            is_of_names: !text.contains('/'),
        })
    }

    /// Whether the pattern matches a path at or below `place`.
    pub(super) fn matches(&self, place: &SandboxPath, path: &RelPath) -> bool {
        if self.is_of_names {
            return self.matcher.is_match(path.name());
        }
        let below = match place {
            SandboxPath::Root => path.as_path(),
            SandboxPath::Path(place) => path
                .as_path()
                .strip_prefix(place.as_path())
                .unwrap_or(path.as_path()),
        };
        self.matcher.is_match(below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_about_names_or_about_paths_below_a_place() {
        let cases = [
            ("*.rs", ".", "src/deep/a.rs", true),
            ("*.rs", ".", "a.rsx", false),
            ("src/*.rs", ".", "src/a.rs", true),
            ("src/*.rs", ".", "src/deep/a.rs", false),
            ("src/**/*.rs", ".", "src/deep/a.rs", true),
            ("./src/*", ".", "src/a", true),
            ("deep/*.rs", "src", "src/deep/a.rs", true),
            ("src/*", "src", "src/a", false),
            ("{a,b}.?", ".", "x/b.c", true),
        ];
        for (pattern, place, path, expected) in cases {
            let matches = PathPattern::new(pattern)
                .unwrap()
                .matches(&SandboxPath::relative(place).unwrap(), &path.parse().unwrap());
            assert_eq!(matches, expected, "{pattern} {place} {path}");
        }
        for bad in ["[", "{a", &"a".repeat(PATTERN_LIMIT_BYTES + 1)] {
            assert!(PathPattern::new(bad).is_err(), "{bad}");
        }
    }
}
