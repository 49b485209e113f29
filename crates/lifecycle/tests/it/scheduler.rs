//! A scheduler for one thread that polls what it is told to, in an order that a seed decides.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Wake, Waker},
};

use lifecycle::Spawn;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Names a task.
pub(crate) type TaskId = u64;

/// Runs tasks one poll at a time. Clones are the same scheduler.
#[derive(Clone, Default)]
pub(crate) struct Scheduler {
    /// Guards the tasks and who is ready.
    queue: Arc<Mutex<Queue>>,
}

#[derive(Default)]
struct Queue {
    tasks: BTreeMap<TaskId, Option<Task>>,
    ready: BTreeSet<TaskId>,
    next: TaskId,
}

struct Wakes {
    task: TaskId,
    queue: Arc<Mutex<Queue>>,
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        let mut queue = self.queue.lock().unwrap();
        if queue.tasks.contains_key(&self.task) {
            queue.ready.insert(self.task);
        }
    }
}

impl Spawn for Scheduler {
    fn spawn(&self, _: &'static str, task: Task) {
        self.add(task);
    }
}

impl Scheduler {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap()
    }

    /// Adds a task, which is ready.
    pub(crate) fn add(&self, task: Task) -> TaskId {
        let mut queue = self.lock();
        queue.next += 1;
        let id = queue.next;
        queue.tasks.insert(id, Some(task));
        queue.ready.insert(id);
        id
    }

    /// Takes a task away in the middle of what it does.
    pub(crate) fn drop_task(&self, id: TaskId) {
        let mut queue = self.lock();
        queue.ready.remove(&id);
        let task = queue.tasks.remove(&id);
        // What the task holds is given back while nobody holds the lock.
        drop(queue);
        drop(task);
    }

    /// How many tasks there are.
    pub(crate) fn tasks(&self) -> usize {
        self.lock().tasks.len()
    }

    /// Polls one of the tasks that are ready; `choose` gets their number. Returns whether there was one.
    pub(crate) fn step(&self, choose: impl FnOnce(usize) -> usize) -> bool {
        let mut queue = self.lock();
        if queue.ready.is_empty() {
            return false;
        }
        let index = choose(queue.ready.len());
        let id = *queue.ready.iter().nth(index).expect("the choice is among them");
        queue.ready.remove(&id);
        let task = queue.tasks.get_mut(&id).and_then(Option::take);
        drop(queue);
        let mut task = task.expect("a ready task is there and not being polled");
        let waker = Waker::from(Arc::new(Wakes {
            task: id,
            queue: Arc::clone(&self.queue),
        }));
        let polled = task.as_mut().poll(&mut Context::from_waker(&waker));
        if polled.is_pending() {
            self.lock().tasks.insert(id, Some(task));
        } else {
            // What the task holds is given back while nobody holds the lock.
            drop(task);
            let mut queue = self.lock();
            queue.tasks.remove(&id);
            queue.ready.remove(&id);
        }
        true
    }

    /// Polls until nobody is ready.
    pub(crate) fn run(&self) {
        for _ in 0..1_000_000 {
            if !self.step(|_| 0) {
                return;
            }
        }
        panic!("the tasks do not come to rest");
    }
}
