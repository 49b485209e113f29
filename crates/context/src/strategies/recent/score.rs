//! Which files fit a question, based on their changes. Pure.
//!
//! There are four kinds of evidence: commits with the words of the question, files that change together with those in
//! focus, plans about the same subject or a file in focus, and paths with the words of the question. If a file was
//! changed recently, or is being changed in any plan, that adds to each of these. On its own, it means nothing for a
//! question, unless the question asks for it.

use std::collections::{BTreeMap, BTreeSet};

use super::history::{Commit, History, compared, words_of};
use crate::path::TreePath;
use crate::ports::OpenPlan;
use crate::query::Query;

/// After this many newer commits, a commit counts half.
const HALF_LIFE_COMMITS: f64 = 200.0;
/// The maximum weight of each kind of evidence.
const SAYS: f64 = 1.0;
const TOGETHER: f64 = 0.9;
const PATH: f64 = 0.3;
const LATELY: f64 = 0.2;
/// The weight of a plan that is changing a file: in general, for matching words, and if the file is in focus.
const IN_PLAN: f64 = 0.3;
const PLAN_SAYS: f64 = 0.5;
const PLAN_IN_FOCUS: f64 = 0.4;
const LEAST: f64 = 0.05;
/// Words that ask for recent changes, normalized.
const ASKS_FOR_RECENT: [&str; 5] = ["recently", "recent", "lately", "latest", "last"];

#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    /// The words, normalized, without duplicates.
    words: Vec<String>,
    focus: Vec<TreePath>,
    asks_for_recent: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scored {
    pub(super) path: TreePath,
    pub(super) score: f64,
    pub(super) why: String,
}

impl Asked {
    pub(super) fn new(query: &Query, focus: &[TreePath]) -> Self {
        let parts = query.terms.iter().flat_map(|term| term.parts.iter().cloned());
        let words: BTreeSet<String> = parts.map(compared).collect();
        let raw = words_of(&query.text);
        let asks_for_recent = ASKS_FOR_RECENT
            .iter()
            .any(|word| raw.contains(&compared((*word).to_owned())));
        Self {
            words: words.into_iter().collect(),
            focus: focus.to_vec(),
            asks_for_recent,
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Evidence {
    /// How well the commits that touched it fit: the best one, and all together.
    best: Option<(f64, usize)>,
    saying: u32,
    says: f64,
    /// How often it changed together with the focus, as a count and as a weight.
    together: u32,
    together_weight: f64,
    touched: u32,
    lately: f64,
    /// The plan with the highest weight.
    plan: Option<InPlan>,
}

#[derive(Clone, Copy, Debug)]
struct InPlan {
    /// How relevant it is to the question.
    about: f64,
    number: usize,
}

/// The files that fit, best first. The order is deterministic for the same history, plans and question.
pub(super) fn score(history: &History, plans: &[OpenPlan], asked: &Asked) -> Vec<Scored> {
    let mut files: Vec<TreePath> = history.files.clone();
    let mut all = vec![Evidence::default(); files.len()];
    let of_focus = look_at_commits(history, asked, &mut all);
    look_at_plans(plans, asked, &mut files, &mut all);
    let hottest = all.iter().map(|evidence| evidence.lately).fold(0.0, f64::max);
    let mut scored: Vec<Scored> = files
        .into_iter()
        .zip(&all)
        .filter_map(|(path, evidence)| {
            let lately = if hottest > 0.0 {
                evidence.lately / hottest
            } else {
                0.0
            };
            evidence.weigh(path, lately, &of_focus, asked, history, plans)
        })
        .collect();
    scored.sort_by(|one, other| {
        let by_score = other.score.total_cmp(&one.score);
        by_score.then_with(|| one.path.cmp(&other.path))
    });
    scored
}

/// How often and how much the files in focus were touched.
#[derive(Clone, Copy, Debug, Default)]
struct OfFocus {
    commits: u32,
    weight: f64,
}

fn look_at_commits(history: &History, asked: &Asked, all: &mut [Evidence]) -> OfFocus {
    let weights = word_weights(history, asked);
    let total: f64 = weights.values().sum();
    let focus: BTreeSet<u32> = numbers(history, &asked.focus);
    let mut of_focus = OfFocus::default();
    for (place, commit) in history.commits.iter().enumerate() {
        let decay = 0.5_f64.powf(place as f64 / HALF_LIFE_COMMITS);
        // The more files a commit touches, the less it means for each.
        let share = 1.0 / (1.0 + (commit.files.len().max(1) as f64).ln());
        let says = if total > 0.0 {
            said(commit, &weights) / total
        } else {
            0.0
        };
        let is_of_focus = commit.files.iter().any(|file| focus.contains(file));
        if is_of_focus {
            of_focus.commits += 1;
            of_focus.weight += decay * share;
        }
        for file in &commit.files {
            let Some(evidence) = all.get_mut(*file as usize) else {
                continue;
            };
            evidence.touched += 1;
            evidence.lately += decay * share;
            if is_of_focus && !focus.contains(file) {
                evidence.together += 1;
                evidence.together_weight += decay * share;
            }
            if says > 0.0 {
                // A commit that fits stays relevant longer than one that is merely new.
                let fits = says * share * (1.0 + decay) / 2.0;
                evidence.saying += 1;
                // Two commits that fit are better than one, but the sum never exceeds certainty.
                evidence.says = 1.0 - (1.0 - evidence.says) * (1.0 - fits);
                if evidence.best.is_none_or(|(best, _)| fits > best) {
                    evidence.best = Some((fits, place));
                }
            }
        }
    }
    of_focus
}

/// The weight of each word of the question: the rarer in subjects, the higher.
fn word_weights<'a>(history: &History, asked: &'a Asked) -> BTreeMap<&'a str, f64> {
    let commits = history.commits.len() as f64;
    let weight = |word: &'a String| {
        let with = history
            .commits
            .iter()
            .filter(|commit| commit.words.binary_search(word).is_ok())
            .count() as f64;
        (word.as_str(), (1.0 + (commits - with + 0.5) / (with + 0.5)).ln())
    };
    asked.words.iter().map(weight).collect()
}

fn said(commit: &Commit, weights: &BTreeMap<&str, f64>) -> f64 {
    let words = commit.words.iter();
    words.filter_map(|word| weights.get(word.as_str())).sum()
}

fn numbers(history: &History, paths: &[TreePath]) -> BTreeSet<u32> {
    let files = history.files.iter().zip(0..);
    files
        .filter(|(path, _)| paths.contains(path))
        .map(|(_, number)| number)
        .collect()
}

fn look_at_plans(plans: &[OpenPlan], asked: &Asked, files: &mut Vec<TreePath>, all: &mut Vec<Evidence>) {
    let mut places: BTreeMap<TreePath, usize> = files.iter().cloned().zip(0..).collect();
    for (number, plan) in plans.iter().enumerate() {
        let title = share_of(&asked.words, &words_of(&plan.title));
        for path in &plan.changed {
            let says = title.max(share_of(&asked.words, &words_of(path.as_str())));
            let in_focus = if asked.focus.contains(path) {
                PLAN_IN_FOCUS
            } else {
                0.0
            };
            let about = PLAN_SAYS * says + in_focus;
            let place = *places.entry(path.clone()).or_insert_with(|| {
                files.push(path.clone());
                all.push(Evidence::default());
                all.len() - 1
            });
            let known = &mut all[place].plan;
            if known.is_none_or(|best| about > best.about) {
                *known = Some(InPlan { about, number });
            }
        }
    }
}

fn share_of(words: &[String], among: &[String]) -> f64 {
    let found = words.iter().filter(|word| among.contains(word)).count();
    if words.is_empty() {
        0.0
    } else {
        found as f64 / words.len() as f64
    }
}

impl Evidence {
    fn weigh(
        &self,
        path: TreePath,
        lately: f64,
        of_focus: &OfFocus,
        asked: &Asked,
        history: &History,
        plans: &[OpenPlan],
    ) -> Option<Scored> {
        let together = if self.together > 0 && of_focus.weight > 0.0 {
            // A single time may be a coincidence.
            let trust = f64::from(self.together) / f64::from(self.together + 1);
            TOGETHER * trust * self.together_weight / of_focus.weight
        } else {
            0.0
        };
        let says = SAYS * self.says;
        let about_plan = self.plan.map_or(0.0, |plan| plan.about);
        let plan = self.plan.map_or(0.0, |plan| IN_PLAN + plan.about);
        let in_path = PATH * share_of(&asked.words, &words_of(path.as_str()));
        if says + together + about_plan + in_path < LEAST && !asked.asks_for_recent {
            return None;
        }
        let score = says + together + plan + in_path + LATELY * lately;
        if score < LEAST {
            return None;
        }
        let strongest = says.max(together).max(plan).max(in_path);
        let touched = || {
            format!(
                "changed in {} of the last {} commits",
                self.touched,
                history.commits.len()
            )
        };
        let why = if strongest < LEAST {
            touched()
        } else if let (true, Some(of)) = (plan >= strongest, self.plan) {
            let plan = &plans[of.number];
            format!("plan {} is changing it: {}", plan.plan, plan.title)
        } else if together >= strongest {
            format!(
                "changed together with the focus in {} of {} commits",
                self.together, of_focus.commits
            )
        } else if let (true, Some((_, place))) = (says >= strongest, self.best) {
            let more = match self.saying {
                0 | 1 => String::new(),
                saying => format!(", and {} more", saying - 1),
            };
            format!("commit `{}`{more}", history.commits[place].subject)
        } else {
            touched()
        };
        Some(Scored { path, score, why })
    }
}

#[cfg(test)]
#[path = "score_tests.rs"]
mod tests;
