//! The form for a question about code. The question is part of the URL, so it can be bookmarked and asked again.

use maud::{Markup, html};
use protocol::{ContextQuestion, ContextStrategyInfo, Plan};

use crate::page::parts::text::exact_words;
use crate::page::plans::state::title;

/// How many files the form may name, not counting empty lines. The daemon accepts no more.
const NAMED_FILES: usize = 64;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) directory: String,
    pub(crate) query: String,
    pub(crate) focus: String,
    pub(crate) budget: String,
    pub(crate) plan: String,
    pub(crate) without: Vec<String>,
}

impl Asked {
    /// Parses a query string. Unknown names are ignored.
    pub(crate) fn read(pairs: Vec<(String, String)>) -> Self {
        let mut asked = Self::default();
        for (name, value) in pairs {
            match name.as_str() {
                "directory" => asked.directory = value,
                "query" => asked.query = value,
                "focus" => asked.focus = value,
                "budget" => asked.budget = value,
                "plan" => asked.plan = value,
                "without" => asked.without.push(value),
                _ => {}
            }
        }
        asked
    }

    /// The question, or `None` if the form is empty.
    pub(crate) fn question(&self) -> Option<Result<ContextQuestion, &'static str>> {
        let lines = self.focus.lines().map(str::trim);
        let focus: Vec<String> = lines
            .filter(|line| !line.is_empty())
            .take(NAMED_FILES + 1)
            .map(str::to_owned)
            .collect();
        if self.query.trim().is_empty() && focus.is_empty() {
            return None;
        }
        let budget_tokens = match self.budget.trim() {
            "" => None,
            written => match written.parse() {
                Ok(tokens) => Some(tokens),
                Err(_) => return Some(Err("Enter the budget as a whole number of tokens, such as 8000.")),
            },
        };
        let plan = Some(self.plan.clone()).filter(|plan| !plan.is_empty());
        if plan.is_none() && self.directory.trim().is_empty() {
            return Some(Err("Choose a directory or a plan to search."));
        }
        Some(Ok(ContextQuestion {
            query: self.query.clone(),
            directory: plan.is_none().then(|| self.directory.trim().to_owned()),
            plan,
            focus,
            budget_tokens,
            deadline_ms: None,
            only: Vec::new(),
            without: self.without.clone(),
            tokenizer: None,
        }))
    }
}

#[derive(Debug)]
pub(crate) struct Choices {
    pub(crate) directories: Vec<String>,
    pub(crate) plans: Vec<Plan>,
    pub(crate) strategies: Vec<ContextStrategyInfo>,
}

pub(crate) fn form(asked: &Asked, choices: &Choices) -> Markup {
    let first = choices.directories.first().map_or("", String::as_str);
    let directory = match asked.directory.as_str() {
        "" => first,
        directory => directory,
    };
    html! {
        form class="card prompt-form context-form" method="get" action="/context" aria-label="Question" {
            label for="context-query" { "Question" }
            input id="context-query" name="query" type="search" value=(asked.query) autocomplete="off"
                placeholder="Keywords, names or a question";
            div class="context-fields" {
                div {
                    label for="context-directory" { "Workspace" }
                    input id="context-directory" name="directory" type="text" list="context-directories" value=(directory)
                        placeholder="/home/me/project" autocomplete="off";
                    datalist id="context-directories" {
                        @for directory in &choices.directories { option value=(directory) {} }
                    }
                }
                div {
                    label for="context-plan" { "Search in" }
                    select id="context-plan" name="plan" {
                        option value="" { "the workspace" }
                        @for plan in &choices.plans { (plan_option(plan, &asked.plan)) }
                    }
                }
                div {
                    label for="context-budget" { "Token budget" }
                    input id="context-budget" name="budget" type="number" min="0" step="1" inputmode="numeric"
                        value=(asked.budget) placeholder="default";
                }
                div class="wide" {
                    label for="context-focus" { "Related files, one per line" }
                    textarea id="context-focus" name="focus" rows="2" placeholder="src/main.rs" { (asked.focus) }
                }
            }
            fieldset class="choices" {
                legend { "Skip strategies" }
                @for strategy in &choices.strategies { (strategy_choice(strategy, asked)) }
            }
            div class="actions" { button type="submit" class="primary" id="ask" { "Search" } }
        }
    }
}

fn plan_option(plan: &Plan, chosen: &str) -> Markup {
    html! {
        option value=(plan.id) selected[plan.id == chosen] {
            "the sandbox of “" (exact_words(&title(plan))) "” in " (exact_words(&plan.root))
        }
    }
}

fn strategy_choice(strategy: &ContextStrategyInfo, asked: &Asked) -> Markup {
    html! {
        label class="choice" {
            input type="checkbox" name="without" value=(strategy.id) checked[asked.without.contains(&strategy.id)]
                disabled[!strategy.enabled];
            " " (strategy.id)
            @if !strategy.enabled { " (disabled)" }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::page::parts::text::tests::assert_parts;

    fn asked(pairs: &[(&str, &str)]) -> Asked {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Asked::read(pairs.iter().map(pair).collect())
    }

    fn choices() -> Choices {
        let strategy = |id: &str, enabled| ContextStrategyInfo {
            id: id.to_owned(),
            breaker: format!("context/{id}"),
            enabled,
            timeout_ms: 2000,
        };
        Choices {
            directories: vec!["/home/me/<b>".to_owned(), "/home/me/other".to_owned()],
            plans: Vec::new(),
            strategies: vec![strategy("keyword", true), strategy("mine", false)],
        }
    }

    #[test]
    fn an_address_is_a_question_or_says_what_is_missing() {
        let question = ContextQuestion {
            query: "q".to_owned(),
            directory: Some("/w".to_owned()),
            ..ContextQuestion::default()
        };
        type Case<'a> = (&'a [(&'a str, &'a str)], Option<Result<ContextQuestion, &'a str>>);
        let cases: [Case<'_>; 8] = [
            (&[], None),
            (&[("directory", "/w"), ("query", "  ")], None),
            (
                &[("query", "q"), ("directory", " /w ")],
                Some(Ok(question.clone())),
            ),
            (
                &[
                    ("query", "q"),
                    ("directory", "/w"),
                    ("plan", "plan_1"),
                    ("other", "x"),
                ],
                Some(Ok(ContextQuestion {
                    directory: None,
                    plan: Some("plan_1".to_owned()),
                    ..question.clone()
                })),
            ),
            (
                &[
                    ("focus", "a.rs\r\n\r\n b c.rs \n"),
                    ("directory", "/w"),
                    ("budget", "0"),
                ],
                Some(Ok(ContextQuestion {
                    query: String::new(),
                    focus: vec!["a.rs".to_owned(), "b c.rs".to_owned()],
                    budget_tokens: Some(0),
                    ..question.clone()
                })),
            ),
            (
                &[
                    ("query", "q"),
                    ("directory", "/w"),
                    ("without", "a"),
                    ("without", "b"),
                ],
                Some(Ok(ContextQuestion {
                    without: vec!["a".to_owned(), "b".to_owned()],
                    ..question
                })),
            ),
            (
                &[("query", "q"), ("directory", "/w"), ("budget", "many")],
                Some(Err("Enter the budget as a whole number of tokens, such as 8000.")),
            ),
            (
                &[("query", "q")],
                Some(Err("Choose a directory or a plan to search.")),
            ),
        ];
        for (pairs, expected) in cases {
            assert_eq!(asked(pairs).question(), expected, "{pairs:?}");
        }
    }

    #[test]
    fn what_was_typed_stands_in_the_form_again_and_is_text() {
        let asked = asked(&[
            ("query", "\"><script>"),
            ("focus", "</textarea>"),
            ("budget", "500"),
            ("without", "keyword"),
        ]);
        let page = form(&asked, &choices()).into_string();
        assert_parts(
            &page,
            &[
                "value=\"&quot;&gt;&lt;script&gt;\"",
                "&lt;/textarea&gt;</textarea>",
                "value=\"500\"",
                "value=\"/home/me/&lt;b&gt;\"",
                "value=\"keyword\" checked>",
                "value=\"mine\" disabled>",
            ],
        );
        assert!(!page.contains("<script"), "{page}");
    }
}
