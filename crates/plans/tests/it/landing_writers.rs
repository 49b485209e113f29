//! Landings while others write the same files as fast as they can.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use plans::landing::{
    LandingEnd, Leftover, LeftoverSource, NoRemerge, NoSteps, Remerge, Remerged, SavedMeanwhile,
};
use plans::{Conflict, Effect, Entry, RelPath};

use crate::landing_kit::{Place, landing, live, path, save};

const FILES: usize = 8;
/// How many landings there are of one kind.
const LANDINGS: u32 = 100;
/// How often a writer looks at its file before it saves again.
const LOOKS: u32 = 100;
/// How long a save may be nowhere. It takes milliseconds.
const BOUND: Duration = Duration::from_secs(30);

/// Merges by changing only the first line, which is the plan's.
struct FirstLine {
    plan: String,
}

impl Remerge for FirstLine {
    fn again(&self, path: &RelPath, found: Option<&SavedMeanwhile>) -> Result<Remerged, Box<Conflict>> {
        let Some(SavedMeanwhile {
            entry: Entry::File { mode, .. },
            content: Some(content),
        }) = found
        else {
            return NoRemerge.again(path, found);
        };
        let text = std::str::from_utf8(content).unwrap();
        let Some((_, saved)) = text.split_once('\n') else {
            // A writer is in the middle of it.
            return NoRemerge.again(path, found);
        };
        let made = Bytes::from(format!("{}\n{saved}", self.plan));
        Ok(Remerged {
            after: Some(Entry::File {
                hash: eventlog::BlobId::from_bytes(*blake3::hash(&made).as_bytes()),
                size: made.len() as u64,
                mode: *mode,
            }),
            made: Some(made),
        })
    }
}

/// How a writer saves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Way {
    /// By a new file that is renamed over the old one.
    Rename,
    /// Into the file that is there, from its beginning.
    InPlace,
}

/// What the threads of a test share.
struct PlansInner {
    place: Place,
    names: Vec<RelPath>,
    way: Way,
    stop: AtomicBool, // tidy: a test tells its writers to stop.
    /// What landings have kept, by path.
    kept: Mutex<Vec<(RelPath, String)>>,
    /// Held by who has a file open, and by who removes the old ones: what is written into a file that is removed is lost, and
    /// nobody can know.
    open: RwLock<()>,
}

/// One writer per file saves numbers, one after the other, and looks after each: it has to be in the file, or in what was
/// kept, before long.
#[test]
fn no_save_is_lost() {
    for way in [Way::Rename, Way::InPlace] {
        for merging in [true, false] {
            hammer(way, merging);
        }
    }
}

fn hammer(way: Way, merging: bool) {
    let shared = PlansInner {
        place: Place::in_memory(),
        names: (0..FILES).map(|file| path(&format!("f{file}"))).collect(),
        way,
        stop: AtomicBool::new(false),
        kept: Mutex::new(Vec::new()),
        open: RwLock::new(()),
    };
    for file in 0..FILES {
        save(&shared.place.root().join(format!("f{file}")), "base\n0\n");
    }
    let shared = &shared;
    let (landed, disturbed) = thread::scope(|scope| {
        let writers: Vec<_> = (0..FILES)
            .map(|file| scope.spawn(move || shared.write_until_stopped(file)))
            .collect();
        let (mut landed, mut disturbed) = (0, 0);
        for number in 0..LANDINGS {
            // A writer that is finished has failed.
            if writers.iter().any(thread::ScopedJoinHandle::is_finished) {
                break;
            }
            match land_once(shared, number, merging) {
                true => landed += 1,
                false => disturbed += 1,
            }
        }
        shared.stop.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.join().unwrap();
        }
        (landed, disturbed)
    });
    assert!(
        landed > 0 || !merging,
        "{way:?}: none landed, {disturbed} were taken back"
    );
    assert!(merging || disturbed > 0, "{way:?}: nobody was disturbed");
}

impl PlansInner {
    fn write_until_stopped(&self, file: usize) {
        let at = self.place.root().join(format!("f{file}"));
        for number in 1_u64.. {
            let text = format!("base\n{number}\n");
            match self.way {
                Way::Rename => save(&at, &text),
                Way::InPlace => {
                    let _open = self.open.read().unwrap();
                    let mut open = fs::File::options().write(true).truncate(true).open(&at).unwrap();
                    open.write_all(text.as_bytes()).unwrap();
                }
            }
            // A landing has it in its hands for an instant. It may come more than once while this is looked at.
            for _ in 0..LOOKS {
                let begun = Instant::now();
                while !self.is_somewhere(&at, file, number) {
                    assert!(
                        begun.elapsed() < BOUND,
                        "{:?}: save {number} of {file} is lost",
                        self.way
                    );
                    thread::yield_now();
                }
            }
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    fn is_somewhere(&self, at: &Path, file: usize, number: u64) -> bool {
        let number = number.to_string();
        let has = |text: &str| text.lines().nth(1) == Some(&number);
        let now = fs::read_to_string(at).unwrap();
        let kept = self.kept.lock().unwrap();
        has(&now)
            || kept
                .iter()
                .any(|(path, text)| path == &self.names[file] && has(text))
    }
}

/// Lands once, from what the files are now. Says whether it landed.
fn land_once(shared: &PlansInner, number: u32, merging: bool) -> bool {
    let place = &shared.place;
    let mut contents = std::collections::HashMap::new();
    let mut effects = Vec::new();
    for name in &shared.names {
        // What a merge of the present state would give.
        let text = String::from_utf8(place.tree.read(name, 1000).unwrap()).unwrap();
        let Some((_, rest)) = text.split_once('\n') else {
            continue;
        };
        let mut entry = |text: String| {
            let content = Bytes::from(text);
            let hash = eventlog::BlobId::from_bytes(*blake3::hash(&content).as_bytes());
            let size = content.len() as u64;
            contents.insert(hash, content);
            Some(Entry::File {
                hash,
                size,
                mode: 0o644,
            })
        };
        effects.push(Effect {
            path: name.clone(),
            after: entry(format!("plan {number}\n{rest}")),
            before: entry(text),
        });
    }
    let first_line = FirstLine {
        plan: format!("plan {number}"),
    };
    let remerge: &dyn Remerge = if merging { &first_line } else { &NoRemerge };
    let landing = landing(effects);
    let staging = place.staging();
    let mut site = place.site(&staging, remerge, &NoSteps);
    site.contents = &contents;
    let outcome = site.carry_out(site.stage(&landing, &live()).unwrap()).unwrap();
    let (landed, kept) = match outcome {
        LandingEnd::Landed { kept, .. } => (true, kept),
        LandingEnd::TakenBack { kept, .. } => (false, kept),
    };
    let keep = |kept: &Leftover, text: String| shared.kept.lock().unwrap().push((kept.path.clone(), text));
    for kept in &kept {
        let text = site.with_kept(&landing.id, kept, fs::read_to_string);
        keep(kept, text.unwrap());
    }
    let _nobody_has_one_open = shared.open.write().unwrap();
    let mut late = |kept: &Leftover, at: LeftoverSource| {
        let text = match at {
            LeftoverSource::Path(path) => fs::read_to_string(path)?,
            LeftoverSource::File(file) => std::io::read_to_string(file)?,
        };
        keep(kept, text);
        Ok(())
    };
    site.clean(&landing, &kept, &mut late).unwrap();
    landed
}
