//! The steps of a landing, for tests that stop it or come in between at one of them.

use crate::RelPath;

/// Told of every step. A test may kill the process here, or write a file.
pub trait Steps: Send + Sync {
    /// A step was reached.
    fn reached(&self, step: Step<'_>);
}

/// Nobody is told.
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
    /// To which path, if it is about one.
    pub path: Option<&'path RelPath>,
}

/// What happens at a step.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum StepKind {
    /// The staging directory is there, and empty.
    AreaMade,
    /// The new content of a path is written.
    ContentStaged,
    /// All contents are on the disk.
    ContentsSynced,
    /// The marker is on the disk: it is staged.
    Complete,
    /// The log says that it has begun. From here on, files may change.
    Begun,
    /// A path is about to be taken out.
    TakingOut,
    /// It is out, and was not looked at yet.
    TakenOut,
    /// The stand-in of a directory is there, and the directory is about to go.
    StandInMade,
    /// A path is about to be exchanged with its staged one.
    Exchanging,
    /// It is exchanged, and what came out was not looked at yet.
    Exchanged,
    /// Where the file system cannot exchange: what was at a path is out, and nothing is there.
    MovedAside,
    /// The same, and the new file is in.
    MovedIn,
    /// A new path is about to be put in.
    PuttingIn,
    /// It is in.
    PutIn,
    /// Somebody else's content came out and is about to be put back.
    PuttingBack,
    /// It is back, as far as that is possible.
    PutBack,
    /// The content of a path that was merged again is written.
    AgainStaged,
    /// The note of it is on the disk.
    AgainNoted,
    /// All paths are as wanted.
    AllCarriedOut,
    /// That is on the disk.
    DirectoriesSynced,
    /// The marker is on the disk that says that everything is taken back.
    BackMarked,
    /// A path is about to be taken back.
    TakingBack,
    /// It is taken back.
    TakenBack,
    /// All are.
    AllTakenBack,
    /// Recovery looks at a path.
    Recovering,
    /// What became of it is about to be committed.
    Ending,
    /// The log says what became of it.
    Ended,
    /// What came out of a path was looked at, and is about to be removed.
    Removing,
    /// It is removed.
    Removed,
    /// The staging directory is about to go.
    Cleaning,
    /// It is gone.
    Cleaned,
}
