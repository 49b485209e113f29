//! Which calls of a batch wait for which. Pure.
//!
//! A call waits for every earlier one that it could interfere with: if one of the two writes and their paths overlap,
//! or if one of them may write anywhere. So in whatever order they end, each sees what it would have seen if they had
//! run one after the other.

use super::path::SandboxPath;

/// What a call does to the plan.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) enum Touches {
    #[default]
    Nothing,
    /// Reads these paths, and everything below them.
    Reads(Vec<SandboxPath>),
    /// Writes these paths, and everything below them.
    Writes(Vec<SandboxPath>),
    /// May touch anything. It runs alone.
    Everything,
}

impl Touches {
    /// Whether two calls could interfere with each other.
    fn collides(&self, other: &Self) -> bool {
        let overlap = |ours: &[SandboxPath], theirs: &[SandboxPath]| {
            ours.iter()
                .any(|our| theirs.iter().any(|their| our.overlaps(their)))
        };
        match (self, other) {
            (Self::Everything, _) | (_, Self::Everything) => true,
            (Self::Nothing, _) | (_, Self::Nothing) | (Self::Reads(_), Self::Reads(_)) => false,
            (Self::Reads(ours) | Self::Writes(ours), Self::Writes(theirs))
            | (Self::Writes(ours), Self::Reads(theirs)) => overlap(ours, theirs),
        }
    }
}

/// For each call, the earlier ones that it waits for.
pub(super) fn waits_for(touches: &[Touches]) -> Vec<Vec<usize>> {
    touches
        .iter()
        .enumerate()
        .map(|(at, call)| {
            (0..at)
                .filter(|earlier| touches[*earlier].collides(call))
                .collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `r:a,b` reads, `w:a` writes, `-` touches nothing, `!` touches everything.
    pub(in super::super) fn touches(text: &str) -> Touches {
        let places = |text: &str| {
            text.split(',')
                .map(|path| SandboxPath::relative(path).unwrap())
                .collect()
        };
        match (text, text.split_once(':')) {
            ("-", _) => Touches::Nothing,
            ("!", _) => Touches::Everything,
            (_, Some(("r", paths))) => Touches::Reads(places(paths)),
            (_, Some(("w", paths))) => Touches::Writes(places(paths)),
            _ => panic!("{text}"),
        }
    }

    #[test]
    fn a_call_waits_for_what_it_could_get_in_the_way_of() {
        let cases: &[(&[&str], &[&[usize]])] = &[
            (&["r:a", "r:a", "r:."], &[&[], &[], &[]]),
            (&["w:a", "w:b"], &[&[], &[]]),
            (&["w:a", "w:a", "w:a"], &[&[], &[0], &[0, 1]]),
            (&["r:a", "w:a", "r:a"], &[&[], &[0], &[1]]),
            (&["w:a/b", "r:a", "r:a/c", "r:."], &[&[], &[0], &[], &[0]]),
            (&["w:a,b", "r:b", "r:c", "w:c"], &[&[], &[0], &[], &[2]]),
            (&["r:a", "-", "!", "-", "r:b"], &[&[], &[], &[0, 1], &[2], &[2]]),
            (&["!", "!"], &[&[], &[0]]),
        ];
        for (calls, expected) in cases {
            let calls: Vec<Touches> = calls.iter().map(|text| touches(text)).collect();
            assert_eq!(waits_for(&calls), *expected, "{calls:?}");
        }
    }
}
