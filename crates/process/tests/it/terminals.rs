//! Standard error that is handed out, and commands that write to terminals.

use process::{Child, Exit, Spec, StandardError};
use protocol::JobTerminal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{SHORT, Service, descriptors, is_alive, pid_in, until, within};

const SIZE: JobTerminal = JobTerminal {
    columns: 113,
    rows: 47,
};

/// What a command said on its two streams, and how it ended.
async fn said(child: &Child) -> (String, String, Exit) {
    let (mut stdout, mut stderr) = (child.stdout().unwrap(), child.stderr().unwrap());
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let (out_read, err_read, ended) = within(async {
        tokio::join!(
            stdout.read_to_end(&mut out),
            stderr.read_to_end(&mut err),
            child.ended()
        )
    })
    .await;
    assert_eq!((out_read.unwrap(), err_read.unwrap()), (out.len(), err.len()));
    (
        String::from_utf8(out).unwrap(),
        String::from_utf8(err).unwrap(),
        ended.exit,
    )
}

fn with_streams(mut spec: Spec, terminal: Option<JobTerminal>) -> Spec {
    spec.stderr = StandardError::HandedOut;
    spec.terminal = terminal;
    spec
}

#[tokio::test]
async fn the_two_streams_stay_apart_byte_for_byte() {
    let service = Service::new().await;
    let script = r"printf 'a\n\tb\r\n\303\251\001\n'; printf 'x\ny' >&2; exit 3";
    let expected = ("a\n\tb\r\né\u{1}\n".to_owned(), "x\ny".to_owned(), Exit::Code(3));
    for terminal in [None, Some(SIZE)] {
        let spec = with_streams(service.sh(script), terminal);
        let child = service.processes.spawn(spec).await.unwrap();
        assert_eq!(said(&child).await, expected, "{terminal:?}");
        assert_eq!(child.stderr_tail(), "", "{terminal:?}");
        assert!(child.stderr().is_none(), "taken twice");
    }
    service.nothing_left().await;
}

#[tokio::test]
async fn standard_error_is_kept_or_handed_out_but_not_both() {
    let service = Service::new().await;
    for terminal in [None, Some(SIZE)] {
        let mut spec = service.sh("echo kept >&2");
        spec.terminal = terminal;
        let child = service.processes.spawn(spec).await.unwrap();
        assert!(child.stderr().is_none(), "{terminal:?}");
        within(child.ended()).await;
        assert_eq!(child.stderr_tail(), "kept\n", "{terminal:?}");
    }
    service.nothing_left().await;
}

#[tokio::test]
async fn both_streams_can_be_one_in_the_order_in_which_they_were_written() {
    let service = Service::new().await;
    let script = "i=0; while test $i -lt 500; do i=$((i+1)); echo o$i; echo e$i >&2; done";
    let expected: String = (1..=500)
        .map(|number| format!("o{number}\ne{number}\n"))
        .collect();
    for terminal in [None, Some(SIZE)] {
        let mut spec = with_streams(service.sh(script), terminal);
        spec.stderr = StandardError::WithOutput;
        let child = service.processes.spawn(spec).await.unwrap();
        assert!(child.stderr().is_none(), "{terminal:?}");
        let mut out = String::new();
        within(child.stdout().unwrap().read_to_string(&mut out))
            .await
            .unwrap();
        assert_eq!(out, expected, "{terminal:?}");
        assert_eq!(within(child.ended()).await.exit, Exit::Code(0));
        assert_eq!(child.stderr_tail(), "", "{terminal:?}");
    }
    service.nothing_left().await;
}

/// What a command can find out about its streams.
const LOOK: &str = "import os, sys, termios
for number in (0, 1, 2):
    print(number, os.isatty(number))
    if os.isatty(number):
        print(os.get_terminal_size(number), os.ttyname(number) == os.ttyname(1))
        print(bool(termios.tcgetattr(number)[1] & termios.OPOST), bool(termios.tcgetattr(number)[3] & termios.ECHO))
try:
    open('/dev/tty')
except OSError as error:
    print(error.strerror)
print('red', file=sys.stderr)
";

#[tokio::test]
async fn a_terminal_is_one_and_controls_nobody() {
    let service = Service::new().await;
    let cases = [
        (None, "0 False\n1 False\n2 False\n"),
        (
            Some(SIZE),
            "0 False\n1 True\nos.terminal_size(columns=113, lines=47) True\nFalse False\n2 True\nos.terminal_size(columns=113, lines=47) False\nFalse False\n",
        ),
    ];
    for (terminal, expected) in cases {
        let spec = with_streams(service.spec("python3", &["-c", LOOK]), terminal);
        let child = service.processes.spawn(spec).await.unwrap();
        let expected = format!("{expected}No such device or address\n");
        assert_eq!(
            said(&child).await,
            (expected, "red\n".to_owned(), Exit::Code(0)),
            "{terminal:?}"
        );
    }
    service.nothing_left().await;
}

#[tokio::test]
async fn programs_use_colour_on_a_terminal_and_nowhere_else() {
    let service = Service::new().await;
    std::fs::create_dir(service.path("directory")).unwrap();
    for (terminal, is_coloured) in [(None, false), (Some(SIZE), true)] {
        let mut spec = with_streams(service.sh("ls -d --color=auto directory"), terminal);
        spec.environment.insert("TERM".into(), "xterm-256color".into());
        let child = service.processes.spawn(spec).await.unwrap();
        let (out, err, exit) = said(&child).await;
        assert_eq!((err.as_str(), exit), ("", Exit::Code(0)));
        assert_eq!(out.contains("\u{1b}["), is_coloured, "{out:?}");
    }
    service.nothing_left().await;
}

#[tokio::test]
async fn a_terminal_carries_a_lot_and_ends_where_the_output_ended() {
    let service = Service::new().await;
    let script = "seq 300000; seq 300000 >&2; cat";
    let spec = with_streams(service.sh(script), Some(SIZE));
    let child = service.processes.spawn(spec).await.unwrap();
    let mut stdin = child.stdin().unwrap();
    stdin.write_all(b"from the input").await.unwrap();
    drop(stdin);
    let numbers: String = (1..=300_000).map(|number| format!("{number}\n")).collect();
    let (out, err, exit) = said(&child).await;
    assert!(out == format!("{numbers}from the input"), "{} bytes", out.len());
    assert!(err == numbers, "{} bytes", err.len());
    assert_eq!(exit, Exit::Code(0));
    service.nothing_left().await;
}

#[tokio::test]
async fn closing_our_end_hangs_up_on_nobody() {
    let service = Service::new().await;
    let script = "trap 'echo hup > hup' HUP; echo $$ > ready; until test -e go; do sleep 0.05; done; exit 4";
    let child = service
        .processes
        .spawn(with_streams(service.sh(script), Some(SIZE)))
        .await
        .unwrap();
    let pid = pid_in(&service.path("ready")).await;
    drop((child.stdout(), child.stderr()));
    std::fs::write(service.path("go"), "").unwrap();
    assert_eq!(within(child.ended()).await.exit, Exit::Code(4));
    assert!(!service.path("hup").exists(), "it was hung up on");
    assert!(!is_alive(pid));
    service.nothing_left().await;
}

#[tokio::test]
async fn nothing_hangs_on_streams_that_nobody_takes() {
    let service = Service::new().await;
    for terminal in [None, Some(SIZE)] {
        let before = descriptors();
        // It ends only when it has written everything.
        let script =
            "trap 'seq 200000; seq 200000 >&2; exit 6' TERM; echo $$ > ready; while :; do sleep 0.05; done";
        let child = service
            .processes
            .spawn(with_streams(service.sh(script), terminal))
            .await
            .unwrap();
        pid_in(&service.path("ready")).await;
        let plan = process::StopPlan {
            term: crate::support::PATIENCE,
            ..SHORT
        };
        assert_eq!(within(child.stop(plan)).await.exit, Exit::Code(6), "{terminal:?}");
        drop(child);
        service.nothing_left().await;
        until("every descriptor is closed", || descriptors() == before).await;
        std::fs::remove_file(service.path("ready")).unwrap();
    }
}
