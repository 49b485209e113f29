//! What is said once, on the page that follows a form.

use maud::{Markup, html};
use protocol::{Breaker, Job, Server};

use super::breakers::label;
use super::plan_notice::PlanNotice;
use super::plan_text::exact;
use super::{job_state, server_state};

/// What became of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// A breaker was reset.
    Reset {
        /// Its name.
        name: String,
    },
    /// A breaker is held in a state by hand.
    Forced {
        /// Its name.
        name: String,
        /// The state, as it reads in a sentence.
        state: &'static str,
    },
    /// All breakers were reset.
    ResetAll {
        /// How many there were.
        count: u64,
    },
    /// A breaker had moved since its reader looked, so nothing was done.
    Moved {
        /// What it is now.
        current: Box<Breaker>,
    },
    /// A breaker is no longer known, so nothing was done.
    Gone {
        /// Its name.
        name: String,
    },
    /// There is no room to keep track of another breaker, so nothing was done.
    Full,
    /// A language server was changed, or is on its way to it.
    Server {
        /// Its name.
        name: String,
        /// What became of it, as it reads behind the name.
        outcome: &'static str,
    },
    /// A language server had moved since its reader looked, so nothing was done.
    ServerMoved {
        /// What it is now.
        current: Box<Server>,
    },
    /// A language server could not be changed.
    ServerRefused {
        /// Its name.
        name: String,
        /// Why.
        reason: String,
    },
    /// A job was cancelled, or is being stopped.
    JobCancelled {
        /// How it is now.
        job: Box<Job>,
    },
    /// A job is no longer, or not yet, in a state for this, so nothing was done.
    JobMoved {
        /// How it is now.
        job: Box<Job>,
    },
    /// A job was submitted once more.
    JobRetried {
        /// The new one.
        job: Box<Job>,
    },
    /// A job could not be changed.
    JobRefused {
        /// Its id.
        id: String,
        /// Why.
        reason: String,
    },
    /// Another number of jobs may run at once now.
    Workers {
        /// How many.
        count: usize,
    },
    /// A plan or a workspace.
    Plan(PlanNotice),
    /// A session.
    Session {
        /// Whether it was done as wanted.
        done: bool,
        /// What became of it.
        text: String,
    },
    /// An index was changed, or is on its way to it.
    Index {
        /// The root of its workspace.
        root: String,
        /// What became of it, as it reads behind the root.
        outcome: &'static str,
    },
    /// An index could not be changed.
    IndexRefused {
        /// The root of its workspace.
        root: String,
        /// Why.
        reason: String,
    },
    /// The log did not take it, so nothing was done.
    NotWritten {
        /// Why.
        reason: String,
    },
}

impl Notice {
    /// The notice as a part of a page.
    pub(super) fn render(&self) -> Markup {
        let (class, text) = match self {
            Self::Reset { name } => ("good", html! { "“" (name) "” was reset." }),
            Self::Session { done, text } => (if *done { "good" } else { "warn" }, html! { (text) }),
            Self::Forced { name, state } => (
                "good",
                html! { "“" (name) "” is now forced " (state) " until you reset it." },
            ),
            Self::ResetAll { count: 1 } => ("good", html! { "1 breaker was reset." }),
            Self::ResetAll { count } => ("good", html! { "All " (count) " breakers were reset." }),
            Self::Moved { current } => (
                "warn",
                html! {
                    "“" (current.id) "” has moved since you looked: it is now "
                    strong { (label(current.state).to_lowercase()) }
                    " (generation " (current.generation) "). Nothing was changed. Check its current state below and try again."
                },
            ),
            Self::Gone { name } => (
                "warn",
                html! { "“" (name) "” no longer exists, so it counts as closed. Nothing was changed." },
            ),
            Self::Full => (
                "warn",
                html! { "The limit of tracked breakers is reached. Nothing was changed." },
            ),
            Self::Server { name, outcome } => ("good", html! { "“" (name) "” " (outcome) "." }),
            Self::ServerMoved { current } => (
                "warn",
                html! {
                    "“" (current.server) "” has moved since you looked: it is now "
                    strong { (server_state::label(current).to_lowercase()) }
                    " (generation " (current.generation) "). Nothing was changed. Check its current state below and try again."
                },
            ),
            Self::ServerRefused { name, reason } => {
                ("warn", html! { "“" (name) "” could not be changed: " (reason) })
            }
            Self::JobCancelled { job } if job_state::has_ended(job) => {
                ("good", html! { "“" (job_state::title(job)) "” was cancelled." })
            }
            Self::JobCancelled { job } => (
                "good",
                html! { "“" (job_state::title(job)) "” is stopping, along with everything it started." },
            ),
            Self::JobMoved { job } => (
                "warn",
                html! {
                    "“" (job_state::title(job)) "” has moved since you looked: it is now "
                    strong { (job_state::label(job).to_lowercase()) } ". Nothing was changed."
                },
            ),
            Self::JobRetried { job } => (
                "good",
                html! { "“" (job_state::title(job)) "” was submitted again. This is the new job." },
            ),
            Self::JobRefused { id, reason } => (
                "warn",
                html! { "The job " code { (id) } " could not be changed: " (reason) "." },
            ),
            Self::Workers { count: 0 } => {
                ("good", html! { "No new jobs will start. Running jobs continue." })
            }
            Self::Workers { count: 1 } => ("good", html! { "Now running at most 1 job at a time." }),
            Self::Workers { count } => (
                "good",
                html! { "Now running at most " (count) " jobs at a time." },
            ),
            Self::Plan(notice) => notice.words(),
            Self::Index { root, outcome } => (
                "good",
                html! { "The index of " code { (exact(root)) } " " (outcome) "." },
            ),
            Self::IndexRefused { root, reason } => (
                "warn",
                html! { "The index of " code { (exact(root)) } " could not be changed: " (reason) },
            ),
            Self::NotWritten { reason } => (
                "warn",
                html! { "Can't write this to the log (" (reason) "), so nothing was changed. Try again later." },
            ),
        };
        html! {
            div class={ "notice " (class) } role="status" { p { (text) } }
        }
    }
}
