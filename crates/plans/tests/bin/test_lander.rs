//! Lands or recovers what a test has laid out, and is killed at the step that the test names.
//!
//! `test-lander land|recover DIRECTORY STEP save|- merge|conflict`. The directory has `tree`, `staging`, `contents` and
//! `journal.json`. With `TEST_PLAIN_RENAMES` the tree is treated as one whose file system cannot exchange. Step 0 is never reached. With `save` an outside editor saves two of the files at the worst moment.

use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use bytes::Bytes;
use eventlog::BlobId;
use plans::landing::{
    Landing, LandingEnd, LandingSite, NoRemerge, Remerge, Remerged, SavedMeanwhile, Step, StepKind, Steps,
};
use plans::{Conflict, Contents, Entry, RelPath, Tree};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [action, directory, step, save, remerge] = arguments.as_slice() else {
        return Err("this is a program of tests".into());
    };
    let directory = PathBuf::from(directory);
    let landing: Landing = serde_json::from_slice(&fs::read(directory.join("journal.json"))?)?;
    let tree = Tree::open(&directory.join("tree"))?;
    let tree = match std::env::var_os("TEST_PLAIN_RENAMES") {
        Some(_) => tree.with_plain_renames(),
        None => tree,
    };
    let steps = Killed {
        at: step.parse()?,
        reached: Mutex::new(0),
        directory: (save == "save").then(|| directory.clone()),
    };
    let remerge: &dyn Remerge = if remerge == "merge" {
        &Appending
    } else {
        &NoRemerge
    };
    let site = LandingSite {
        tree: &tree,
        staging: &directory.join("staging"),
        contents: &Files(directory.join("contents")),
        remerge,
        steps: &steps,
    };
    let outcome = match action.as_str() {
        "land" => site.carry_out(site.stage(&landing, &kernel::CancellationToken::new().scope())?)?,
        _ => site.recover(&landing)?,
    };
    let word = match outcome {
        LandingEnd::Landed { .. } => "landed",
        LandingEnd::TakenBack { .. } => "taken back",
    };
    let steps = steps.reached.lock().map_err(|_| "a step panicked")?;
    writeln!(io::stdout(), "{word} after {steps} steps")?;
    Ok(())
}

/// Contents in files that are named by their address.
struct Files(PathBuf);

impl Contents for Files {
    fn get(&self, id: BlobId) -> io::Result<Bytes> {
        fs::read(self.0.join(id.to_string())).map(Bytes::from)
    }

    fn copy_to(&self, id: BlobId, to: &mut dyn plans::ContentSink) -> io::Result<()> {
        io::copy(&mut fs::File::open(self.0.join(id.to_string()))?, to).map(drop)
    }
}

/// Merges by putting a line after what was saved, and lets a deletion be.
struct Appending;

impl Remerge for Appending {
    fn again(&self, path: &RelPath, found: Option<&SavedMeanwhile>) -> Result<Remerged, Box<Conflict>> {
        let Some(SavedMeanwhile {
            entry: Entry::File { mode, .. },
            content: Some(content),
        }) = found
        else {
            return NoRemerge.again(path, found);
        };
        if path.as_bytes() == b"gone.txt" {
            return Ok(Remerged {
                after: found.map(|found| found.entry.clone()),
                made: None,
            });
        }
        let made = Bytes::from([content, b"plan\n".as_slice()].concat());
        Ok(Remerged {
            after: Some(Entry::File {
                hash: BlobId::from_bytes(*blake3::hash(&made).as_bytes()),
                size: made.len() as u64,
                mode: *mode,
            }),
            made: Some(made),
        })
    }
}

/// Ends the process at one step, and saves files at others if it is told to.
struct Killed {
    at: u64,
    /// How many steps were reached.
    reached: Mutex<u64>,
    directory: Option<PathBuf>,
}

impl Steps for Killed {
    fn reached(&self, step: Step<'_>) {
        if let (Some(directory), Some(path)) = (&self.directory, step.path) {
            let saved = match (step.kind, path.as_bytes()) {
                (StepKind::Exchanging, b"edit.txt") | (StepKind::TakingOut, b"gone.txt") => {
                    save(directory, path.as_path())
                }
                _ => Ok(()),
            };
            assert!(saved.is_ok(), "{saved:?}");
        }
        if let Ok(mut reached) = self.reached.lock() {
            *reached += 1;
            if *reached == self.at {
                let killed =
                    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
                assert!(killed.is_ok(), "{killed:?}");
            }
        }
    }
}

/// Saves as editors do: a new file is renamed over the old one. Once only.
fn save(directory: &Path, path: &Path) -> io::Result<()> {
    let beside = directory.join("saved").join(path);
    if beside.try_exists()? {
        return Ok(());
    }
    fs::create_dir_all(directory.join("saved"))?;
    let draft = directory.join("draft");
    fs::write(&draft, "saved\n")?;
    fs::rename(&draft, directory.join("tree").join(path))?;
    fs::write(beside, "")
}
