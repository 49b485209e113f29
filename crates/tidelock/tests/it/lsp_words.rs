//! What people read from `tidelock lsp`, with a server that can do everything.

use crate::harness::World;
use crate::lsp_clients::able;
use crate::lsp_stage::{Player, Stage};

/// Snapshots in which what differs from run to run has a name instead.
fn snapshots(world: &World) -> insta::Settings {
    let mut settings = world.snapshots();
    for (pattern, name) in [
        (r"alpha@[0-9a-f]{8}", "alpha@[HASH]"),
        (r"(for +)\d+ m?s", "$1[DURATION]"),
        (r"yes, in \d+ m?s", "yes, in [DURATION]"),
        (r"MEMORY +", "MEMORY  "),
        (r"[0-9.]+ MiB +", "[SIZE]  "),
        (r"[0-9.]+ MiB", "[SIZE]"),
    ] {
        settings.add_filter(pattern, name);
    }
    settings
}

/// What commands say, one after the other, from within the workspace.
fn say(stage: &Stage, commands: &[&[&str]]) -> String {
    let mut said = String::new();
    for arguments in commands {
        let mut command = stage.world.command(&["lsp"]);
        command.args(*arguments).current_dir(stage.work());
        let outcome = crate::harness::finish(command);
        said.push_str(&format!(
            "$ tidelock lsp {}\n{}{}exit {}\n\n",
            arguments.join(" "),
            outcome.stdout,
            outcome.stderr,
            outcome.code.unwrap_or(-1)
        ));
    }
    said
}

#[test]
fn questions_and_answers_in_words() {
    let stage = Stage::new(&[Player::new("alpha", able())]);
    let place = "main.alpha:1:1";
    let said = say(
        &stage,
        &[
            &["hover", place],
            &["references", place],
            &["definition", "main.alpha:3:18"],
            &["diagnostics", "main.alpha"],
            &["rename", place, "new"],
            &["format", "main.alpha"],
            &["completions", place],
            &["code-actions", place],
            &["signature", place],
            &["symbols", "main.alpha"],
            &["workspace-symbols", "th", "--server", "alpha"],
            &["calls", place],
            &["calls", place, "--outgoing"],
        ],
    );
    snapshots(&stage.world).bind(|| insta::assert_snapshot!(said));
}

#[test]
fn the_life_of_a_server_in_words() {
    let stage = Stage::new(&[Player::new("alpha", able())]);
    let said = say(
        &stage,
        &[
            &["start", "main.alpha"],
            &["list"],
            &["health", "alpha"],
            &["restart", "alpha", "--generation", "1"],
            &["restart", "alpha", "--generation", "1"],
            &["stop", "alpha"],
            &["hover", "main.alpha:1:1"],
            &["health", "alpha"],
            &["start", "alpha"],
            &["stop", "--all"],
        ],
    );
    snapshots(&stage.world).bind(|| insta::assert_snapshot!(said));
}
