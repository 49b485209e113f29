//! The part of the front page about what needs a person, and what they can do about it.

use maud::{Markup, html};
use protocol::{Plan, Session, WaitingPermission};

use crate::needs::{
    INTERRUPTED, Need, Needs, PlanNeed, REFUSED, rescued_words, server_words, stuck_words, waiting_words,
};
use crate::page::jobs::state as job_state;
use crate::page::login::Visitor;
use crate::page::parts::ansi::one_line;
use crate::page::parts::form::{button_form, hidden};
use crate::page::parts::list::elsewhere;
use crate::page::parts::text::{badge, exact, titled};
use crate::page::plans::state::{self as plan_state, overlap_words};
use crate::page::servers::detail as server_log;
use crate::page::servers::state as server_state;
use crate::page::sessions::state as session_state;
use crate::page::system::breaker_history as history;
use crate::page::system::breakers;

/// How many are shown: the ones to start with.
const SHOWN_NEEDS: usize = 20;

/// The card. It is shown even if nothing needs a person.
pub(crate) fn card(visitor: &Visitor) -> Markup {
    let Needs { list, is_partial, .. } = &*visitor.needs;
    html! {
        section class="card needs" aria-labelledby="needs" {
            div class="card-heading" {
                h2 id="needs" { "What needs you" }
                @if !list.is_empty() { span class="number" { (visitor.needs.count()) } }
            }
            @if *is_partial {
                p class="error" { "Can't read the log, so there may be more." }
            }
            @if list.is_empty() {
                p class="quiet" { "Nothing right now: no questions, no plans to review, no failures." }
            } @else {
                ul class="rows" data-list="needs" {
                    @for need in list.iter().take(SHOWN_NEEDS) { (row(need, visitor)) }
                }
                @if list.len() > SHOWN_NEEDS {
                    p class="more" { "and " (list.len() - SHOWN_NEEDS) " more, under " a href="/plans" data-key="more plans" { "Plans" } ", "
                        a href="/sessions" data-key="more sessions" { "Sessions" } " and "
                        a href="/jobs?state=failed" data-key="more jobs" { "Jobs" } }
                }
            }
        }
    }
}

/// A row: a coloured word, the subject, the details, and the action.
fn line(word: &Markup, what: &Markup, more: &Markup, act: &Markup) -> Markup {
    html! {
        div class="row-state" { (word) }
        div class="row-what" { (what) (more) }
        div class="actions" { (act) }
    }
}

fn link(href: &str, key: &str, word: &str, title: &str) -> Markup {
    html! { a class="button" href=(href) data-key=(key) aria-label={ (word) ": " (title) } { (word) } }
}

fn titled_link(href: &str, key: &str, title: &str) -> Markup {
    html! { a class="row-title" href=(href) data-key=(key) { (title) } }
}

/// The subject of a row: its link, its id, and its title.
type About<'a> = (&'a str, &'a str, &'a str);

/// The row of something that has its own page. `act` is a button that leads there: its key and its label.
fn about(word: &Markup, (href, id, title): About<'_>, more: &Markup, act: Option<(&str, &str)>) -> Markup {
    let what = titled_link(href, &format!("need {id}"), title);
    let act = act.map(|(key, word)| link(href, &format!("{key} {id}"), word, title));
    line(word, &what, more, &act.unwrap_or_default())
}

fn row(need: &Need, visitor: &Visitor) -> Markup {
    let (kind, content) = match need {
        Need::Permission(session, question) => return permission(session, question, visitor),
        Need::Plan(plan, why) => return plan_row(plan, *why),
        Need::Stuck(workspace, stuck) => {
            let command = format!("tidelock workspace repair {}", workspace.id);
            let more = html! {
                small class="error" { (one_line(&stuck_words(stuck))) }
                small { "Run " code tabindex="0" { (command) } ", or add " code { "--abort" } " to set it aside without losing anything." }
            };
            let root = one_line(&workspace.root);
            let what = ("/recovery", workspace.id.as_str(), root.as_str());
            ("stuck", about(&badge(("badge bad", "Stuck")), what, &more, None))
        }
        Need::Rescued(rescued) => {
            let more = html! {
                small { (one_line(&rescued_words(rescued))) }
                small { "Restore it with " code tabindex="0" { "tidelock workspace rescued restore " (rescued.id) }
                    ", or drop it with " code tabindex="0" { "tidelock workspace rescued drop " (rescued.id) } "." }
                small { "It is kept in " code tabindex="0" { (exact(&rescued.kept_at)) } }
            };
            let path = one_line(&rescued.path);
            let what = ("/recovery", rescued.id.as_str(), path.as_str());
            (
                "rescued",
                about(&badge(("badge warn", "Rescued")), what, &more, None),
            )
        }
        Need::Overlap(plan, overlap) => {
            let (href, title) = (plan_state::path(&plan.id), plan_state::title(plan));
            let other = titled(&overlap.title, &overlap.plan);
            let key = format!("{} {}", plan.id, overlap.plan);
            let what = html! {
                (titled_link(&href, &format!("one {key}"), &title)) " and "
                (titled_link(&plan_state::path(&overlap.plan), &format!("other {key}"), &other))
            };
            let more = html! { small { (overlap_words(overlap)) } (elsewhere(plan.machine.as_ref())) };
            let act = link(&href, &format!("compare {key}"), "Compare", &title);
            (
                "overlap",
                line(&badge(("badge warn", "Overlap")), &what, &more, &act),
            )
        }
        Need::Server(server) => {
            let more = html! {
                small class="error" { (one_line(server_words(server))) }
                small { code { (exact(&server.root)) } }
            };
            let href = server_log::path(&server.id);
            let what = (href.as_str(), server.id.as_str(), server.server.as_str());
            let word = server_state::badge(server);
            ("server", about(&word, what, &more, Some(("look", "View"))))
        }
        Need::Waiting(session, machine) => {
            let more = html! { small { (one_line(&waiting_words(machine))) } };
            ("waiting", session_row(session, &more, ("look", "View")))
        }
        Need::Interrupted(session) => {
            let more = html! { small { (INTERRUPTED) } (elsewhere(session.machine.as_ref())) };
            ("interrupted", session_row(session, &more, ("go on", "Continue")))
        }
        Need::Job(job) => {
            let (href, title) = (job_state::path(&job.id), job_state::title(job));
            let more = html! { (job_state::explanation(job)) (elsewhere(job.machine.as_ref())) };
            let what = (href.as_str(), job.id.as_str(), title.as_str());
            (
                "job",
                about(&job_state::badge(job), what, &more, Some(("look", "View"))),
            )
        }
        Need::Breaker(breaker) => {
            let name = one_line(&breaker.id);
            let what = titled_link(&history::path(&breaker.id), &format!("need {name}"), &name);
            let more = html! { small { (REFUSED) } (breakers::explanation(breaker)) };
            let act = link("/breakers", &format!("look {name}"), "View", &name);
            ("breaker", line(&breakers::badge(breaker), &what, &more, &act))
        }
    };
    html! { li data-need=(kind) { (content) } }
}

fn plan_row(plan: &Plan, why: PlanNeed) -> Markup {
    let (href, title) = (plan_state::path(&plan.id), plan_state::title(plan));
    let more = html! {
        small { (why.words()) " · " (plan_state::extent(plan)) " · " code { (exact(&plan.root)) } }
        (elsewhere(plan.machine.as_ref()))
    };
    let word = match why {
        PlanNeed::Review => "Review",
        _ => "View",
    };
    let what = (href.as_str(), plan.id.as_str(), title.as_str());
    html! {
        li data-need="plan" data-plan=(plan.id) {
            (about(&plan_state::badge(plan), what, &more, Some(("look", word))))
        }
    }
}

fn session_row(session: &Session, more: &Markup, act: (&str, &str)) -> Markup {
    let (href, title) = (session_state::path(&session.id), session_state::title(session));
    let what = (href.as_str(), session.id.as_str(), title.as_str());
    about(&session_state::badge(session), what, more, Some(act))
}

/// The only need that you can answer right here: an agent is waiting for it.
fn permission(session: &Session, question: &WaitingPermission, visitor: &Visitor) -> Markup {
    let what = titled_link(
        &session_state::path(&session.id),
        &format!("need {}", question.permission),
        &session_state::title(session),
    );
    let more = html! {
        small { (one_line(&session.agent.name)) " wants to use " strong { (one_line(&question.tool)) } }
        code class="subject" tabindex="0" { (exact(&question.subject)) }
        (elsewhere(session.machine.as_ref()))
    };
    let act = answers(visitor, session, question, After::Overview);
    html! {
        li data-need="permission" data-permission=(question.permission) {
            (line(&badge(("badge warn", "Permission")), &what, &more, &act))
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    Session,
    Overview,
}

pub(crate) fn answers(
    visitor: &Visitor,
    session: &Session,
    question: &WaitingPermission,
    after: After,
) -> Markup {
    html! {
        @for (answer, word) in [("allow", "Allow"), ("allow_always", "Always allow"), ("deny", "Deny")] {
            (button_form(
                visitor,
                "/sessions/change",
                &[("id", &session.id), ("action", &"answer"), ("permission", &question.permission), ("answer", &answer)],
                &html! {
                    @if after == After::Overview { (hidden("after", "overview")) }
                    button type="submit" class=[(answer == "allow").then_some("primary")]
                        data-key={ "answer " (answer) " " (question.permission) } data-answer-button=(answer)
                        aria-label={ (word) ": " (one_line(&question.tool)) " " (one_line(&question.subject)) } { (word) }
                },
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use protocol::{BreakerState, JobState, PlanState, Server, ServerState, SessionState};

    use super::*;
    use crate::needs::tests::{breaker, rescued, stuck_workspace};
    use crate::page::jobs::state::tests::job;
    use crate::page::parts::text::tests::{HOSTILE, assert_harmless, assert_parts};
    use crate::page::plans::state::tests::{overlap, plan};
    use crate::page::servers::list::tests::server;
    use crate::page::sessions::state::tests::session;

    fn rendered(list: Vec<Need>) -> String {
        let needs = Needs {
            here: None,
            list,
            is_partial: false,
        };
        card(&Visitor {
            needs: Arc::new(needs),
            ..Visitor::example()
        })
        .into_string()
    }

    fn all(text: &str) -> Vec<Need> {
        let mut asking = session(SessionState::Asking);
        asking.title = text.to_owned();
        asking.agent.name = text.to_owned();
        let question = WaitingPermission {
            permission: "permission_1".to_owned(),
            tool: text.to_owned(),
            // Before allowing it, a person must see every character of it.
            subject: "<b>\u{202e}".to_owned(),
        };
        let titled = Plan {
            title: text.to_owned(),
            ..plan(PlanState::Sealed)
        };
        let mut overlap = overlap(1, 1);
        overlap.title = text.to_owned();
        let failed = Server {
            state: ServerState::Failed,
            last_error: Some(text.to_owned()),
            ..server("ruff")
        };
        let mut resting = session(SessionState::Idle);
        resting.title = text.to_owned();
        let mut job = job(JobState::Failed);
        job.title = text.to_owned();
        job.text = Some(text.to_owned());
        vec![
            Need::Permission(Box::new(asking), question),
            {
                let workspace = stuck_workspace(text);
                let mut stuck = workspace.stuck.clone().unwrap();
                stuck.why = text.to_owned();
                Need::Stuck(Box::new(workspace), stuck)
            },
            Need::Rescued(Box::new(rescued(text))),
            Need::Plan(Box::new(titled.clone()), PlanNeed::Review),
            Need::Overlap(Box::new(titled), overlap),
            Need::Server(Box::new(failed)),
            Need::Interrupted(Box::new(resting)),
            Need::Job(Box::new(job)),
            Need::Breaker(breaker("<b>", BreakerState::Open)),
        ]
    }

    #[test]
    fn each_need_says_what_it_is_and_leads_on() {
        let page = rendered(all("Some work"));
        for kind in [
            "permission",
            "stuck",
            "rescued",
            "plan",
            "overlap",
            "server",
            "interrupted",
            "job",
            "breaker",
        ] {
            assert_eq!(
                page.matches(&format!("data-need=\"{kind}\"")).count(),
                1,
                "{kind}: {page}"
            );
        }
        assert_parts(
            &page,
            &[
                "<span class=\"number\">9</span>",
                "tidelock workspace rescued restore rescued_1",
                "tidelock workspace repair workspace_1",
                "name=\"after\" value=\"overview\"",
                "data-answer-button=\"allow_always\"",
                "ready for review · 2 files",
                "1 file in common, 1 conflicts",
                "aria-label=\"Review: Some work\">Review</a>",
            ],
        );
    }

    #[test]
    fn nothing_is_a_good_answer_and_too_much_is_cut() {
        assert_parts(&rendered(Vec::new()), &["Nothing right now: no questions"]);
        let many = vec![Need::Plan(Box::new(plan(PlanState::Sealed)), PlanNeed::Review); SHOWN_NEEDS + 3];
        let page = rendered(many);
        assert_eq!(page.matches("<li").count(), SHOWN_NEEDS);
        assert!(page.contains("and 3 more"), "{page}");
    }

    #[test]
    fn what_others_say_is_shown_as_text() {
        let page = rendered(all(HOSTILE));
        assert_harmless(&page);
        assert!(!page.contains("<b>") && page.contains("&lt;U+202E&gt;"), "{page}");
    }
}
