//! Short ids: text that matches one id or several.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A kind of object that a short id can refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum IdKind {
    /// A job.
    Job,
    /// A plan.
    Plan,
    /// A changeset of a plan.
    Changeset,
    /// A session.
    Session,
    /// A turn of a session.
    Turn,
}

/// The ids that match a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IdMatches {
    /// The first few matches.
    #[schema(example = json!(["plan_01ARZ3NDEKTSV4RRFFQ69G5FAV"]))]
    pub ids: Vec<String>,
    /// The total number of matches. The text is unambiguous if this is 1.
    pub total: u64,
}

/// Whether `part` is the beginning or the end of an id, with or without the prefix for its kind.
/// Case-insensitive.
#[must_use]
pub fn is_part_of_id(part: &str, id: &str) -> bool {
    let part = part.to_ascii_uppercase();
    let id = id.to_ascii_uppercase();
    let body = id.split_once('_').map_or(id.as_str(), |(_, body)| body);
    id.starts_with(&part) || body.starts_with(&part) || body.ends_with(&part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_a_beginning_or_an_end_of_an_id() {
        let ids = [
            "plan_01JCZ8T6V8Y3N5K2M4Q7R9S1TX",
            "plan_01JCZ8T6V8Y3N5K2M4Q7R9ATTX",
            "plan_01JD00000000000000000S1TYZ",
        ];
        for (part, expected) in [
            ("S1TX", &[0][..]),
            ("s1tx", &[0]),
            ("01JD", &[2]),
            ("plan_01JD", &[2]),
            ("9aTtX", &[1]),
            ("TYZ", &[2]),
            ("TX", &[0, 1]),
            ("01JC", &[0, 1]),
            (ids[1], &[1]),
            ("8T6V", &[]),
            ("nothing", &[]),
            ("job_01JD", &[]),
            ("n_01JD", &[]),
        ] {
            let found: Vec<usize> = (0..ids.len())
                .filter(|&at| is_part_of_id(part, ids[at]))
                .collect();
            assert_eq!(found, expected, "{part}");
        }
    }
}
