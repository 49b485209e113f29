//! What holds for every tree, every list of places and every budget.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use context::{
    Answer, ContextSettings, Depth, Fragment, Hit, Lines, Strategy, StrategyError, StrategyOutcome,
    Tokenizer, TokenizerName,
};
use proptest::prelude::*;
// The other trait of this name is what is tested.
use proptest::strategy::Strategy as Generator;
use tokio::sync::watch;

use crate::pipeline_kit::{Bench, Tree, answer, path, scripted};

/// A runtime for all cases: making one for each would take longer than the cases.
static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
});

/// A tree and what strategies find in it.
#[derive(Clone, Debug)]
struct Case {
    files: BTreeMap<String, String>,
    /// What each strategy does.
    strategies: Vec<Result<Vec<Hit>, StrategyError>>,
    budget: usize,
}

const PATHS: [&str; 7] = ["a.rs", "b.py", "c/d.ts", "e.go", "notes.txt", "bin", "missing"];

/// A file: code of several languages in bits, text, something that no reader would want.
fn file() -> impl Generator<Value = String> {
    let bit = prop_oneof![
        Just("fn one(a: u32) -> u32 {\n    a + 1\n}\n\n".to_owned()),
        Just("def two(a, b):\n    return a\n\n".to_owned()),
        Just("class Three {\n  method(a) {\n    return a;\n  }\n}\n".to_owned()),
        Just("impl Four {\n    fn five(&self) {}\n    const SIX: u32 = 6;\n}\n".to_owned()),
        Just("mod seven {\n    fn eight() {\n".to_owned()),
        Just("}\n".to_owned()),
        Just("\r\n\r\n".to_owned()),
        "[ -~äß…👩🏽]{0,60}\n",
        (1_usize..120).prop_map(|count| "    let value = other + 1;\n".repeat(count)),
        (1_usize..1500).prop_map(|count| "x ".repeat(count)),
        Just("#\n## not a heading\n".to_owned()),
    ];
    prop_oneof![
        20 => prop::collection::vec(bit, 0..12).prop_map(|bits| bits.concat()),
        1 => Just(String::new()),
        1 => Just("a\0b".to_owned()),
        1 => Just("y".repeat(1024 * 1024 + 1)),
    ]
}

fn one_hit() -> impl Generator<Value = Hit> {
    let line = prop_oneof![8 => 1_u32..60, 2 => 1_u32..400, 1 => Just(u32::MAX)];
    let lines = prop_oneof![
        1 => Just(None),
        8 => (line, 0_u32..40).prop_map(|(first, more)| Lines::new(first, first.saturating_add(more))),
    ];
    let depth = prop_oneof![3 => Just(Depth::Body), 1 => Just(Depth::Signature), 1 => Just(Depth::Name)];
    let place = (0..PATHS.len(), lines, depth);
    // Few scores, so that there are ties.
    (place, 0_u8..4).prop_map(|((at, lines, depth), score)| Hit {
        path: path(PATHS[at]),
        lines,
        score: f64::from(score),
        why: format!("because of {score}"),
        depth,
    })
}

fn case() -> impl Generator<Value = Case> {
    let files = prop::collection::vec(file(), PATHS.len() - 1).prop_map(|texts| {
        let paths = PATHS.iter().map(|path| (*path).to_owned());
        paths.zip(texts).collect::<BTreeMap<_, _>>()
    });
    let does = prop_oneof![
        8 => prop::collection::vec(one_hit(), 0..25).prop_map(Ok),
        1 => Just(Err(StrategyError::Failed("ill".to_owned()))),
        1 => Just(Err(StrategyError::NotApplicable("not here".to_owned()))),
    ];
    let budget = prop_oneof![0_usize..60, 0_usize..5000];
    (files, prop::collection::vec(does, 1..6), budget).prop_map(|(files, strategies, budget)| Case {
        files,
        strategies,
        budget,
    })
}

/// The answer to a case whose strategies finish in this order.
fn answer_to(case: &Case, order: &[usize]) -> Answer {
    let tree = Arc::new(Tree(
        case.files
            .iter()
            .map(|(at, text)| (path(at), text.clone()))
            .collect(),
    ));
    let (turn, turns) = watch::channel(0_usize);
    let turn = Arc::new(turn);
    let strategies: Vec<Arc<dyn Strategy>> = case
        .strategies
        .iter()
        .enumerate()
        .map(|(place, found)| {
            let my_turn = order.iter().position(|other| *other == place).unwrap();
            let (found, turn, turns) = (found.clone(), Arc::clone(&turn), turns.clone());
            scripted(&format!("strategy-{place}"), move |_, _, _| {
                let (found, turn, mut turns) = (found.clone(), Arc::clone(&turn), turns.clone());
                async move {
                    drop(turns.wait_for(|now| *now == my_turn).await);
                    turn.send_modify(|now| *now += 1);
                    found
                }
            })
        })
        .collect();
    let bench = Bench::new(case.strategies.len());
    let settings = ContextSettings::default();
    let asked = answer(&bench, &strategies, settings, &tree, |request| {
        request.budget_tokens = case.budget;
    });
    RUNTIME.block_on(asked).unwrap()
}

/// Whether what a fragment shows is in its file, at the lines that it names.
fn is_in_its_file(fragment: &Fragment, text: &str) -> bool {
    let lines: Vec<&str> = text.split('\n').map(|line| line.trim_end_matches('\r')).collect();
    let (first, last) = (fragment.lines.first() as usize, fragment.lines.last() as usize);
    let Some(lines) = lines.get(first - 1..last) else {
        return false;
    };
    let is_shown = |shown: &str| match shown.strip_suffix(" …") {
        Some(cut) if cut.len() >= 990 => lines.iter().any(|line| line.starts_with(cut)),
        _ => lines.contains(&shown),
    };
    match fragment.depth {
        Depth::Name => true,
        Depth::Signature => fragment.text.split('\n').all(is_shown),
        Depth::Body => {
            fragment.text.split('\n').count() == lines.len() && fragment.text.split('\n').all(is_shown)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_answer_is_within_its_budget_true_and_without_overlaps(case in case()) {
        let order: Vec<usize> = (0..case.strategies.len()).collect();
        let answer = answer_to(&case, &order);
        let tokenizer = Tokenizer::load(TokenizerName::O200k).unwrap();
        prop_assert_eq!(answer.tokens, tokenizer.count(&answer.text));
        prop_assert!(answer.tokens <= case.budget);
        prop_assert_eq!(answer.text.is_empty(), answer.fragments.is_empty());
        let sum: usize = answer.fragments.iter().map(|own| own.tokens).sum();
        prop_assert!(sum.abs_diff(answer.tokens) <= 1, "a piece has as many tokens among others");
        for (place, one) in answer.fragments.iter().enumerate() {
            prop_assert!(is_in_its_file(one, &case.files[one.path.as_str()]), "{:?}", one);
            prop_assert!(!one.parts.is_empty() && one.score > 0.0);
            let adds: f64 = one.parts.iter().map(|part| part.adds).sum();
            prop_assert!((adds - one.score).abs() < 1e-12);
            for other in &answer.fragments[place + 1..] {
                let is_apart = one.path != other.path || !one.lines.overlaps(other.lines);
                prop_assert!(is_apart, "{:?} {:?}", one, other);
            }
        }
        // Pieces of a file stand together, in the order of its lines.
        let mut seen = Vec::new();
        for pair in answer.fragments.windows(2) {
            if pair[0].path == pair[1].path {
                prop_assert!(pair[0].lines.last() < pair[1].lines.first());
            } else {
                seen.push(pair[0].path.clone());
                prop_assert!(!seen.contains(&pair[1].path));
            }
        }
        prop_assert!(answer.left_out.len() <= answer.left_out_total);
        for (found, report) in case.strategies.iter().zip(&answer.strategies) {
            let expected = match found {
                _ if case.budget == 0 => matches!(report.outcome, StrategyOutcome::LeftOut),
                Ok(_) => matches!(report.outcome, StrategyOutcome::Ran { .. }),
                Err(StrategyError::NotApplicable(_)) => matches!(report.outcome, StrategyOutcome::NotApplicable { .. }),
                Err(_) => matches!(report.outcome, StrategyOutcome::Failed { .. }),
            };
            prop_assert!(expected, "{:?} {:?}", found, report);
        }
    }

    #[test]
    fn the_same_question_has_the_same_answer_whoever_is_first(
        (case, order) in case().prop_flat_map(|case| {
            let order: Vec<usize> = (0..case.strategies.len()).collect();
            (Just(case), Just(order).prop_shuffle())
        })
    ) {
        let in_order: Vec<usize> = (0..case.strategies.len()).collect();
        prop_assert_eq!(answer_to(&case, &in_order), answer_to(&case, &order));
        // Nor does it matter in which order a strategy names its places.
        let mut turned = case.clone();
        for found in turned.strategies.iter_mut().flatten() {
            found.reverse();
        }
        prop_assert_eq!(answer_to(&case, &in_order), answer_to(&turned, &in_order));
    }
}
