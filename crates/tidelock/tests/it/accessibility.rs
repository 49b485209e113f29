//! Every page as people need it who do not see it, or not well: axe-core finds nothing, empty or full, in light and in dark, wide
//! and narrow.

use std::fs;

use fantoccini::Client;
use serde_json::Value;

use crate::browser::{Scripts, browse};
use crate::browser_views::{VIEWS, look, sign_in, visit};
use crate::harness::World;
use crate::hostile_stage::{Hostile, Place, places};
use crate::tools::require_installed;

/// The script that is run in each page.
const AXE: &str = "../axe-core/axe.min.js";

/// Rules that a page may break, and why.
const ACCEPTED: [(&str, &str); 0] = [];

/// What the rules say about the page that is shown.
async fn violations(page: &Client, axe: &str) -> Vec<String> {
    page.execute(axe, Vec::new()).await.unwrap();
    let script = "const done = arguments[arguments.length - 1];
        axe.run(document, { resultTypes: ['violations'] })
            .then((found) => done(found.violations.map((each) => ({
                id: each.id, impact: each.impact, help: each.help,
                nodes: each.nodes.slice(0, 3).map((node) => node.html.slice(0, 160) + ' | ' + (node.any[0]?.message ?? '')),
            }))))
            .catch((error) => done([{ id: 'error', help: String(error), nodes: [] }]));";
    let found = page.execute_async(script, Vec::new()).await.unwrap();
    let found: Vec<Value> = serde_json::from_value(found).unwrap();
    found
        .iter()
        .filter(|each| !ACCEPTED.iter().any(|(id, _)| each["id"] == *id))
        .map(|each| {
            format!(
                "{} ({}): {} {}",
                each["id"], each["impact"], each["help"], each["nodes"]
            )
        })
        .collect()
}

/// Looks at all places in every way.
fn check(world: &World, kind: &str, places: &[Place]) {
    let Some(axe) = require_installed(AXE) else {
        return;
    };
    let axe = fs::read_to_string(axe).unwrap();
    browse(world, Scripts::On, async |page| {
        let address = sign_in(world, page).await;
        let mut wrong = Vec::new();
        for view in VIEWS {
            look(page, view).await;
            for place in places {
                let name = format!("{kind}-{}-{}.png", place.name, view.name);
                visit(world, page, &address, place, &name).await;
                let found = violations(page, &axe).await;
                wrong.extend(
                    found
                        .iter()
                        .map(|each| format!("{} {}: {each}", place.name, view.name)),
                );
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    });
}

#[test]
fn pages_with_nothing_to_show_break_no_rule() {
    check(&World::new(), "empty", &places());
}

#[test]
fn pages_full_of_things_break_no_rule() {
    let hostile = Hostile::new();
    check(&hostile.project.world, "full", &hostile.places());
}
