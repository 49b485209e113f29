//! One writer and many tails of its stream, against a broadcast channel.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use eventlog::{Event, Log, Sequence, Tail, TailItem};
use kernel::CancellationToken;
use rustix::time::{ClockId, clock_gettime};
use tokio::{
    runtime::Runtime,
    sync::{broadcast, mpsc},
    task::JoinSet,
};

use super::{
    files,
    rows::{EVENT_BYTES, Writer, body, stream},
};
use crate::{
    report::{Bar, Table},
    statistics::nanoseconds,
    turns::{LongContender, Rounds, in_long_turns},
};

const TAILS: usize = 200;
const ROUNDS: Rounds = Rounds {
    counted: 11,
    warm_up: 1,
};
/// How far a receiver of the peer may lag: all events of a turn, so that it never loses one.
const CHANNEL_EVENTS: usize = 8192;

#[derive(Clone, Copy, Debug)]
struct Load {
    tails: usize,
    commits: usize,
    events_per_commit: usize,
}

pub(crate) fn measure() -> Result<Table> {
    let mut table = Table::of_ratios(
        "The log: fan-out",
        "One task makes durable commits, one after the other; 200 tasks have a tail of its stream each, and all of \
         them have seen a first event before the clock starts. It stops when the last tail has the last event. The \
         peer is the same commits to the log, without a tail, and a `tokio::sync::broadcast` channel to which the \
         writer sends the events of each commit: it keeps nothing, replays nothing, and here has room for all events. \
         CPU is that of the whole process, commits included, for each event that a tail received.",
    );
    let runtime = files::runtime()?;
    let loads = [("1 event a commit", 1000, 1), ("50 events a commit", 100, 50)];
    for (label, commits, events_per_commit) in loads {
        let load = Load {
            tails: TAILS,
            commits,
            events_per_commit,
        };
        let [[our_time, our_cpu], [their_time, their_cpu]] = in_long_turns(
            ROUNDS,
            [
                LongContender::new("tidelock", |directory| load.to_tails(&runtime, directory)),
                LongContender::new("tokio broadcast", |directory| {
                    load.to_channel(&runtime, directory)
                }),
            ],
        )?;
        table.compare_rates(
            &format!("events delivered, {label}"),
            &our_time,
            &their_time,
            Bar::None,
        );
        let what = format!("CPU for a delivered event, {label}");
        table.compare(&what, &our_cpu, &their_cpu, Bar::None);
    }
    Ok(table)
}

impl Load {
    fn to_tails(self, runtime: &Runtime, directory: &Path) -> Result<[f64; 2]> {
        let log = files::open(directory)?;
        let stream = stream(0)?;
        let token = CancellationToken::new();
        let mut writer = Writer::new(stream.clone(), EVENT_BYTES);
        let measured = runtime.block_on(async {
            let mut readers = Readers::new(self);
            for _ in 0..self.tails {
                readers.add(log.tail(&stream, Sequence::START, &token.scope()));
            }
            writer.write(&log, 1).await?;
            readers.have_begun().await?;
            let start = Start::now();
            for _ in 0..self.commits {
                writer.write(&log, self.events_per_commit).await?;
            }
            readers.have_ended().await?;
            Ok::<_, anyhow::Error>(start.per_delivery(self))
        })?;
        files::close(log, directory)?;
        Ok(measured)
    }

    fn to_channel(self, runtime: &Runtime, directory: &Path) -> Result<[f64; 2]> {
        let log = files::open(directory)?;
        let mut writer = Writer::new(stream(0)?, EVENT_BYTES);
        let measured = runtime.block_on(async {
            let (sender, _) = broadcast::channel(CHANNEL_EVENTS);
            let mut readers = Readers::new(self);
            for _ in 0..self.tails {
                readers.add(sender.subscribe());
            }
            let mut publisher = Publisher::new(sender);
            publisher.write(&log, &mut writer, 1).await?;
            readers.have_begun().await?;
            let start = Start::now();
            for _ in 0..self.commits {
                publisher.write(&log, &mut writer, self.events_per_commit).await?;
            }
            readers.have_ended().await?;
            Ok::<_, anyhow::Error>(start.per_delivery(self))
        })?;
        files::close(log, directory)?;
        Ok(measured)
    }

    fn events(self) -> usize {
        self.commits * self.events_per_commit
    }
}

/// Commits and then sends, as one would do without the log's own tails.
struct Publisher {
    sender: broadcast::Sender<Arc<Event>>,
    event: Event,
}

impl Publisher {
    fn new(sender: broadcast::Sender<Arc<Event>>) -> Self {
        let event = Event {
            sequence: Sequence::START,
            at_ms: 0,
            kind: Arc::from("output"),
            body: body(EVENT_BYTES),
        };
        Self { sender, event }
    }

    async fn write(&mut self, log: &Log, writer: &mut Writer, events: usize) -> Result<()> {
        writer.write(log, events).await?;
        self.send(events)
    }

    fn send(&mut self, events: usize) -> Result<()> {
        for _ in 0..events {
            self.event.sequence = self.event.sequence.next();
            self.sender
                .send(Arc::new(self.event.clone()))
                .context("the readers have gone")?;
        }
        Ok(())
    }
}

/// Yields one event after another.
trait Source: Send + 'static {
    fn next(&mut self) -> impl Future<Output = Result<Arc<Event>>> + Send;
}

impl Source for Tail {
    async fn next(&mut self) -> Result<Arc<Event>> {
        match Tail::next(self).await? {
            TailItem::Event(event) => Ok(event),
            TailItem::Resync { after } => bail!("the events up to {after} were dropped"),
        }
    }
}

impl Source for broadcast::Receiver<Arc<Event>> {
    async fn next(&mut self) -> Result<Arc<Event>> {
        Ok(self.recv().await?)
    }
}

/// The reading tasks. Each has to see every event, in order.
struct Readers {
    load: Load,
    tasks: JoinSet<Result<()>>,
    begun: mpsc::Sender<()>,
    beginnings: mpsc::Receiver<()>,
}

impl Readers {
    fn new(load: Load) -> Self {
        let (begun, beginnings) = mpsc::channel(load.tails);
        Self {
            load,
            tasks: JoinSet::new(),
            begun,
            beginnings,
        }
    }

    fn add(&mut self, mut source: impl Source) {
        let (begun, events) = (self.begun.clone(), self.load.events() as u64 + 1);
        self.tasks.spawn(async move {
            for expected in 1..=events {
                let sequence = source.next().await?.sequence.get();
                ensure!(sequence == expected, "{sequence} came instead of {expected}");
                if expected == 1 {
                    begun.send(()).await?;
                }
            }
            Ok(())
        });
    }

    async fn have_begun(&mut self) -> Result<()> {
        for _ in 0..self.load.tails {
            self.beginnings.recv().await.context("a reader has gone")?;
        }
        Ok(())
    }

    async fn have_ended(self) -> Result<()> {
        self.tasks.join_all().await.into_iter().collect()
    }
}

struct Start {
    wall: Instant,
    cpu: Duration,
}

impl Start {
    fn now() -> Self {
        Self {
            wall: Instant::now(),
            cpu: cpu_time(),
        }
    }

    fn per_delivery(&self, load: Load) -> [f64; 2] {
        let (wall, cpu) = (self.wall.elapsed(), cpu_time() - self.cpu);
        let deliveries = (load.events() * load.tails) as f64;
        [wall, cpu].map(|time| nanoseconds(time) / deliveries)
    }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    const LOAD: Load = Load {
        tails: 3,
        commits: 4,
        events_per_commit: 2,
    };

    #[test]
    fn every_reader_gets_every_event() {
        let runtime = files::runtime().unwrap();
        for deliver in [Load::to_tails, Load::to_channel] {
            let directory = TempDir::new().unwrap();
            let [wall, cpu] = deliver(LOAD, &runtime, directory.path()).unwrap();
            assert!(wall > 0.0 && cpu > 0.0, "{wall} {cpu}");
        }
    }

    #[test]
    fn a_reader_that_misses_an_event_is_noticed() {
        let runtime = files::runtime().unwrap();
        let ended = runtime.block_on(async {
            let (sender, receiver) = broadcast::channel(CHANNEL_EVENTS);
            // The channel stays open when the reader gives up.
            let _other = sender.subscribe();
            let mut publisher = Publisher::new(sender);
            let mut readers = Readers::new(LOAD);
            readers.add(receiver);
            publisher.send(1)?;
            publisher.event.sequence = publisher.event.sequence.next();
            publisher.send(LOAD.events())?;
            readers.have_ended().await
        });
        assert_eq!(ended.unwrap_err().to_string(), "3 came instead of 2");
    }
}
