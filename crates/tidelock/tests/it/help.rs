//! What `--help` and `--version` say.

use crate::harness::World;

const COMMANDS: &[&[&str]] = &[
    &[],
    &["up"],
    &["down"],
    &["status"],
    &["doctor"],
    &["ps"],
    &["activity"],
    &["why"],
    &["backup"],
    &["export"],
    &["join"],
    &["import"],
    &["serve"],
    &["config"],
    &["config", "path"],
    &["config", "check"],
    &["completions"],
    &["man"],
    &["breaker"],
    &["breaker", "list"],
    &["breaker", "show"],
    &["breaker", "reset"],
    &["breaker", "force"],
    &["breaker", "history"],
    &["breaker", "record"],
    &["lsp"],
    &["lsp", "list"],
    &["lsp", "start"],
    &["lsp", "stop"],
    &["lsp", "restart"],
    &["lsp", "health"],
    &["lsp", "log"],
    &["lsp", "config"],
    &["lsp", "trust"],
    &["lsp", "diagnostics"],
    &["lsp", "hover"],
    &["lsp", "completions"],
    &["lsp", "definition"],
    &["lsp", "declaration"],
    &["lsp", "type-definition"],
    &["lsp", "implementation"],
    &["lsp", "references"],
    &["lsp", "rename"],
    &["lsp", "code-actions"],
    &["lsp", "format"],
    &["lsp", "signature"],
    &["lsp", "symbols"],
    &["lsp", "workspace-symbols"],
    &["lsp", "calls"],
    &["lsp", "request"],
    &["job"],
    &["job", "run"],
    &["job", "list"],
    &["job", "show"],
    &["job", "logs"],
    &["job", "wait"],
    &["job", "cancel"],
    &["job", "retry"],
    &["job", "gc"],
    &["job", "workers"],
    &["run"],
    &["session"],
    &["session", "list"],
    &["session", "show"],
    &["session", "attach"],
    &["session", "send"],
    &["session", "cancel"],
    &["session", "queue"],
    &["session", "answer"],
    &["session", "fork"],
    &["session", "rename"],
    &["session", "archive"],
    &["session", "export"],
    &["session", "rm"],
    &["acp"],
    &["agent"],
    &["agent", "list"],
    &["exec"],
    &["plan"],
    &["plan", "new"],
    &["plan", "list"],
    &["plan", "show"],
    &["plan", "diff"],
    &["plan", "exec"],
    &["plan", "record"],
    &["plan", "cat"],
    &["plan", "changesets"],
    &["plan", "log"],
    &["plan", "seal"],
    &["plan", "check"],
    &["plan", "apply"],
    &["plan", "undo"],
    &["plan", "refresh"],
    &["plan", "discard"],
    &["plan", "gc"],
    &["context"],
    &["index"],
    &["index", "list"],
    &["index", "rebuild"],
    &["index", "rm"],
    &["workspace"],
    &["workspace", "list"],
    &["workspace", "forget"],
    &["workspace", "checks"],
];

#[test]
fn the_help_of_every_command() {
    let world = World::new();
    let mut said = String::new();
    for command in COMMANDS {
        let arguments: Vec<&str> = command.iter().copied().chain(["--help"]).collect();
        let outcome = world.run(&arguments).expect(0);
        assert_eq!(outcome.stderr, "");
        if *command != ["help"] {
            assert!(
                outcome.stdout.contains("Examples:"),
                "{command:?} has no examples"
            );
        }
        said.push_str(&format!(
            "$ tidelock {}\n{}\n",
            arguments.join(" "),
            outcome.stdout
        ));
    }
    insta::assert_snapshot!(said);
}

#[test]
fn the_help_has_every_exit_code() {
    let help = World::new().run(&["--help"]).expect(0).stdout;
    let codes: Vec<&str> = help
        .lines()
        .filter_map(|line| line.trim().split("  ").next())
        .filter(|word| word.parse::<u8>().is_ok())
        .collect();
    assert_eq!(codes, ["0", "1", "2", "3", "4", "130"]);
}

#[test]
fn the_version_is_that_of_the_package() {
    let outcome = World::new().run(&["--version"]).expect(0);
    assert_eq!(
        outcome.stdout,
        format!("tidelock {}\n", env!("CARGO_PKG_VERSION"))
    );
}
