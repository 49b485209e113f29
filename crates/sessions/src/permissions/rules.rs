//! Which rule applies. Pure.
//!
//! In a pattern, `*` matches anything, including nothing, `/` and line breaks; `?` matches one character; and `\`
//! escapes the next character. A pattern has to match the whole subject.
//!
//! A shell pattern is matched against the whole line, and a line can contain several commands: `git *` also matches
//! `git log; rm -r src`. If you allow by pattern, you allow that too.

use protocol::{PermissionRule, RulePermission};

/// What the rules say about a tool's action: the first matching rule counts. Without one, the action is allowed, since
/// it happens in a sandbox and nothing reaches the workspace until the user applies it.
#[must_use]
pub fn decide<'a>(
    rules: impl IntoIterator<Item = &'a PermissionRule>,
    tool: &str,
    subject: &str,
) -> RulePermission {
    rules
        .into_iter()
        .find(|rule| speaks_of(rule, tool) && matches_subject(rule, subject))
        .map_or(RulePermission::Allow, |rule| rule.permission)
}

/// A pattern that matches exactly this subject.
#[must_use]
pub fn exactly(subject: &str) -> String {
    let mut pattern = String::with_capacity(subject.len());
    for character in subject.chars() {
        if matches!(character, '*' | '?' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

pub(crate) fn speaks_of(rule: &PermissionRule, tool: &str) -> bool {
    rule.tool == "*" || rule.tool == tool
}

fn matches_subject(rule: &PermissionRule, subject: &str) -> bool {
    rule.pattern
        .as_deref()
        .is_none_or(|pattern| matches(pattern, subject))
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Piece {
    Anything,
    One,
    Just(char),
}

fn pieces(pattern: &str) -> Vec<Piece> {
    let mut characters = pattern.chars();
    let mut pieces = Vec::with_capacity(pattern.len());
    while let Some(character) = characters.next() {
        pieces.push(match character {
            '*' => Piece::Anything,
            '?' => Piece::One,
            // A backslash at the very end stands for itself.
            '\\' => Piece::Just(characters.next().unwrap_or('\\')),
            plain => Piece::Just(plain),
        });
    }
    pieces
}

/// Whether a pattern matches the whole subject. On a mismatch only the last `*` takes one more character, so the time
/// is at most the product of both lengths, whatever the pattern.
fn matches(pattern: &str, subject: &str) -> bool {
    let (pieces, subject) = (pieces(pattern), subject.chars().collect::<Vec<char>>());
    let (mut piece, mut at) = (0, 0);
    // Where to resume after a mismatch: behind the last `*`, and how much it has matched.
    let mut retry: Option<(usize, usize)> = None;
    while at < subject.len() {
        let fits = match pieces.get(piece) {
            Some(Piece::Anything) => {
                piece += 1;
                retry = Some((piece, at));
                continue;
            }
            Some(Piece::One) => true,
            Some(Piece::Just(character)) => *character == subject[at],
            None => false,
        };
        if fits {
            piece += 1;
            at += 1;
        } else if let Some((behind, taken)) = retry {
            piece = behind;
            at = taken + 1;
            retry = Some((behind, at));
        } else {
            return false;
        }
    }
    pieces[piece..].iter().all(|piece| *piece == Piece::Anything)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;

    #[test]
    fn a_pattern_matches_all_of_a_subject() {
        let cases: &[(&str, &[&str], &[&str])] = &[
            ("", &[""], &["a"]),
            ("*", &["", "a", "a/b", "a\nb"], &[]),
            ("a", &["a"], &["", "A", "ab", "ba"]),
            ("?", &["a", "/", "\u{e4}", "*"], &["", "ab"]),
            ("src/*", &["src/", "src/a", "src/a/b"], &["src", "xsrc/a"]),
            ("*.rs", &[".rs", "a.rs", "a/b.rs"], &["a.rsx", "a.r"]),
            (
                "a*b*c",
                &["abc", "aXbYc", "abcbc", "a/b/c"],
                &["ab", "acb", "abcd"],
            ),
            ("**", &["", "a"], &[]),
            ("*a?", &["ab", "aaab"], &["a", "ba"]),
            ("git *", &["git log", "git log; rm -r src"], &["git", "gitk log"]),
            (r"ls \*", &["ls *"], &["ls a", r"ls \a"]),
            (r"\?", &["?"], &["a", r"\"]),
            (r"\\", &[r"\"], &[r"\\"]),
            (r"a\", &[r"a\"], &["a"]),
        ];
        for (pattern, yes, no) in cases {
            for (subject, expected) in yes
                .iter()
                .map(|text| (text, true))
                .chain(no.iter().map(|text| (text, false)))
            {
                assert_eq!(matches(pattern, subject), expected, "`{pattern}` and `{subject}`");
            }
        }
    }

    fn rule(text: &str) -> PermissionRule {
        let mut words = text.splitn(3, ' ');
        let permission = match words.next() {
            Some("allow") => RulePermission::Allow,
            Some("ask") => RulePermission::Ask,
            Some("deny") => RulePermission::Deny,
            other => panic!("{other:?}"),
        };
        PermissionRule {
            tool: words.next().unwrap().to_owned(),
            pattern: words.next().map(str::to_owned),
            permission,
        }
    }

    #[test]
    fn the_first_rule_that_speaks_of_it_counts() {
        use RulePermission::{Allow, Ask, Deny};
        let cases: &[(&[&str], &str, &str, RulePermission)] = &[
            (&[], "write", "a", Allow),
            (&["deny write"], "write", "a", Deny),
            (&["deny write"], "read", "a", Allow),
            (&["ask *"], "read", "a", Ask),
            (&["allow write src/*", "deny write"], "write", "src/a", Allow),
            (&["allow write src/*", "deny write"], "write", "a", Deny),
            (&["deny write", "allow write src/*"], "write", "src/a", Deny),
            (
                &["ask * *.env", "allow read", "deny *"],
                "read",
                "config/.env",
                Ask,
            ),
            (&["ask * *.env", "allow read", "deny *"], "read", "a", Allow),
            (&["ask * *.env", "allow read", "deny *"], "shell", "ls", Deny),
            (&["deny shell rm *"], "shell", "rm -r a", Deny),
            (&["deny shell rm *"], "shell", "rmdir a", Allow),
            // Tool names are matched literally: there are no patterns in names.
            (&["deny w*"], "write", "a", Allow),
        ];
        for (rules, tool, subject, expected) in cases {
            let rules: Vec<PermissionRule> = rules.iter().map(|text| rule(text)).collect();
            assert_eq!(
                decide(&rules, tool, subject),
                *expected,
                "{rules:?} {tool} {subject}"
            );
        }
    }

    /// A reference implementation: too simple to be wrong, and too slow to use.
    fn plainly(pieces: &[Piece], subject: &[char]) -> bool {
        match (pieces, subject) {
            ([], []) => true,
            ([Piece::Anything, rest @ ..], _) => {
                plainly(rest, subject) || (!subject.is_empty() && plainly(pieces, &subject[1..]))
            }
            ([Piece::One, rest @ ..], [_, others @ ..]) => plainly(rest, others),
            ([Piece::Just(one), rest @ ..], [other, others @ ..]) => one == other && plainly(rest, others),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn it_says_what_the_plain_definition_says(pattern in r"[ab*?\\]{0,8}", subject in "[ab/]{0,10}") {
            let subject_characters: Vec<char> = subject.chars().collect();
            prop_assert_eq!(matches(&pattern, &subject), plainly(&pieces(&pattern), &subject_characters));
        }

        #[test]
        fn an_exact_pattern_matches_its_subject_and_no_other(subject in any::<String>(), other in r"[ab*?\\]{0,4}") {
            let pattern = exactly(&subject);
            prop_assert!(matches(&pattern, &subject));
            prop_assert_eq!(matches(&pattern, &other), subject == other);
        }
    }
}
