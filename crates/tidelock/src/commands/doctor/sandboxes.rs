//! The sandbox strategies, as tested by the daemon. Without a daemon, another check reports what the kernel offers.

use protocol::{SandboxStrategy, StrategyList, StrategyState};

use super::Check;
use crate::client::{Client, ClientError};
use crate::error::chain;

pub(super) fn check(client: &Client) -> Vec<Check> {
    match client.get::<StrategyList>("/v1/plans/strategies") {
        Ok(list) => judge(&list.strategies),
        // Other checks report an unreachable daemon, and one of another version.
        Err(ClientError::Unreachable { .. }) => Vec::new(),
        Err(ClientError::Refused(refusal)) if refusal.status == 404 => Vec::new(),
        Err(error) => vec![Check::warning(
            "sandbox_overlay",
            chain(&error),
            "see the daemon's log",
        )],
    }
}

/// A strategy that does not work is only a fact, since another one is used. It's a warning if none works.
fn judge(strategies: &[StrategyState]) -> Vec<Check> {
    let nothing_works = strategies.iter().all(|strategy| !strategy.works);
    let mut chosen = strategies.iter().find(|strategy| strategy.works);
    strategies
        .iter()
        .map(|strategy| {
            let id = id(strategy.strategy);
            let said = match strategy.text.as_str() {
                "" => String::new(),
                text => format!(": {text}"),
            };
            if nothing_works {
                let advice = "plans can't be opened here; fix the problem with one of these";
                return Check::warning(id, format!("does not work{said}"), advice);
            }
            let word = match (strategy.works, chosen) {
                (true, Some(first)) if first.strategy == strategy.strategy => {
                    chosen = None;
                    "works; plans use this one"
                }
                (true, _) => "works",
                (false, _) => "does not work",
            };
            Check::ok(id, format!("{word}{said}"))
        })
        .collect()
}

fn id(strategy: SandboxStrategy) -> &'static str {
    match strategy {
        SandboxStrategy::Overlay => "sandbox_overlay",
        SandboxStrategy::GitWorktree => "sandbox_git_worktree",
        SandboxStrategy::Copy => "sandbox_copy",
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn the_first_way_that_works_is_the_one_that_is_used() {
        let strategies = |works: [bool; 3]| {
            let names = [
                SandboxStrategy::Overlay,
                SandboxStrategy::GitWorktree,
                SandboxStrategy::Copy,
            ];
            let with = names.into_iter().zip(works);
            with.map(|(strategy, works)| StrategyState {
                strategy,
                works,
                text: if works {
                    String::new()
                } else {
                    "no room".to_owned()
                },
            })
            .collect::<Vec<_>>()
        };
        let told = |works| {
            let checks = judge(&strategies(works));
            let told = checks
                .into_iter()
                .map(|check| (check.id, check.state, check.detail));
            told.collect::<Vec<_>>()
        };
        let row = |id, state, detail: &str| (id, state, detail.to_owned());
        assert_eq!(
            told([true, true, true]),
            [
                row("sandbox_overlay", State::Ok, "works; plans use this one"),
                row("sandbox_git_worktree", State::Ok, "works"),
                row("sandbox_copy", State::Ok, "works"),
            ]
        );
        assert_eq!(
            told([false, true, true]),
            [
                row("sandbox_overlay", State::Ok, "does not work: no room"),
                row("sandbox_git_worktree", State::Ok, "works; plans use this one"),
                row("sandbox_copy", State::Ok, "works"),
            ]
        );
        assert_eq!(
            told([false, false, false]),
            [
                row("sandbox_overlay", State::Warning, "does not work: no room"),
                row("sandbox_git_worktree", State::Warning, "does not work: no room"),
                row("sandbox_copy", State::Warning, "does not work: no room"),
            ]
        );
    }
}
