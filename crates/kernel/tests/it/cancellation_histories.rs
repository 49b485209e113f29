//! Random histories of a small family of tokens, against a model that is too simple to be wrong: a flag per
//! token, and a list per run of what it must see.

use kernel::{CancellationToken, Cause, ResetRefused, Scope};
use proptest::prelude::*;

/// The tokens of the family: `0` and `1` are roots, `2` is a child of `0`, `3` of both roots, `4` of `2`.
const PARENTS: [&[usize]; 5] = [&[], &[], &[0], &[0, 1], &[2]];

#[derive(Clone, Debug)]
enum Step {
    Cancel(usize),
    CancelScope { token: usize, scope: usize },
    Reset(usize),
    ResetScope { token: usize, scope: usize },
    Scope(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let token = 0..PARENTS.len();
    let step = prop_oneof![
        token.clone().prop_map(Step::Cancel),
        (token.clone(), any::<usize>()).prop_map(|(token, scope)| Step::CancelScope { token, scope }),
        token.clone().prop_map(Step::Reset),
        (token.clone(), any::<usize>()).prop_map(|(token, scope)| Step::ResetScope { token, scope }),
        token.prop_map(Step::Scope),
    ];
    prop::collection::vec(step, 1..80)
}

/// What a token and a scope are in the model.
#[derive(Clone, Default)]
struct ModelToken {
    run: usize,
    cancelled_by: Option<usize>,
}

struct ModelScope {
    token: usize,
    run: usize,
    cancelled_by: Option<usize>,
    real: Scope,
}

#[derive(Default)]
struct Model {
    tokens: [ModelToken; PARENTS.len()],
    scopes: Vec<ModelScope>,
}

impl Model {
    fn cancel(&mut self, token: usize, by: usize) -> bool {
        if self.tokens[token].cancelled_by.is_some() {
            return false;
        }
        self.tokens[token].cancelled_by = Some(by);
        let run = self.tokens[token].run;
        let scopes = self
            .scopes
            .iter_mut()
            .filter(|scope| (scope.token, scope.run) == (token, run));
        scopes.for_each(|scope| scope.cancelled_by = Some(by));
        for child in (0..PARENTS.len()).filter(|child| PARENTS[*child].contains(&token)) {
            self.cancel(child, by);
        }
        true
    }

    fn reset(&mut self, token: usize) -> Result<(), ResetRefused> {
        if self.tokens[token].cancelled_by.is_none() {
            return Ok(());
        }
        if PARENTS[token]
            .iter()
            .any(|parent| self.tokens[*parent].cancelled_by.is_some())
        {
            return Err(ResetRefused::ParentCancelled);
        }
        self.tokens[token] = ModelToken {
            run: self.tokens[token].run + 1,
            cancelled_by: None,
        };
        Ok(())
    }

    /// A scope of that token, if there is one.
    fn pick(&self, token: usize, index: usize) -> Option<&ModelScope> {
        let mut own = self.scopes.iter().filter(|scope| scope.token == token);
        let count = own.clone().count();
        if count == 0 { None } else { own.nth(index % count) }
    }
}

fn check(steps: Vec<Step>) {
    let mut real: Vec<CancellationToken> = Vec::new();
    for parents in PARENTS {
        let parents: Vec<_> = parents.iter().map(|parent| &real[*parent]).collect();
        let token = CancellationToken::with_parents(&parents);
        real.push(token);
    }
    let mut model = Model::default();
    for (number, step) in steps.into_iter().enumerate() {
        let cause = Cause::new(number.to_string(), "a step");
        match step {
            Step::Cancel(token) => assert_eq!(real[token].cancel(cause), model.cancel(token, number)),
            Step::CancelScope { token, scope } => {
                let Some(scope) = model.pick(token, scope) else {
                    continue;
                };
                let is_current = scope.run == model.tokens[token].run;
                let cancelled = real[token].cancel_scope(&scope.real, cause);
                assert_eq!(cancelled, is_current && model.cancel(token, number));
            }
            Step::Reset(token) => assert_eq!(real[token].reset(), model.reset(token)),
            Step::ResetScope { token, scope } => {
                let Some(scope) = model.pick(token, scope) else {
                    continue;
                };
                let state = &model.tokens[token];
                let is_its_cancel = scope.run == state.run && state.cancelled_by.is_some();
                let reset = real[token].reset_scope(&scope.real);
                let expected = if is_its_cancel {
                    model.reset(token)
                } else {
                    Err(ResetRefused::Moved)
                };
                assert_eq!(reset, expected);
            }
            Step::Scope(token) => {
                let ModelToken { run, cancelled_by } = model.tokens[token].clone();
                let real = real[token].scope();
                model.scopes.push(ModelScope {
                    token,
                    run,
                    cancelled_by,
                    real,
                });
            }
        }
        for (token, state) in real.iter().zip(&model.tokens) {
            assert_eq!(token.is_cancelled(), state.cancelled_by.is_some());
        }
        for scope in &model.scopes {
            let who = scope.real.cause().map(|cause| cause.who.to_string());
            assert_eq!(scope.real.is_cancelled(), scope.cancelled_by.is_some());
            assert_eq!(who, scope.cancelled_by.map(|by| by.to_string()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn every_history_is_as_the_model_says(steps in steps()) {
        check(steps);
    }
}
