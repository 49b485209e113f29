//! Jobs that are started and watched on a terminal: colours where there is one, and a bar for progress.

use crate::harness::World;
use crate::job_stage::{job_command, on_a_terminal, on_a_terminal_but, shown};

/// Only a command that sees a terminal uses colours.
const COLOURFUL: &str = r#"test -t 1 && test -t 2 && printf '\033[31mred\033[0m\n'"#;
const RED: &str = "\u{1b}[31mred\u{1b}[0m\r\n";

#[test]
fn a_command_has_a_terminal_if_its_caller_has_one() {
    let world = World::new();
    world.run(&["up"]).expect(0);
    let run = job_command(&world, &["run", "--wait", "--shell", COLOURFUL]);
    assert_eq!(on_a_terminal(run), (0, RED.to_owned()));
    // On a terminal they are kept, and nowhere else.
    let logs = || job_command(&world, &["logs", "last"]);
    let (code, text) = on_a_terminal(logs());
    assert_eq!(code, 0);
    assert!(text.contains("\u{1b}[31mred\u{1b}[0m"), "{text:?}");
    let plain = world.run(&["job", "logs", "last"]).expect(0).stdout;
    assert_eq!(plain.trim_end(), "red");
    let mut without = logs();
    without.env("NO_COLOR", "1");
    let (_, text) = on_a_terminal(without);
    assert_eq!(text.trim_end(), "red");

    // Neither a pipe nor a wish for no colour gives it a terminal.
    assert_eq!(
        world.run(&["job", "run", "--wait", "--shell", COLOURFUL]).code,
        Some(1)
    );
    let refused = job_command(&world, &["run", "--wait", "--no-color", "--shell", COLOURFUL]);
    assert_eq!(on_a_terminal(refused).0, 1);
}

#[test]
fn both_streams_come_in_the_order_in_which_they_were_written() {
    let world = World::new();
    world.run(&["up"]).expect(0);
    let script = "i=0; while test $i -lt 300; do i=$((i+1)); echo out $i; echo err $i >&2; done";
    let (code, text) = on_a_terminal(job_command(&world, &["run", "--wait", "--shell", script]));
    let expected: String = (1..=300)
        .map(|number| format!("out {number}\r\nerr {number}\r\n"))
        .collect();
    assert_eq!((code, text), (0, expected));
}

#[test]
fn whoever_sends_one_stream_elsewhere_gets_two() {
    let world = World::new();
    world.run(&["up"]).expect(0);
    let command = job_command(&world, &["run", "--wait", "--shell", "echo out; echo err >&2"]);
    let errors = world.path().join("errors");
    let file = std::fs::File::create(&errors).unwrap();
    let seen = on_a_terminal_but(command, Some(file));
    assert_eq!(seen, (0, "out\r\n".to_owned()));
    assert_eq!(std::fs::read_to_string(errors).unwrap(), "err\n");
}

#[test]
fn the_terminal_of_a_command_is_as_wide_as_that_of_its_caller() {
    let world = World::new();
    world.run(&["up"]).expect(0);
    let size = job_command(&world, &["run", "--wait", "--shell", "stty size <&1; echo $TERM"]);
    let mut size = size;
    size.env("TERM", "screen");
    assert_eq!(on_a_terminal(size), (0, "40 120\r\nscreen\r\n".to_owned()));
}

#[test]
fn progress_is_a_bar_below_the_output_and_goes_away() {
    let world = World::new();
    world.run(&["up"]).expect(0);
    let script = "echo '::progress 1/4 reading'; sleep 0.3; echo output; sleep 0.3; echo '::progress 3/4 writing'; sleep 0.3";
    let (code, text) = on_a_terminal(job_command(&world, &["run", "--wait", "--shell", script]));
    assert_eq!(code, 0, "{text:?}");
    assert!(
        text.contains("██████░░░░░░░░░░░░░░░░░░  25 %  1/4  reading"),
        "{text:?}"
    );
    assert!(
        text.contains("██████████████████░░░░░░  75 %  3/4  writing"),
        "{text:?}"
    );
    assert!(!text.contains("::progress"), "{text:?}");
    // It is taken away before anything else is written, and at the end.
    assert!(text.contains("\r\u{1b}[Koutput\r\n"), "{text:?}");
    assert!(text.ends_with("\r\u{1b}[K"), "{text:?}");
    let progress = &shown(&world, "last")["progress"];
    assert_eq!(
        (progress["done"].as_u64(), progress["total"].as_u64()),
        (Some(3), Some(4))
    );
}

#[test]
fn whoever_does_not_stay_is_told_how_to_come_back() {
    let world = World::new();
    world.run(&["up"]).expect(0);
    let (code, text) = on_a_terminal(job_command(&world, &["run", "--", "true"]));
    let id = shown(&world, "last")["id"].as_str().unwrap().to_owned();
    assert_eq!(code, 0);
    assert_eq!(
        text,
        format!("{id} queued\r\nnote: watch it with `tidelock job logs -f {id}`\r\n")
    );
}
