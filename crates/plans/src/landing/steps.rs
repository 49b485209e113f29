//! The steps of a landing, for tests that interrupt it or interfere at one of them.

use crate::RelPath;

/// Notified of every step. A test may kill the process here, or write a file.
pub trait Steps: Send + Sync {
    /// A step was reached.
    fn reached(&self, step: Step<'_>);
}

/// Ignores all steps.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSteps;

impl Steps for NoSteps {
    fn reached(&self, _step: Step<'_>) {}
}

/// A step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Step<'path> {
    /// What happens.
    pub kind: StepKind,
    /// The path it is about, if any.
    pub path: Option<&'path RelPath>,
}

/// What happens at a step.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum StepKind {
    /// The staging directory exists and is empty.
    AreaMade,
    /// The new content of a path is written.
    ContentStaged,
    /// All contents are on disk.
    ContentsSynced,
    /// The marker is on disk: the landing is staged.
    Complete,
    /// The log records that it has begun. From here on, files may change.
    Begun,
    /// A path is about to be taken out.
    TakingOut,
    /// It is out, but not checked yet.
    TakenOut,
    /// The stand-in of a directory exists, and the directory is about to be removed.
    StandInMade,
    /// A path is about to be exchanged with its staged file.
    Exchanging,
    /// It is exchanged, but what came out isn't checked yet.
    Exchanged,
    /// Where the file system can't exchange: what was at the path is out, and the path is empty.
    MovedAside,
    /// The same, after the new file was moved in.
    MovedIn,
    /// An addition is about to be put in.
    PuttingIn,
    /// It is in.
    PutIn,
    /// Someone else's content came out and is about to be put back.
    PuttingBack,
    /// It is back, as far as possible.
    PutBack,
    /// The content of a path that was merged again is staged.
    AgainStaged,
    /// Its note is on disk.
    AgainNoted,
    /// All paths have the wanted state.
    AllCarriedOut,
    /// That state is on disk.
    DirectoriesSynced,
    /// The marker that everything is being rolled back is on disk.
    BackMarked,
    /// A path is about to be rolled back.
    TakingBack,
    /// It is rolled back.
    TakenBack,
    /// All paths are rolled back.
    AllTakenBack,
    /// Recovery checks a path.
    Recovering,
    /// The outcome is about to be committed.
    Ending,
    /// The log has the outcome.
    Ended,
    /// What came out of a path was checked and is about to be removed.
    Removing,
    /// It is removed.
    Removed,
    /// The staging directory is about to be removed.
    Cleaning,
    /// It is removed.
    Cleaned,
}
