//! Every kind of change, in every kind of sandbox.

use plans::{LeftOut, WhyLeftOut};
use process::Exit;

use crate::sandbox_support::{ALL, WORKSPACE, World, shown, snapshot};

/// A script, the changes that it makes, and what is left out.
type Case = (
    &'static str,
    &'static [&'static str],
    &'static [(&'static str, WhyLeftOut)],
);

const CASES: &[Case] = &[
    ("true", &[], &[]),
    (
        "echo new > new.txt; mkdir -p x/y; echo other > x/y/z",
        &[
            "create new.txt: - -> new",
            "create x: - -> dir",
            "create x/y: - -> dir",
            "create x/y/z: - -> other",
        ],
        &[],
    ),
    ("echo new > a.txt", &["modify a.txt: alpha -> new"], &[]),
    ("sed -i s/alpha/new/ a.txt", &["modify a.txt: alpha -> new"], &[]),
    ("rm b.txt", &["delete b.txt: beta -> -"], &[]),
    ("mv b.txt c.txt", &["rename c.txt from b.txt: beta -> beta"], &[]),
    (
        "mv b.txt c.txt; chmod 755 c.txt",
        &["rename c.txt from b.txt: beta -> beta/755"],
        &[],
    ),
    (
        "mv b.txt a.txt",
        &["modify a.txt: alpha -> beta", "delete b.txt: beta -> -"],
        &[],
    ),
    (
        "mv dir moved",
        &[
            "delete dir: dir -> -",
            "delete dir/deep: dir -> -",
            "create moved: - -> dir",
            "create moved/deep: - -> dir",
            "rename moved/deep/three.txt from dir/deep/three.txt: three -> three",
            "rename moved/one.txt from dir/one.txt: one -> one",
            "rename moved/two.txt from dir/two.txt: two -> two",
        ],
        &[],
    ),
    ("chmod 755 run.sh", &["chmod run.sh: run -> run/755"], &[]),
    ("chmod 755 run.sh; chmod 644 run.sh; touch a.txt", &[], &[]),
    (
        "ln -sfn b.txt link; ln -s /etc new-link",
        &["symlink link: @a.txt -> @b.txt", "symlink new-link: - -> @/etc"],
        &[],
    ),
    ("rm link; echo new > link", &["modify link: @a.txt -> new"], &[]),
    (
        "rm a.txt; mkdir a.txt; echo new > a.txt/in",
        &["modify a.txt: alpha -> dir", "create a.txt/in: - -> new"],
        &[],
    ),
    (
        "rm -r dir; echo new > dir",
        &[
            "modify dir: dir -> new",
            "delete dir/deep: dir -> -",
            "delete dir/deep/three.txt: three -> -",
            "delete dir/one.txt: one -> -",
            "delete dir/two.txt: two -> -",
        ],
        &[],
    ),
    (
        "mkdir void; rmdir empty",
        &["delete empty: dir -> -", "create void: - -> dir"],
        &[],
    ),
    ("rmdir empty; mkdir empty", &[], &[]),
    (
        "echo new > \"$(printf 'caf\\351.txt')\"; echo new > \"$(printf '\\377')\"",
        &["modify caf\\xe9.txt: 1B -> new", "create \\xff: - -> new"],
        &[],
    ),
    (
        "rm -r dir; mkdir dir; echo new > dir/one.txt; echo other > dir/more",
        &[
            "delete dir/deep: dir -> -",
            "delete dir/deep/three.txt: three -> -",
            "create dir/more: - -> other",
            "modify dir/one.txt: one -> new",
            "delete dir/two.txt: two -> -",
        ],
        &[],
    ),
    (
        "rm -r dir/deep a.txt; mkdir dir/deep; echo three > dir/deep/three.txt; echo alpha > a.txt",
        &[],
        &[],
    ),
    // What is ignored is there, can be written, and is not carried.
    (
        "cat .env && echo x > .env && echo x > some.log && mkdir -p target/debug && echo x > target/debug/mine",
        &[],
        &[],
    ),
    // The rules are those of the sandbox.
    (
        "echo hidden >> .gitignore; echo x > hidden; echo new > shown",
        &["modify .gitignore: 18B -> 25B", "create shown: - -> new"],
        &[],
    ),
    // What is known is carried, ignored or not.
    (
        "echo a.txt >> .gitignore; echo new > a.txt",
        &["modify .gitignore: 18B -> 24B", "modify a.txt: alpha -> new"],
        &[],
    ),
    (
        "mkfifo fifo; echo new > a.txt",
        &["modify a.txt: alpha -> new"],
        &[("fifo", WhyLeftOut::Special)],
    ),
    (
        "mkdir made && cd made && git init -q && echo new > x",
        &["create made: - -> dir", "create made/x: - -> new"],
        &[("made/.git", WhyLeftOut::History)],
    ),
    (
        "mkdir lib && echo 'gitdir: ../elsewhere' > lib/.git && echo new > lib/x",
        &[],
        &[("lib", WhyLeftOut::ChangedRepository)],
    ),
    (
        "mkdir .GiT 'git~1' dir/GIT~1 && echo x > .GiT/x && echo x > 'git~1/x'",
        &[],
        &[
            (".GiT", WhyLeftOut::Name),
            ("dir/GIT~1", WhyLeftOut::Name),
            ("git~1", WhyLeftOut::Name),
        ],
    ),
    (
        "n=$(printf '%0200d' 0); d=$n; for i in $(seq 14); do d=$d/$n; done
            mkdir -p new/$d two/$d && echo x > two/$d/x && mv two new/$d/ && echo new > new/x",
        &["create new: - -> dir", "create new/x: - -> new"],
        &[(
            "new/00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
            WhyLeftOut::TooLong,
        )],
    ),
    (
        "mkdir .tidelock && echo x > .tidelock/x; echo x > .git/x; true",
        &[],
        &[],
    ),
    ("ln a.txt hard", &["create hard: - -> alpha"], &[]),
];

#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_command_does_is_captured_and_reaches_nothing_else() {
    let world = World::of(WORKSPACE).await;
    let taken = world.take();
    let places = [world.workspace.clone(), taken.base.tree.clone()];
    let is_gits = |path: &std::path::Path| path.starts_with(".git");
    let before = places.each_ref().map(|place| snapshot(place, &is_gits));
    for name in ALL {
        let Some(strategy) = world.strategy(name) else {
            continue;
        };
        for (script, changes, left_out) in CASES {
            let mut subject = world.open(strategy.clone(), &taken).await;
            let said = world.run_in(&subject, script).await;
            assert_eq!(said.exit, Exit::Code(0), "{name}: {script}: {}", said.text);
            let captured = subject.capture();
            let found: Vec<String> = captured.changes.iter().map(shown).collect();
            assert_eq!(found, *changes, "{name}: {script}");
            let expected: Vec<LeftOut> = left_out
                .iter()
                .map(|(name, why)| LeftOut {
                    path: (*name).to_owned(),
                    why: *why,
                })
                .collect();
            assert_eq!(captured.left_out, expected, "{name}: {script}");
            assert_eq!(
                subject.capture(),
                captured,
                "{name}: {script}: a capture is the same again"
            );

            // What is recorded is known, also to the next daemon.
            let first = subject.known.clone();
            subject.record(&captured.changes);
            assert_eq!(subject.capture().changes, [], "{name}: {script}: recorded");
            let mut subject = subject.reopen().await;
            assert_eq!(subject.capture().changes, [], "{name}: {script}: opened again");
            assert_eq!(
                subject.real_entries(),
                subject.known_entries(),
                "{name}: {script}"
            );
            subject.known = first;
            assert_eq!(
                subject.capture(),
                captured,
                "{name}: {script}: from the beginning"
            );
            assert!(subject.remove().await > 0);
        }
        assert_eq!(
            places.each_ref().map(|place| snapshot(place, &is_gits)),
            before,
            "{name}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_recorded_and_is_gone_again_is_a_change() {
    let world = World::of(WORKSPACE).await;
    let taken = world.take();
    for name in ALL {
        let Some(strategy) = world.strategy(name) else {
            continue;
        };
        let mut subject = world.open(strategy, &taken).await;
        let steps: &[(&str, &[&str])] = &[
            (
                "echo new > new.txt; echo new > a.txt; rm b.txt; rm -r dir",
                &[
                    "modify a.txt: alpha -> new",
                    "delete b.txt: beta -> -",
                    "delete dir: dir -> -",
                    "delete dir/deep: dir -> -",
                    "delete dir/deep/three.txt: three -> -",
                    "delete dir/one.txt: one -> -",
                    "delete dir/two.txt: two -> -",
                    "create new.txt: - -> new",
                ],
            ),
            (
                "rm new.txt; echo alpha > a.txt; echo other > b.txt; mkdir dir; echo two > dir/two.txt",
                &[
                    "modify a.txt: new -> alpha",
                    "create b.txt: - -> other",
                    "create dir: - -> dir",
                    "create dir/two.txt: - -> two",
                    "delete new.txt: new -> -",
                ],
            ),
            ("echo other > a.txt", &["modify a.txt: alpha -> other"]),
        ];
        for (script, changes) in steps {
            assert_eq!(world.run_in(&subject, script).await.exit, Exit::Code(0));
            let captured = subject.capture().changes;
            assert_eq!(
                captured.iter().map(shown).collect::<Vec<_>>(),
                *changes,
                "{name}: {script}"
            );
            subject.record(&captured);
            assert_eq!(
                subject.real_entries(),
                subject.known_entries(),
                "{name}: {script}"
            );
        }
        subject.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_may_be_on_another_base_than_the_sandbox() {
    let world = World::of(WORKSPACE).await;
    let taken = world.take();
    world
        .shell("echo other > a.txt; rm b.txt; echo new > new.txt")
        .await;
    let later = world.take();
    for name in ALL {
        let Some(strategy) = world.strategy(name) else {
            continue;
        };
        let mut subject = world.open(strategy, &taken).await;
        subject.known.base = later.base.manifest.clone();
        assert_eq!(world.run_in(&subject, "rm run.sh").await.exit, Exit::Code(0));
        let captured = subject.capture().changes;
        let expected = [
            "modify a.txt: other -> alpha",
            "create b.txt: - -> beta",
            "delete new.txt: new -> -",
            "delete run.sh: run -> -",
        ];
        assert_eq!(captured.iter().map(shown).collect::<Vec<_>>(), expected, "{name}");
        subject.record(&captured);
        assert_eq!(subject.real_entries(), subject.known_entries(), "{name}");
        assert_eq!(subject.capture().changes, [], "{name}");
        subject.remove().await;
    }
}
