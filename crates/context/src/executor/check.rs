//! Checks the results of a strategy before they are used.

use std::any::Any;
use std::cmp::Ordering;

use crate::strategy::Hit;

/// This many times the useful number of hits is too many: a strategy that returns all of them isn't
/// searching, it is listing.
const TOO_MANY_TIMES: usize = 10;
/// The longest reason that is passed on, in characters. People read it on one line.
const REASON_LIMIT_CHARS: usize = 200;

/// The hits, best first, each location once, and no more than are useful; or what is wrong with them.
pub(super) fn checked(mut hits: Vec<Hit>, most: usize) -> Result<Vec<Hit>, String> {
    let too_many = most.saturating_mul(TOO_MANY_TIMES);
    if hits.len() > too_many {
        let found = hits.len();
        return Err(format!("it found {found} places, and {too_many} are too many"));
    }
    if let Some(hit) = hits.iter().find(|hit| !hit.score.is_finite()) {
        return Err(format!("it gave {} a score that is no number", hit.path));
    }
    hits.sort_by(order);
    hits.dedup_by(|one, other| (&one.path, one.lines, one.depth) == (&other.path, other.lines, other.depth));
    hits.truncate(most);
    for hit in &mut hits {
        hit.why = bounded(&hit.why);
    }
    Ok(hits)
}

/// Best first; a total order, so that the same hits always come in the same order.
fn order(one: &Hit, other: &Hit) -> Ordering {
    let by_score = other.score.total_cmp(&one.score);
    let permit = |hit: &Hit| (hit.lines, std::cmp::Reverse(hit.depth));
    by_score
        .then_with(|| one.path.cmp(&other.path))
        .then_with(|| permit(one).cmp(&permit(other)))
        .then_with(|| one.why.cmp(&other.why))
}

/// A reason on one line, cut to the limit.
pub(super) fn bounded(reason: &str) -> String {
    let clean = |letter: char| if letter.is_control() { ' ' } else { letter };
    let mut letters = reason.trim().chars().map(clean);
    let mut bounded: String = letters.by_ref().take(REASON_LIMIT_CHARS).collect();
    if letters.next().is_some() {
        bounded.push('…');
    }
    bounded
}

pub(super) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.map_or_else(
        || "it panicked".to_owned(),
        |text| bounded(&format!("it panicked: {text}")),
    )
}

#[cfg(test)]
mod tests {
    use super::{bounded, checked};
    use crate::answer::Depth;
    use crate::lines::Lines;
    use crate::path::TreePath;
    use crate::strategy::Hit;

    fn hit(path: &str, line: u32, score: f64) -> Hit {
        Hit {
            path: TreePath::new(path).unwrap(),
            lines: Lines::one(line),
            score,
            why: "a\nreason".to_owned(),
            depth: Depth::Body,
        }
    }

    #[test]
    fn hits_are_in_one_order_whatever_order_they_came_in() {
        let tidy = |path, line, score| Hit {
            why: "a reason".to_owned(),
            ..hit(path, line, score)
        };
        let expected = vec![
            tidy("b", 9, 3.0),
            tidy("a", 0, 2.0),
            tidy("a", 1, 2.0),
            tidy("a", 2, 2.0),
            tidy("b", 1, 2.0),
        ];
        let mut came = vec![
            hit("b", 1, 2.0),
            hit("a", 2, 2.0),
            hit("a", 1, 2.0),
            hit("a", 2, 2.0),
            hit("b", 9, 3.0),
            hit("a", 0, 2.0),
            hit("c", 1, -7.0),
        ];
        for _ in 0..came.len() {
            came.rotate_left(1);
            assert_eq!(checked(came.clone(), 5), Ok(expected.clone()));
        }
    }

    #[test]
    fn too_much_and_rubbish_are_refused() {
        let many = |count| (0..count).map(|line| hit("a", line, 1.0)).collect::<Vec<_>>();
        assert_eq!(checked(many(30), 3).map(|hits| hits.len()), Ok(3));
        assert_eq!(
            checked(many(31), 3),
            Err("it found 31 places, and 30 are too many".to_owned())
        );
        for score in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(
                checked(vec![hit("a", 1, 1.0), hit("b", 1, score)], 3),
                Err("it gave b a score that is no number".to_owned())
            );
        }
        assert_eq!(checked(Vec::new(), 0), Ok(Vec::new()));
    }

    #[test]
    fn reasons_are_short_and_on_one_line() {
        assert_eq!(bounded("  a\tb\r\nc\u{1b}[31m\n"), "a b  c [31m");
        let long = bounded(&"ä".repeat(1000));
        assert_eq!((long.chars().count(), long.ends_with('…')), (201, true));
    }
}
