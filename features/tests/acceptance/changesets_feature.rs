//! How `changesets.feature` is run: on the real service, and on the algorithms of the report.

use std::{collections::BTreeMap, fmt, sync::Arc};

use cucumber::{World, given, then, when};
use protocol::{OutcomeKind, PlanState};
use tokio::sync::Barrier;

use crate::{
    changesets_book::{Book, Refusal, Started, Through},
    changesets_faulty::{Fault, Faulty},
    plans_kit::{Running, Site, actor},
    runner::{Tally, Which, run},
};

#[test]
fn changesets() {
    let tally = run::<ChangesetWorld>("changesets.feature", Which::All, |_| {});
    assert_eq!(
        tally,
        Tally {
            passed: 21,
            failed: 0
        }
    );
}

#[test]
fn the_list_and_last_of_the_report_is_caught() {
    let tally = run::<ChangesetWorld>(
        "changesets.feature",
        Which::WhatCatchesThe("list-and-last"),
        |world| world.fault = Some(Fault::ListAndLast),
    );
    assert_eq!(
        tally,
        Tally {
            passed: 0,
            failed: 15
        }
    );
}

#[test]
fn the_suggested_lock_around_the_list_is_caught() {
    let tally = run::<ChangesetWorld>(
        "changesets.feature",
        Which::WhatCatchesThe("lock-around-the-list"),
        |world| world.fault = Some(Fault::LockAroundTheList),
    );
    assert_eq!(
        tally,
        Tally {
            passed: 0,
            failed: 15
        }
    );
}

#[derive(Default, World)]
struct ChangesetWorld {
    /// Whose algorithm it is; ours if there is none.
    fault: Option<Fault>,
    site: Option<Site>,
    here: Option<Arc<Book>>,
    beside: Option<Arc<Book>>,
    /// The last changeset of each actor.
    started: BTreeMap<String, Started>,
    /// What a record has found that is held, if it is one that finds first and records later.
    found: Option<usize>,
    /// One that was seen before it is in its list.
    not_listed: Option<usize>,
    outcome: Option<Result<(), Refusal>>,
    /// How many revisions there are of the path that the steps write to.
    revision: u64,
}

impl fmt::Debug for ChangesetWorld {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ChangesetWorld")
            .field("fault", &self.fault)
            .field("started", &self.started)
            .finish_non_exhaustive()
    }
}

impl ChangesetWorld {
    fn here(&self) -> &Book {
        self.here.as_ref().expect("a step before has opened a plan")
    }

    fn beside(&self) -> &Book {
        self.beside.as_ref().expect("a step before has opened a plan")
    }

    fn ours(&self) -> (&Running, protocol::PlanId) {
        self.here().ours()
    }

    fn site(&self) -> &Site {
        self.site.as_ref().expect("a step before has made a workspace")
    }

    fn last_of(&self, name: &str) -> &Started {
        &self.started[name]
    }

    async fn record(&mut self, name: &str, through: Through) {
        self.revision += 1;
        let started = match through {
            Through::Handle => self.started.get(name),
            Through::Context => None,
        };
        let outcome = match (self.found.take(), self.here()) {
            // It goes on with what it has found.
            (Some(found), Book::Faulty(faulty)) => {
                faulty.write(found, "path", self.revision);
                Ok(())
            }
            (_, book) => book.record(name, started, ("path", self.revision)).await,
        };
        self.outcome = Some(outcome);
        if let (Some(id), Book::Faulty(faulty)) = (self.not_listed.take(), self.here()) {
            faulty.enlist(id);
        }
    }
}

fn through(word: &str) -> Through {
    match word {
        "handle" => Through::Handle,
        "context" => Through::Context,
        other => panic!("nothing is recorded through a {other}"),
    }
}

#[given("a plan")]
async fn a_plan(world: &mut ChangesetWorld) {
    let (here, beside) = match world.fault {
        Some(fault) => {
            let faulty = Faulty::new(fault);
            let beside = faulty.beside();
            (Book::Faulty(faulty), Book::Faulty(beside))
        }
        None => {
            let site = Site::of("echo before > file");
            let running = site.open().await;
            let other = site.open_on(running.log.clone()).await;
            let plan = running.plan(&site.workspace, "a plan").await;
            world.site = Some(site);
            (Book::Ours(running, plan), Book::Ours(other, plan))
        }
    };
    world.here = Some(Arc::new(here));
    world.beside = Some(Arc::new(beside));
}

#[given(expr = "{word} has started a changeset")]
async fn has_started(world: &mut ChangesetWorld, name: String) {
    let started = world.here().start(&name).await;
    world.started.insert(name, started);
}

#[given(expr = "{word}'s next record has found it and is held")]
async fn has_found(world: &mut ChangesetWorld, name: String) {
    match world.here() {
        // What it has found is what its process has at hand. There is nothing else to hold: the rest is one commit.
        Book::Ours(running, plan) => {
            let context = running.plans.context(*plan, actor(&name)).await.unwrap();
            assert_eq!(context.plan(), *plan);
        }
        Book::Faulty(faulty) => world.found = Some(faulty.find().unwrap()),
    }
}

#[when("another process closes it")]
async fn another_closes(world: &mut ChangesetWorld) {
    world.beside().close(world.last_of("ann")).await;
}

#[when("it is closed")]
async fn it_is_closed(world: &mut ChangesetWorld) {
    world.here().close(world.last_of("ann")).await;
}

#[when(expr = "another process starts one for {word}")]
async fn another_starts(world: &mut ChangesetWorld, name: String) {
    let started = world.beside().start_for(&name).await;
    world.started.insert(name, started);
}

#[when(expr = "{word} starts another one, and it has just come to be seen")]
async fn has_come_to_be_seen(world: &mut ChangesetWorld, name: String) {
    let started = match world.here() {
        Book::Ours(..) => world.beside().start_for(&name).await,
        Book::Faulty(faulty) => {
            let id = faulty.publish(&name);
            world.not_listed = Some(id);
            Started::Faulty(id)
        }
    };
    world.started.insert(name, started);
}

#[when(expr = "{word} records a change through her {word}")]
async fn records(world: &mut ChangesetWorld, name: String, word: String) {
    world.record(&name, through(&word)).await;
}

#[when(expr = "the record goes on through her {word}")]
async fn goes_on(world: &mut ChangesetWorld, word: String) {
    world.record("ann", through(&word)).await;
}

#[when(expr = "{int} actors in two processes record {int} changes each at once")]
async fn all_at_once(world: &mut ChangesetWorld, actors: usize, changes: u64) {
    let barrier = Arc::new(Barrier::new(actors));
    let both = [&world.here, &world.beside].map(|book| Arc::clone(book.as_ref().unwrap()));
    let mut working = Vec::new();
    for number in 0..actors {
        let (barrier, book) = (Arc::clone(&barrier), Arc::clone(&both[number % 2]));
        working.push(tokio::spawn(async move {
            let name = format!("actor-{number}");
            let started = book.start(&name).await;
            // Nobody records before everybody has started.
            barrier.wait().await;
            for revision in 1..=changes {
                let handle = (revision % 2 == 0).then_some(&started);
                let path = format!("path-{number}");
                book.record_in_the_end(&name, handle, (&path, revision)).await;
                tokio::task::yield_now().await;
            }
        }));
    }
    for work in working {
        work.await.unwrap();
    }
}

#[when(expr = "{word} starts {int} changesets and finishes each")]
async fn starts_and_finishes(world: &mut ChangesetWorld, name: String, count: usize) {
    for _ in 0..count {
        let started = world.here().start(&name).await;
        world.record(&name, Through::Context).await;
        world.here().close(&started).await;
    }
}

#[when(expr = "the plan is {word}")]
async fn the_plan_is(world: &mut ChangesetWorld, done: String) {
    let (running, plan) = world.ours();
    match done.as_str() {
        "sealed" => {
            let sealed = running.plans.seal(plan, actor("ann"), None).await.unwrap();
            assert_eq!(sealed.record.state, PlanState::Sealed);
        }
        "applied" => {
            let outcome = running.plans.apply(Running::apply_order(&[plan])).await.unwrap();
            assert_eq!(outcome.kind, OutcomeKind::Done, "{outcome:?}");
        }
        other => panic!("a plan is never {other}"),
    }
}

#[when(expr = "the work goes on in another process")]
async fn in_another_process(world: &mut ChangesetWorld) {
    world.here = world.beside.clone();
}

#[when(expr = "the work goes on after the daemon was started again")]
async fn started_again(world: &mut ChangesetWorld) {
    let next = match (world.here.take().unwrap(), world.beside.take().unwrap()) {
        (here, beside) if world.fault.is_none() => {
            let plan = here.ours().1;
            for started in world.started.values_mut() {
                // A handle keeps its daemon.
                if let Started::Ours(_, handle) = started {
                    *handle = None;
                }
            }
            for book in [beside, here] {
                match Arc::into_inner(book) {
                    Some(Book::Ours(running, _)) => running.stop().await,
                    _ => panic!("somebody still works"),
                }
            }
            let site = world.site();
            site.wait_for_log().await;
            Book::Ours(site.open().await, plan)
        }
        (here, _) => match &*here {
            Book::Faulty(faulty) => Book::Faulty(faulty.beside()),
            Book::Ours(..) => panic!("it is not ours"),
        },
    };
    world.here = Some(Arc::new(next));
}

#[when(expr = "a command of {word} writes {string} and {word}")]
async fn a_command(world: &mut ChangesetWorld, name: String, text: String, ends: String) {
    let (running, plan) = world.ours();
    let code = i32::from(ends == "fails");
    let exit = running
        .run(plan, &name, &format!("echo {text} > file; exit {code}"))
        .await;
    assert_eq!(exit, process::Exit::Code(code));
}

#[then("it is recorded")]
async fn it_is_recorded(world: &mut ChangesetWorld) {
    assert_eq!(world.outcome, Some(Ok(())));
}

#[then(expr = "it is refused, because {}")]
async fn it_is_refused(world: &mut ChangesetWorld, why: String) {
    let refused = world.outcome.as_ref().and_then(|outcome| outcome.as_ref().err());
    assert_eq!(refused.map(Refusal::text), Some(why.as_str()));
}

#[then(expr = "{word}'s changeset has {int} changes")]
async fn has_changes(world: &mut ChangesetWorld, name: String, count: usize) {
    assert_eq!(world.here().count(world.last_of(&name)).await, count);
}

#[then(expr = "the plan has {int} changes")]
async fn the_plan_has(world: &mut ChangesetWorld, count: u64) {
    assert_eq!(world.here().entries().await, count);
    let found = world.here().all().await;
    let sum: usize = found.iter().map(|found| found.changes.len()).sum();
    assert_eq!(sum as u64, count);
}

#[then(expr = "the plan keeps {int} changesets open")]
async fn keeps_open(world: &mut ChangesetWorld, count: usize) {
    assert_eq!(world.here().kept_open().await, count);
}

#[then(expr = "another process finds {int} changesets of {word}")]
async fn another_finds(world: &mut ChangesetWorld, count: usize, name: String) {
    let found = world.beside().all().await;
    let of_name = found.iter().filter(|found| found.actor == name);
    assert_eq!(of_name.count(), count);
}

#[then(expr = "every changeset has the {int} changes of its actor and no other")]
async fn only_its_own(world: &mut ChangesetWorld, count: usize) {
    for found in world.beside().all().await {
        let own = found.actor.replace("actor", "path");
        let paths: Vec<&str> = found.changes.iter().map(|(_, path, _)| path.as_str()).collect();
        assert_eq!(paths, vec![own.as_str(); count], "{}", found.actor);
    }
}

#[then("every change has a number of its own")]
async fn own_numbers(world: &mut ChangesetWorld) {
    let found = world.here().all().await;
    let changes = found.iter().flat_map(|found| &found.changes);
    let mut numbers: Vec<u64> = changes.map(|(number, ..)| *number).collect();
    numbers.sort_unstable();
    let expected: Vec<u64> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, expected);
}

#[then("the changes of every path are in the order in which they were made")]
async fn in_order(world: &mut ChangesetWorld) {
    let mut by_path: BTreeMap<String, BTreeMap<u64, u64>> = BTreeMap::new();
    for found in world.here().all().await {
        for (number, path, revision) in found.changes {
            by_path.entry(path).or_default().insert(number, revision);
        }
    }
    for (path, revisions) in by_path {
        let revisions: Vec<u64> = revisions.into_values().collect();
        let expected: Vec<u64> = (1..=revisions.len() as u64).collect();
        assert_eq!(revisions, expected, "{path}");
    }
}

#[then(expr = "{word}'s changesets have {string} changes")]
async fn changesets_have(world: &mut ChangesetWorld, name: String, expected: String) {
    let found = world.here().all().await;
    let own = found.iter().filter(|found| found.actor == name);
    let counts: Vec<String> = own.map(|found| found.changes.len().to_string()).collect();
    assert_eq!(counts.join(", "), expected);
}

#[then(expr = "the workspace has {string}")]
async fn the_workspace_has(world: &mut ChangesetWorld, text: String) {
    assert_eq!(world.site().files()["file"], format!("644 {text}\n"));
}
