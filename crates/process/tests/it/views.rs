//! What a command sees in a view, and what stays in it.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use process::{Enforcement, Exit, Mount, ViewSpec, Why, landlock_support, view_support};
use rustix::fs::{Mode, OFlags, openat};

use crate::support::{SHORT, Service, is_alive, marked, parent_of, pid_in, within};
use crate::view_support::{Layers, names, output, write_below};

#[tokio::test]
async fn a_command_sees_the_layers_and_nobody_else_does() {
    let service = Service::new().await;
    let layers = Layers::new(service.directory.path());
    fs::write(layers.lower.join("doomed"), "x").unwrap();
    let view = service.view(layers.spec()).await;
    let script = "ls; cat base; echo new > made; echo changed > base; rm doomed; id -u; pwd";
    let said = service.says_in(&view, &layers.place, script).await;
    let expected = format!(
        "base\ndoomed\nbase\n{}\n{}\n",
        rustix::process::geteuid(),
        layers.place.display()
    );
    assert_eq!(said, expected);

    assert_eq!(names(&layers.place), ["real"]);
    assert_eq!(names(&layers.lower), ["base", "doomed"]);
    assert_eq!(fs::read_to_string(layers.lower.join("base")).unwrap(), "base\n");
    assert_eq!(names(&layers.upper), ["base", "doomed", "made"]);
    let gone = fs::symlink_metadata(layers.upper.join("doomed")).unwrap();
    assert!(gone.file_type().is_char_device() && gone.rdev() == 0);
    drop(view);
    service.nothing_left().await;
}

#[tokio::test]
async fn everybody_in_a_view_sees_the_same_and_so_does_the_daemon() {
    let service = Service::new().await;
    let layers = Layers::new(service.directory.path());
    let view = service.view(layers.spec()).await;
    let waiting = "echo one > one; until [ -e two ]; do :; done; cat two";
    let first = service
        .processes
        .spawn(service.sh_in(&view, &layers.place, waiting))
        .await
        .unwrap();
    let second = "until [ -e one ]; do :; done; cat one; echo two > half; mv half two";
    assert_eq!(service.says_in(&view, &layers.place, second).await, "one\n");
    assert_eq!(output(&first).await, "two\n");

    let open = |name: &std::ffi::CStr, flags: OFlags| {
        File::from(openat(view.root(), name, flags, Mode::from_raw_mode(0o644)).unwrap())
    };
    let mut read = String::new();
    open(c"two", OFlags::RDONLY).read_to_string(&mut read).unwrap();
    assert_eq!(read, "two\n");
    let flags = OFlags::WRONLY | OFlags::CREATE;
    open(c"three", flags).write_all(b"three\n").unwrap();
    assert_eq!(
        service.says_in(&view, &layers.place, "cat three").await,
        "three\n"
    );
    assert_eq!(names(&layers.upper), ["one", "three", "two"]);

    // Another view of the same lower layer does not see any of it.
    let other = Layers::new(&service.path("other"));
    let other_spec = ViewSpec {
        mounts: vec![Mount::Overlay {
            lower: vec![layers.lower.clone()],
            upper: other.upper.clone(),
            work: other.work.clone(),
            at: other.place.clone(),
        }],
        root: other.place.clone(),
    };
    let other_view = service.view(other_spec).await;
    assert_eq!(service.says_in(&other_view, &other.place, "ls").await, "base\n");
}

#[tokio::test]
async fn a_view_that_is_made_again_shows_what_was_written() {
    let service = Service::new().await;
    let layers = Layers::new(service.directory.path());
    for round in 0..3 {
        let view = service.view(layers.spec()).await;
        let said = service
            .says_in(&view, &layers.place, "cat count; echo x >> count")
            .await;
        assert_eq!(said, "x\n".repeat(round));
    }
}

/// The workspace is covered, and a directory in it shows the real one below a layer of its own.
#[tokio::test]
async fn sources_are_what_everybody_sees_even_where_they_are_covered() {
    let service = Service::new().await;
    let layers = Layers::new(service.directory.path());
    let target = layers.place.join("target");
    let (own, data) = (Layers::new(&service.path("own")), service.path("data"));
    for path in [&target, &data] {
        fs::create_dir(path).unwrap();
    }
    fs::write(target.join("built"), "warm\n").unwrap();
    fs::write(data.join("secret"), "secret\n").unwrap();
    let view = service
        .view(ViewSpec {
            mounts: vec![
                layers.overlay(),
                Mount::Overlay {
                    lower: vec![target.clone()],
                    upper: own.upper.clone(),
                    work: own.work.clone(),
                    at: target.clone(),
                },
                Mount::Bind {
                    source: data.clone(),
                    at: layers.place.join("a/b"),
                },
                Mount::ReadOnly {
                    source: data.clone(),
                    at: layers.place.join("a/r"),
                },
                Mount::Hidden { at: data.clone() },
                Mount::Hidden {
                    at: service.path("upper"),
                },
            ],
            root: layers.place.clone(),
        })
        .await;
    let script = "ls; cat target/built; echo cold > target/built; cat a/b/secret; echo more > a/b/more; cat a/r/more; touch a/r/x 2>/dev/null || echo fixed
        ls ../data ../upper; touch ../data/x 2>/dev/null || echo no; stat -c %a ../data";
    let said = service.says_in(&view, &layers.place, script).await;
    assert_eq!(
        said,
        "a\nbase\ntarget\nwarm\nsecret\nmore\nfixed\n../data:\n\n../upper:\nno\n700\n"
    );
    assert_eq!(fs::read_to_string(target.join("built")).unwrap(), "warm\n");
    assert_eq!(fs::read_to_string(own.upper.join("built")).unwrap(), "cold\n");
    assert_eq!(names(&data), ["more", "secret"]);
    assert_eq!(names(&layers.upper), ["a", "target"]);
    assert_eq!(names(&layers.place), ["real", "target"]);
}

#[tokio::test]
async fn a_confinement_counts_in_a_view() {
    let service = Service::new().await;
    let layers = Layers::new(service.directory.path());
    fs::create_dir(layers.lower.join("sub")).unwrap();
    let view = service.view(layers.spec()).await;
    let script = "try() { if (eval \"$2\") 2>/dev/null; then echo $1; fi; }
        try sub 'echo x > sub/x'; try null 'echo x > /dev/null'; try top 'echo x > top'; try outside 'echo x > ../out'
        try base 'echo x > base'; exit 0";
    let mut spec = service.sh_in(&view, &layers.place, script);
    spec.confinement = write_below(&[&layers.place.join("sub")]);
    let child = service.processes.spawn(spec).await.unwrap();
    assert_eq!(child.confinement(), landlock_support());
    let said = output(&child).await;
    match landlock_support() {
        Enforcement::None => assert_eq!(said, "sub\nnull\ntop\noutside\nbase\n"),
        Enforcement::Partial | Enforcement::Full => assert_eq!(said, "sub\nnull\n"),
    }
    // A directory that is outside only is none in the view.
    let mut spec = service.sh_in(&view, &layers.place, "exit 0");
    fs::create_dir(layers.place.join("only-outside")).unwrap();
    spec.confinement = write_below(&[&layers.place.join("only-outside")]);
    let error = service.refuse(spec).await;
    assert!(matches!(error, process::SpawnError::Confinement(_)), "{error:?}");
}

#[tokio::test]
async fn what_cannot_be_run_in_a_view_is_said() {
    let service = Service::new().await;
    let layers = Layers::new(service.directory.path());
    fs::create_dir(layers.place.join("only-outside")).unwrap();
    fs::write(layers.lower.join("plain"), "x").unwrap();
    let view = service.view(layers.spec()).await;
    let good = || service.sh_in(&view, &layers.place, "exit 0");
    let mut specs = vec![good(); 4];
    specs[0].directory = layers.place.join("only-outside");
    specs[1].directory = layers.place.join("plain");
    specs[2].program = layers.place.join("real");
    specs[3].program = "no-such-program".into();
    let expected = [
        "Directory NotFound",
        "Directory NotADirectory",
        "Program NotFound",
        "Program NotFound",
    ];
    for (spec, expected) in specs.into_iter().zip(expected) {
        let error = service.refuse(spec).await;
        let source = std::error::Error::source(&error).unwrap();
        let kind = source.downcast_ref::<std::io::Error>().unwrap().kind();
        let shown = format!("{error:?}");
        let variant = shown.split([' ', '(']).next().unwrap();
        assert_eq!(format!("{variant} {kind:?}"), expected, "{shown}");
    }
    drop(view);
    service.nothing_left().await;
}

/// The keeper is outside: it has to see, name and kill what is inside.
#[tokio::test]
async fn a_tree_in_a_view_is_listed_explained_and_stopped() {
    let service = Service::new().await;
    let layers = Layers::new(service.directory.path());
    let view = service.view(layers.spec()).await;
    let script = "trap '' TERM; setsid sh -c 'setsid sh -c \"trap \\\"\\\" TERM; echo \\$\\$ > far; while :; do sleep 1; done\" &' &
        echo $$ > near; while :; do sleep 1; done";
    let child = service
        .processes
        .spawn(service.sh_in(&view, &layers.place, script))
        .await
        .unwrap();
    drop(view);
    let near = pid_in(&layers.upper.join("near")).await;
    let far = pid_in(&layers.upper.join("far")).await;
    assert_eq!(near, child.pid());
    let listed = service.processes.list();
    assert_eq!((listed.len(), listed[0].keeper_pid), (1, Some(parent_of(near))));
    for pid in [near, far] {
        let why = service.processes.why(pid);
        assert!(matches!(why, Why::Owned { .. }), "{pid}: {why:?}");
    }
    let environment = fs::read_to_string(format!("/proc/{near}/environ")).unwrap();
    let tag = environment
        .split('\0')
        .find(|one| one.starts_with("TIDELOCK_PROCESS="))
        .unwrap();
    assert!(marked(tag).contains(&near) && marked(tag).contains(&far));
    let ended = within(child.stop(SHORT)).await;
    assert_eq!((ended.exit, ended.left.len()), (Exit::Signal(9), 0));
    assert!(ended.killed.count >= 2, "{ended:?}");
    assert!(!is_alive(near) && !is_alive(far));
    drop(child);
    service.nothing_left().await;
}

#[tokio::test]
async fn what_is_said_of_this_machine_is_tried() {
    let service = Service::new().await;
    let scratch = service.path("scratch");
    fs::create_dir(&scratch).unwrap();
    assert_eq!(view_support(&service.processes, &scratch).await, Ok(()));
    assert_eq!(names(&scratch), [] as [&str; 0]);
    let missing = view_support(&service.processes, &service.path("missing")).await;
    assert!(missing.unwrap_err().contains("missing` cannot be used"));
    // `/proc` holds no layers.
    assert!(view_support(&service.processes, "/proc".as_ref()).await.is_err());
    service.nothing_left().await;
}
