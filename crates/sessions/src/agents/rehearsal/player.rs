//! Which step is next. Pure: no clock, no task, no file.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::random::Generator;
use super::script::{Action, STEP_LIMIT, Script, Step};

/// Plays a script: a stack of positions, one for each level of nesting.
#[derive(Debug)]
pub(super) struct Player {
    places: Vec<ListPosition>,
    /// By seed.
    generators: BTreeMap<u64, Generator>,
    steps_left: u64,
}

#[derive(Debug)]
struct ListPosition {
    steps: Arc<[Step]>,
    next: usize,
    /// How many more times to run these steps after this time.
    again: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Next {
    Act(Arc<Action>),
    /// The script is over.
    End,
    /// The turn has reached its step limit.
    TooMany,
}

impl Player {
    pub(super) fn new(script: &Script) -> Self {
        Self {
            places: vec![ListPosition::new(Arc::clone(&script.steps), 1)],
            generators: BTreeMap::new(),
            steps_left: STEP_LIMIT,
        }
    }

    /// The next thing to do. Every step counts, including those that only lead to others: a script that does
    /// nothing a billion times still does too much.
    pub(super) fn next(&mut self) -> Next {
        loop {
            let Some(place) = self.places.last_mut() else {
                return Next::End;
            };
            let Some(step) = place.steps.get(place.next).cloned() else {
                if !place.begin_again() {
                    self.places.pop();
                    continue;
                }
                // An empty list has no step to count.
                if place.steps.is_empty() && !self.count() {
                    return Next::TooMany;
                }
                continue;
            };
            place.next += 1;
            if !self.count() {
                return Next::TooMany;
            }
            match step {
                Step::Act(action) => return Next::Act(action),
                Step::Repeat { times: 0, .. } => {}
                Step::Repeat { times, steps } => self.places.push(ListPosition::new(steps, times)),
                Step::Random { seed, of } => {
                    let generator = self
                        .generators
                        .entry(seed)
                        .or_insert_with(|| Generator::new(seed));
                    if let Some(drawn) = of.get(generator.below(of.len())) {
                        let drawn = Arc::from([drawn.clone()]);
                        self.places.push(ListPosition::new(drawn, 1));
                    }
                }
            }
        }
    }

    fn count(&mut self) -> bool {
        match self.steps_left.checked_sub(1) {
            Some(left) => {
                self.steps_left = left;
                true
            }
            None => false,
        }
    }
}

impl ListPosition {
    fn new(steps: Arc<[Step]>, times: u32) -> Self {
        Self {
            steps,
            next: 0,
            again: times.saturating_sub(1),
        }
    }

    fn begin_again(&mut self) -> bool {
        match self.again.checked_sub(1) {
            Some(again) => {
                (self.next, self.again) = (0, again);
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Next, Player};
    use crate::agents::rehearsal::script::{Action, STEP_LIMIT, Script};

    /// What a script reads, in order, and how it ends.
    fn play(script: &str, at_most: usize) -> (String, Next) {
        let mut player = Player::new(&Script::parse(script).unwrap());
        let mut read = String::new();
        for _ in 0..at_most {
            match player.next() {
                Next::Act(action) => match &*action {
                    Action::Read { path } => read.push_str(path),
                    other => panic!("{other:?}"),
                },
                end => return (read, end),
            }
        }
        panic!("it goes on: {read}")
    }

    #[test]
    fn steps_come_in_their_order_and_as_often_as_is_said() {
        let cases = [
            ("steps: []", ""),
            ("steps: [read: a, read: b]", "ab"),
            ("steps: [repeat: {times: 0, steps: [read: a]}, read: b]", "b"),
            (
                "steps: [repeat: {times: 3, steps: [read: a, read: b]}, read: c]",
                "abababc",
            ),
            (
                "steps: [repeat: {times: 2, steps: [read: a, repeat: {times: 2, steps: [read: b]}]}]",
                "abbabb",
            ),
            ("steps: [repeat: {times: 5, steps: []}, read: a]", "a"),
            ("steps: [random: {seed: 1, of: [read: a]}]", "a"),
            (
                "steps: [random: {seed: 1, of: [repeat: {times: 2, steps: [read: a]}]}, read: b]",
                "aab",
            ),
        ];
        for (script, expected) in cases {
            assert_eq!(play(script, 100), (expected.to_owned(), Next::End), "{script}");
        }
    }

    #[test]
    fn draws_go_on_from_one_repetition_to_the_next_and_are_the_same_the_next_time() {
        let drawn = |seed: u64| {
            let random = format!("random: {{seed: {seed}, of: [read: a, read: b, read: c]}}");
            play(&format!("steps: [repeat: {{times: 12, steps: [{random}]}}]"), 100).0
        };
        assert_eq!(drawn(7), "bacbbabaabac");
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
        let both = "steps: [random: {seed: 7, of: [read: a, read: b, read: c]}, \
                    random: {seed: 7, of: [read: a, read: b, read: c]}]";
        assert_eq!(play(both, 100).0, "ba");
    }

    #[test]
    fn a_script_without_end_comes_to_one() {
        let nothing = |inner: &str| format!("repeat: {{times: 4294967295, steps: [{inner}]}}");
        let scripts = [
            nothing(""),
            nothing(&nothing("")),
            nothing("repeat: {times: 0, steps: []}"),
            nothing("random: {seed: 1, of: [repeat: {times: 0, steps: []}]}"),
        ];
        for script in scripts {
            let script = format!("steps: [{script}]");
            assert_eq!(play(&script, 1), (String::new(), Next::TooMany), "{script}");
        }
        let mut player = Player::new(&Script::parse(&format!("steps: [{}]", nothing("read: a"))).unwrap());
        let mut acted: u64 = 0;
        while matches!(player.next(), Next::Act(_)) {
            acted += 1;
        }
        assert_eq!(acted, STEP_LIMIT - 1);
        assert_eq!(player.next(), Next::TooMany);
    }
}
