//! `.worktreeinclude`: ignored files that are included anyway.

use bstr::ByteSlice;
use gix_ignore::glob::pattern::{Case, Mode};
use gix_ignore::search::pattern_matching_relative_path;

use super::sources::RuleList;

#[derive(Debug, Eq, PartialEq)]
pub(super) struct Include {
    pub(super) list: RuleList,
}

impl Include {
    /// The result of the last pattern that matches: whether to include the path. `None` if no pattern matches.
    pub(super) fn says(&self, path: &[u8], is_directory: bool, case: Case) -> Option<bool> {
        let name_at = path.rfind_byte(b'/').map(|slash| slash + 1);
        pattern_matching_relative_path(&self.list, path.as_bstr(), name_at, Some(is_directory), case)
            .map(|found| !found.pattern.is_negative())
    }

    /// Whether an ignored directory has to be searched because a pattern's path leads into it. A pattern that is just a
    /// name (`.env`) leads nowhere: it would mean walking all of `node_modules`.
    pub(super) fn leads_into(&self, directory: &[u8]) -> bool {
        self.list.patterns.iter().any(|mapping| {
            let pattern = &mapping.pattern;
            if pattern.is_negative() || !pattern.text.contains(&b'/') {
                return false;
            }
            let plain = match pattern.first_wildcard_pos {
                Some(wildcard) => match pattern.text[..wildcard].rfind_byte(b'/') {
                    Some(slash) => &pattern.text[..slash],
                    None => return false,
                },
                None => pattern.text.as_slice(),
            };
            let is_in = |inner: &[u8], outer: &[u8]| {
                inner == outer || (inner.starts_with(outer) && inner.get(outer.len()) == Some(&b'/'))
            };
            debug_assert!(!pattern.mode.contains(Mode::NO_SUB_DIR), "it has a slash");
            is_in(plain, directory) || is_in(directory, plain)
        })
    }
}
