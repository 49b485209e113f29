//! Seals and discards plans, and frees their space.

use protocol::{ChangePlan, CollectPlans, ForgetPlan, Plan, PlanForgotten, PlansCollected};
use serde_json::json;

use super::labels::{short, summary};
use super::{PLANS, path, post};
use crate::cli::{DiscardArguments, ForgetArguments, PlanGcArguments};
use crate::client::{Client, whole_ms};
use crate::commands::ids::PLAN;
use crate::error::Failure;
use crate::output::Report;
use crate::printable::{Answer, printable};
use crate::start::Repeat;
use crate::units::{format_bytes, format_count};

const NAMED: usize = 20;

pub(super) fn seal(wanted: &str, client: &Client) -> Result<Report, Failure> {
    let id = PLAN.find(wanted, client)?;
    let request = ChangePlan::default();
    let plan: Answer<Plan> = post(&path(&id, "/seal"), &request, Repeat::Harmless, client)?;
    let text = format!(
        "{} is {}: {}.\n",
        plan.id,
        plan.state.as_str(),
        summary(&plan.summary)
    );
    Ok(Report::shown(text, plan))
}

pub(super) fn discard(arguments: &DiscardArguments, client: &Client) -> Result<Report, Failure> {
    let id = PLAN.find(&arguments.plan.plan, client)?;
    let request = ChangePlan {
        version: None,
        even_with_work: arguments.force,
    };
    let plan: Answer<Plan> = post(&path(&id, "/discard"), &request, Repeat::Harmless, client)?;
    let text = format!("{} is {}.\n", plan.id, plan.state.as_str());
    Ok(Report::shown(text, plan))
}

pub(super) fn forget(arguments: &ForgetArguments, client: &Client) -> Result<Report, Failure> {
    // Report what can't be found before removing anything.
    let ids = arguments.plans.iter().map(|wanted| PLAN.find(wanted, client));
    let ids = ids.collect::<Result<Vec<_>, _>>()?;
    let (mut answers, mut text) = (Vec::new(), String::new());
    for id in ids {
        let request = ForgetPlan::default();
        let answer = post(&path(&id, "/forget"), &request, Repeat::Harmful, client)?;
        let forgotten: PlanForgotten = printable(&answer)?;
        let freed = format_bytes(forgotten.bytes);
        text.push_str(&format!("Forgot {}: {freed} freed.\n", forgotten.plan));
        answers.push(answer);
    }
    Ok(Report::success(json!({ "forgotten": answers }), text))
}

pub(super) fn collect(arguments: &PlanGcArguments, client: &Client) -> Result<Report, Failure> {
    let request = CollectPlans {
        older_than_ms: Some(whole_ms(arguments.older_than)),
        dry_run: arguments.dry_run,
    };
    let path = format!("{PLANS}/gc");
    let collected: Answer<PlansCollected> = post(&path, &request, Repeat::Harmless, client)?;
    let text = collected_text(
        &collected,
        if request.dry_run {
            Tense::WouldBe
        } else {
            Tense::Was
        },
    );
    Ok(Report::shown(text, collected))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tense {
    Was,
    WouldBe,
}

fn collected_text(collected: &PlansCollected, tense: Tense) -> String {
    let verb = match tense {
        Tense::Was => "were",
        Tense::WouldBe => "would be",
    };
    let mut text = if collected.sandboxes.is_empty() && collected.bases == 0 {
        "Nothing to free.\n".to_owned()
    } else {
        format!(
            "{} {verb} freed: {} and {}.\n",
            format_bytes(collected.bytes),
            format_count(collected.sandboxes.len() as u64, "sandbox").replace("sandboxs", "sandboxes"),
            format_count(collected.bases, "base"),
        )
    };
    for sandbox in collected.sandboxes.iter().take(NAMED) {
        text.push_str(&format!("  {}  {}\n", sandbox.plan, format_bytes(sandbox.bytes)));
    }
    if collected.sandboxes.len() > NAMED {
        text.push_str(&format!("  … and {} more\n", collected.sandboxes.len() - NAMED));
    }
    if !collected.kept.is_empty() {
        let kept = collected.kept.iter().take(NAMED);
        let kept: Vec<String> = kept.map(|id| short(&id.to_string()).to_owned()).collect();
        let more = if collected.kept.len() > NAMED { ", …" } else { "" };
        text.push_str(&format!(
            "Kept because they have unapplied work: {}{more}\n",
            kept.join(", ")
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use protocol::CollectedSandbox;

    use super::*;

    #[test]
    fn what_was_freed_is_counted_and_what_was_kept_is_named() {
        let sandbox = |bytes| CollectedSandbox {
            plan: "plan_01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap(),
            bytes,
        };
        let nothing = PlansCollected::default();
        let some = PlansCollected {
            sandboxes: vec![sandbox(2048), sandbox(10)],
            bases: 1,
            bytes: 1 << 20,
            kept: vec!["plan_01ARZ3NDEKTSV4RRFFQ69G5WRK".parse().unwrap()],
        };
        let said: Vec<String> = [
            (&nothing, Tense::Was),
            (&some, Tense::Was),
            (&some, Tense::WouldBe),
        ]
        .map(|(collected, tense)| collected_text(collected, tense))
        .to_vec();
        insta::assert_snapshot!(said.join("\n"));
    }
}
