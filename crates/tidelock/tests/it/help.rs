//! What `--help` and `--version` say.

use crate::harness::World;

#[test]
fn every_command_has_help_with_examples() {
    let world = World::new();
    let mut commands = vec![Vec::new()];
    let mut seen = 0;
    while let Some(command) = commands.pop() {
        let arguments = [&command[..], &["--help".to_owned()]].concat();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let outcome = world.run(&arguments).expect(0);
        assert_eq!(outcome.stderr, "");
        assert!(
            outcome.stdout.contains("Examples:"),
            "{command:?} has no examples"
        );
        let below = subcommands(&outcome.stdout);
        commands.extend(below.map(|name| [&command[..], &[name.to_owned()]].concat()));
        seen += 1;
    }
    assert!(seen > 100, "{seen} commands");
}

/// The commands that a help text lists.
fn subcommands(help: &str) -> impl Iterator<Item = &str> {
    let list = help.split_once("\nCommands:\n").map_or("", |(_, rest)| rest);
    let list = list.split("\n\n").next().unwrap_or_default();
    // A description that goes on in the next line is indented further.
    let names = list.lines().filter_map(|line| line.strip_prefix("  "));
    let names = names.filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()));
    names
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
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
