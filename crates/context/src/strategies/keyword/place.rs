//! Weighs a file by its path.

use crate::path::TreePath;
use crate::query::Query;

/// The weight of tests, unless the question asks for them.
const TEST_FACTOR: f64 = 0.65;

/// What a question asks for explicitly, so that its weight isn't reduced.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(in crate::strategies) struct Wishes {
    tests: bool,
    documents: bool,
    examples: bool,
}

impl Wishes {
    pub(in crate::strategies) fn of(query: &Query) -> Self {
        let mut wishes = Self::default();
        for part in query.terms.iter().flat_map(|term| &term.parts) {
            match part.as_str() {
                "test" | "tests" | "testing" | "spec" => wishes.tests = true,
                "doc" | "docs" | "documentation" | "readme" | "markdown" | "md" | "guide" | "changelog"
                | "tutorial" => {
                    wishes.documents = true;
                }
                "example" | "examples" | "bench" | "benches" | "benchmark" | "benchmarks" => {
                    wishes.examples = true
                }
                _ => {}
            }
        }
        wishes
    }

    /// The weight of test code inside other files.
    pub(in crate::strategies) fn of_test(self) -> f64 {
        if self.tests { 1.0 } else { TEST_FACTOR }
    }
}

/// The weight of a file, by its path.
pub(in crate::strategies) fn factor(path: &TreePath, wishes: Wishes) -> f64 {
    let small = path.as_str().to_ascii_lowercase();
    let (directories, name) = small.rsplit_once('/').unwrap_or(("", &small));
    let below = |names: &[&str]| directories.split('/').any(|directory| names.contains(&directory));
    let is_made = below(&[
        "vendor",
        "third_party",
        "node_modules",
        "dist",
        "generated",
        "__generated__",
    ]) || [
        ".min.js", ".min.css", ".map", ".lock", ".svg", ".pb.go", "_pb2.py", ".snap",
    ]
    .iter()
    .any(|end| name.ends_with(end))
        || ["package-lock.json", "pnpm-lock.yaml", "go.sum"].contains(&name)
        || name.contains(".generated.");
    let is_test = below(&[
        "test",
        "tests",
        "__tests__",
        "spec",
        "fixtures",
        "testdata",
        "snapshots",
    ]) || ["test.rs", "tests.rs"].contains(&name)
        || name.starts_with("test_")
        || ["_test.", "_tests.", ".test.", ".spec.", "_spec."]
            .iter()
            .any(|mark| name.contains(mark));
    let is_example = below(&[
        "example",
        "examples",
        "bench",
        "benches",
        "benchmarks",
        "fuzz",
        "demo",
    ]);
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_document = ["md", "markdown", "rst", "adoc", "txt", "html"].contains(&ending)
        || name.starts_with("license")
        || name.starts_with("changelog");
    let mut factor = 1.0;
    if is_made {
        factor *= 0.3;
    }
    if is_test {
        factor *= wishes.of_test();
    }
    if is_example && !wishes.examples {
        factor *= 0.7;
    }
    if is_document && !wishes.documents {
        factor *= 0.5;
    }
    factor
}

#[cfg(test)]
mod tests {
    use super::{Wishes, factor};
    use crate::path::TreePath;
    use crate::query::Query;

    #[test]
    fn what_is_made_or_tests_or_tells_counts_less_unless_asked_for() {
        for (path, query, expected) in [
            ("src/a.rs", "x", 1.0),
            ("vendor/a.rs", "x", 0.3),
            ("Cargo.lock", "x", 0.3),
            ("a.min.js", "x", 0.3),
            ("tests/a.rs", "x", 0.65),
            ("src/a_test.go", "x", 0.65),
            ("src/a_test.go", "the tests of x", 1.0),
            ("examples/a.rs", "x", 0.7),
            ("README.md", "x", 0.5),
            ("README.md", "where in the docs is x", 1.0),
            ("src/contest.rs", "x", 1.0),
        ] {
            let wishes = Wishes::of(&Query::parse(query));
            assert!(
                (factor(&TreePath::new(path).unwrap(), wishes) - expected).abs() < 1e-9,
                "{path} {query}"
            );
        }
    }
}
