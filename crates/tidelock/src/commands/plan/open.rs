//! Opens a plan.

use protocol::{OpenPlan, Plan};

use super::labels::short;
use super::{PLANS, post};
use crate::cli::{NewArguments, OpenArguments};
use crate::client::Client;
use crate::commands::ids::PLAN;
use crate::error::Failure;
use crate::output::Report;
use crate::paths;
use crate::printable::Answer;
use crate::start::Repeat;

pub(super) fn run(arguments: &NewArguments, client: &Client) -> Result<Report, Failure> {
    let directory = match &arguments.directory {
        Some(directory) => paths::directory(directory)?,
        None => paths::directory(&paths::current_directory()?)?,
    };
    let order = OpenPlan {
        max_parallel: arguments.max_parallel,
        if_child_fails: arguments.if_child_fails.map(Into::into),
        idempotency_key: arguments.key.clone(),
        ..order(&arguments.open, directory, client)?
    };
    let plan: Answer<Plan> = open(&order, client)?;
    Ok(Report::shown(told(&plan), plan))
}

/// Builds the request. The directory is ignored for a plan with a parent.
pub(in crate::commands) fn order(
    arguments: &OpenArguments,
    directory: String,
    client: &Client,
) -> Result<OpenPlan, Failure> {
    let parent = arguments
        .parent
        .as_ref()
        .map(|parent| PLAN.find(parent, client))
        .transpose()?;
    Ok(OpenPlan {
        directory: parent.is_none().then_some(directory),
        title: arguments.title.clone(),
        parent,
        checks: arguments.checks.clone(),
        strategy: arguments.strategy.map(Into::into),
        ..OpenPlan::default()
    })
}

/// Opens a plan. With an idempotency key, the request may be repeated.
fn open(order: &OpenPlan, client: &Client) -> Result<Answer<Plan>, Failure> {
    let repeat = match order.idempotency_key {
        Some(_) => Repeat::Harmless,
        None => Repeat::Harmful,
    };
    post(PLANS, order, repeat, client)
}

fn told(plan: &Plan) -> String {
    let id = short(&plan.id);
    let mut text = format!("{} {}\n", plan.id, plan.state.as_str());
    text.push_str(&format!("workspace  {}\n", plan.root));
    let (strategy, root) = (plan.strategy, &plan.sandbox_root);
    let seen = if plan.root == plan.sandbox_root {
        ", visible only to its commands"
    } else {
        ""
    };
    text.push_str(&format!("sandbox    {root}{seen} ({strategy})\n"));
    text.push_str(&format!("work in it with: tidelock plan exec {id} -- COMMAND\n"));
    text
}

#[cfg(test)]
mod tests {
    use protocol::{PlanState, SandboxStrategy};

    use super::super::samples::plan;
    use super::*;

    #[test]
    fn where_the_sandbox_is_is_told() {
        let copy = Plan {
            strategy: SandboxStrategy::Copy,
            sandbox_root: "/state/plans/sandboxes/1/tree".to_owned(),
            ..plan(PlanState::Open)
        };
        insta::assert_snapshot!(format!("{}\n{}", told(&plan(PlanState::Open)), told(&copy)));
    }
}
