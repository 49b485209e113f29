//! Kills a daemon under test in the middle of an apply, or at another point.
//!
//! In a test build, the variable `TIDELOCK_KILL_AT` names a step of a landing, `Finishing` or `Submitting`, and, after
//! a colon, how many times it is reached (once by default). Then the daemon kills itself, because a kill from outside
//! couldn't hit that exact point. Release builds don't have this.

use std::ffi::OsString;

use plans::LandingSteps;

#[cfg(not(debug_assertions))]
pub(super) fn steps(_environment: &[(OsString, OsString)]) -> LandingSteps {
    LandingSteps::default()
}

#[cfg(debug_assertions)]
pub(super) fn steps(environment: &[(OsString, OsString)]) -> LandingSteps {
    let wish = environment.iter().find(|(name, _)| name == "TIDELOCK_KILL_AT");
    match wish.and_then(|(_, wish)| killer::KillAt::of(wish.to_str()?)) {
        Some(kill_at) => LandingSteps(std::sync::Arc::new(kill_at)),
        None => LandingSteps::default(),
    }
}

/// The points at which a daemon under test may kill itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct KillPoints {
    #[cfg(debug_assertions)]
    at: Option<std::sync::Arc<killer::KillAt>>,
}

impl KillPoints {
    #[cfg(not(debug_assertions))]
    pub(crate) fn of(_environment: &[(OsString, OsString)]) -> Self {
        Self::default()
    }

    #[cfg(debug_assertions)]
    pub(crate) fn of(environment: &[(OsString, OsString)]) -> Self {
        let wish = environment.iter().find(|(name, _)| name == "TIDELOCK_KILL_AT");
        let at = wish.and_then(|(_, wish)| killer::KillAt::of(wish.to_str()?));
        Self {
            at: at.map(std::sync::Arc::new),
        }
    }

    #[cfg_attr(
        not(debug_assertions),
        expect(unused_variables, reason = "only tests end themselves")
    )]
    pub(super) fn reached(&self, point: &str) {
        #[cfg(debug_assertions)]
        if let Some(at) = &self.at {
            at.reached_named(point);
        }
    }
}

#[cfg(debug_assertions)]
mod killer {
    use std::sync::Mutex;

    use plans::landing::{Step, Steps};
    use rustix::process::{Signal, getpid, kill_process};

    /// Kills this process at a step.
    #[derive(Debug)]
    pub(super) struct KillAt {
        step: String,
        /// Guards how many more times the step is reached before the kill.
        left: Mutex<u32>,
    }

    impl KillAt {
        /// Parses `STEP` or `STEP:TIMES`.
        pub(super) fn of(wish: &str) -> Option<Self> {
            let (step, times) = wish.split_once(':').unwrap_or((wish, "1"));
            let times: u32 = times.parse().ok().filter(|times| *times > 0)?;
            Some(Self {
                step: step.to_owned(),
                left: Mutex::new(times),
            })
        }

        pub(super) fn is_due(&self, step: &str) -> bool {
            if step != self.step {
                return false;
            }
            let mut left = self.left.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            *left = left.saturating_sub(1);
            *left == 0
        }
    }

    impl KillAt {
        pub(super) fn reached_named(&self, step: &str) {
            if self.is_due(step) {
                // If this fails, there is nothing to report it to.
                let _ = kill_process(getpid(), Signal::KILL);
            }
        }
    }

    impl Steps for KillAt {
        fn reached(&self, step: Step<'_>) {
            self.reached_named(&format!("{:?}", step.kind));
        }
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::killer::KillAt;

    #[test]
    fn a_wish_names_a_step_and_how_often_it_is_reached() {
        for (wish, reached, expected) in [
            ("Exchanged", "Exchanged", vec![true]),
            ("Exchanged", "Exchanging", vec![false, false]),
            ("Exchanged:3", "Exchanged", vec![false, false, true]),
        ] {
            let kill_at = KillAt::of(wish).unwrap();
            let found: Vec<bool> = expected.iter().map(|_| kill_at.is_due(reached)).collect();
            assert_eq!(found, expected, "{wish}");
        }
        for nonsense in ["Exchanged:0", "Exchanged:x", "Exchanged:"] {
            assert!(KillAt::of(nonsense).is_none(), "{nonsense}");
        }
    }
}
