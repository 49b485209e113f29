//! Which files may be shown to an agent that did not name them.

use protocol::{PermissionRule, RulePermission};

use super::decide;

/// Which files may be shown to an agent that did not name them. A file that an agent may not read without asking isn't
/// shown to it in any other way either.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Readable {
    tool: &'static str,
    rules: Vec<PermissionRule>,
}

impl Readable {
    /// The files that these rules let a tool show.
    pub(crate) fn by(tool: &'static str, rules: Vec<PermissionRule>) -> Self {
        Self { tool, rules }
    }

    /// Allows every file.
    #[must_use]
    pub fn everything() -> Self {
        Self::by("read", Vec::new())
    }

    /// Whether every file may be shown, so that there is no need to check file by file.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        let is_allowed = |rule: &PermissionRule| rule.permission == RulePermission::Allow;
        self.rules.iter().all(is_allowed)
    }

    /// Whether a file may be shown. The path is relative to the root of the workspace, separated by `/`.
    #[must_use]
    pub fn allows(&self, path: &str) -> bool {
        [self.tool, "read"]
            .iter()
            .all(|tool| decide(&self.rules, tool, path) == RulePermission::Allow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(tool: &str, pattern: Option<&str>, permission: RulePermission) -> PermissionRule {
        PermissionRule {
            tool: tool.to_owned(),
            pattern: pattern.map(str::to_owned),
            permission,
        }
    }

    #[test]
    fn what_may_not_be_read_is_not_shown() {
        let all = [
            (Vec::new(), true, true),
            (vec![rule("*", None, RulePermission::Allow)], true, true),
            (
                vec![rule("read", Some("*.env"), RulePermission::Deny)],
                false,
                false,
            ),
            (
                vec![rule("read", Some("*.env"), RulePermission::Ask)],
                false,
                false,
            ),
            (
                vec![rule("context", Some("*.env"), RulePermission::Deny)],
                false,
                false,
            ),
            (vec![rule("shell", None, RulePermission::Deny)], false, true),
        ];
        for (rules, is_everything, shows_secret) in all {
            let readable = Readable::by("context", rules.clone());
            let found = (
                readable.is_everything(),
                readable.allows("a/.env"),
                readable.allows("a.rs"),
            );
            assert_eq!(found, (is_everything, shows_secret, true), "{rules:?}");
        }
        assert!(Readable::everything().is_everything());
    }
}
