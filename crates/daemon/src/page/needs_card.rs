//! What needs a person, on the first page, with what can be done about it.

use maud::{Markup, html};
use protocol::{Session, WaitingPermission};

use super::ansi::one_line;
use super::form::token_field;
use super::list_parts::elsewhere;
use super::plan_state::{overlap_words, titled};
use super::plan_text::exact;
use super::sign_in::Visitor;
use super::{breakers, history, job_state, plan_state, server_log, server_state, session_state};
use crate::needs::{
    INTERRUPTED, Need, Needs, PlanNeed, REFUSED, rescued_words, server_words, stuck_words, waiting_words,
};

/// How many are shown. Whoever has more begins with these.
const SHOWN_NEEDS: usize = 20;

/// The card, whether there is something or not.
pub(super) fn card(visitor: &Visitor) -> Markup {
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

/// A row: a coloured word, what it is about, what there is to know, and what to do.
fn line(word: &Markup, what: &Markup, more: &Markup, act: &Markup) -> Markup {
    html! {
        div class="row-state" { (word) }
        div class="row-what" { (what) (more) }
        div class="actions" { (act) }
    }
}

/// A link that begins the work on something.
fn link(href: &str, key: &str, word: &str, title: &str) -> Markup {
    html! { a class="button" href=(href) data-key=(key) aria-label={ (word) ": " (title) } { (word) } }
}

fn titled_link(href: &str, key: &str, title: &str) -> Markup {
    html! { a class="row-title" href=(href) data-key=(key) { (title) } }
}

fn row(need: &Need, visitor: &Visitor) -> Markup {
    match need {
        Need::Permission(session, question) => permission(session, question, visitor),
        Need::Stuck(workspace, stuck) => {
            let root = one_line(&workspace.root);
            let command = format!("tidelock workspace repair {}", workspace.id);
            let more = html! {
                small class="error" { (one_line(&stuck_words(stuck))) }
                small { "Run " code tabindex="0" { (command) } ", or add " code { "--abort" } " to set it aside without losing anything." }
            };
            let what = titled_link("/recovery", &format!("need {}", workspace.id), &root);
            html! {
                li data-need="stuck" {
                    (line(&html! { span class="badge bad" { "Stuck" } }, &what, &more, &html! {}))
                }
            }
        }
        Need::Rescued(rescued) => {
            let more = html! {
                small { (one_line(&rescued_words(rescued))) }
                small { "Restore it with " code tabindex="0" { "tidelock workspace rescued restore " (rescued.id) }
                    ", or drop it with " code tabindex="0" { "tidelock workspace rescued drop " (rescued.id) } "." }
                small { "It is kept in " code tabindex="0" { (exact(&rescued.kept_at)) } }
            };
            let what = titled_link(
                "/recovery",
                &format!("need {}", rescued.id),
                &one_line(&rescued.path),
            );
            html! {
                li data-need="rescued" {
                    (line(&html! { span class="badge warn" { "Rescued" } }, &what, &more, &html! {}))
                }
            }
        }
        Need::Plan(plan, why) => {
            let (href, title) = (plan_state::path(&plan.id), plan_state::title(plan));
            let more = html! {
                small { (why.words()) " · " (plan_state::extent(plan)) " · " code { (exact(&plan.root)) } }
                (elsewhere(plan.machine.as_ref()))
            };
            let word = if *why == PlanNeed::Review {
                "Review"
            } else {
                "View"
            };
            html! {
                li data-need="plan" data-plan=(plan.id) {
                    (line(
                        &plan_state::badge(plan),
                        &titled_link(&href, &format!("need {}", plan.id), &title),
                        &more,
                        &link(&href, &format!("look {}", plan.id), word, &title),
                    ))
                }
            }
        }
        Need::Overlap(plan, overlap) => {
            let (href, title) = (plan_state::path(&plan.id), plan_state::title(plan));
            let other = titled(&overlap.title, &overlap.plan);
            let key = format!("{} {}", plan.id, overlap.plan);
            let what = html! {
                (titled_link(&href, &format!("one {key}"), &title)) " and "
                (titled_link(&plan_state::path(&overlap.plan), &format!("other {key}"), &other))
            };
            html! {
                li data-need="overlap" {
                    (line(
                        &html! { span class="badge warn" { "Overlap" } },
                        &what,
                        &html! { small { (overlap_words(overlap)) } (elsewhere(plan.machine.as_ref())) },
                        &link(&href, &format!("compare {key}"), "Compare", &title),
                    ))
                }
            }
        }
        Need::Server(server) => {
            let href = server_log::path(&server.id);
            let more = html! {
                small class="error" { (one_line(server_words(server))) }
                small { code { (exact(&server.root)) } }
            };
            html! {
                li data-need="server" {
                    (line(
                        &server_state::badge(server),
                        &titled_link(&href, &format!("need {}", server.id), &server.server),
                        &more,
                        &link(&href, &format!("look {}", server.id), "View", &server.server),
                    ))
                }
            }
        }
        Need::Waiting(session, machine) => {
            let (href, title) = (session_state::path(&session.id), session_state::title(session));
            let more = html! { small { (one_line(&waiting_words(machine))) } };
            html! {
                li data-need="waiting" {
                    (line(
                        &session_state::badge(session),
                        &titled_link(&href, &format!("need {}", session.id), &title),
                        &more,
                        &link(&href, &format!("look {}", session.id), "View", &title),
                    ))
                }
            }
        }
        Need::Interrupted(session) => {
            let (href, title) = (session_state::path(&session.id), session_state::title(session));
            let more = html! { small { (INTERRUPTED) } (elsewhere(session.machine.as_ref())) };
            html! {
                li data-need="interrupted" {
                    (line(
                        &session_state::badge(session),
                        &titled_link(&href, &format!("need {}", session.id), &title),
                        &more,
                        &link(&href, &format!("go on {}", session.id), "Continue", &title),
                    ))
                }
            }
        }
        Need::Job(job) => {
            let (href, title) = (job_state::path(&job.id), job_state::title(job));
            html! {
                li data-need="job" {
                    (line(
                        &job_state::badge(job),
                        &titled_link(&href, &format!("need {}", job.id), &title),
                        &html! { (job_state::explanation(job)) (elsewhere(job.machine.as_ref())) },
                        &link(&href, &format!("look {}", job.id), "View", &title),
                    ))
                }
            }
        }
        Need::Breaker(breaker) => {
            let name = one_line(&breaker.id);
            let more = html! { small { (REFUSED) } (breakers::explanation(breaker)) };
            html! {
                li data-need="breaker" {
                    (line(
                        &breakers::badge(breaker),
                        &titled_link(&history::path(&breaker.id), &format!("need {name}"), &name),
                        &more,
                        &link("/breakers", &format!("look {name}"), "View", &name),
                    ))
                }
            }
        }
    }
}

/// The one need that is answered on the spot: somebody stands still until it is.
fn permission(session: &Session, question: &WaitingPermission, visitor: &Visitor) -> Markup {
    let what = html! {
        (titled_link(
            &session_state::path(&session.id),
            &format!("need {}", question.permission),
            &session_state::title(session),
        ))
    };
    let more = html! {
        small { (one_line(&session.agent.name)) " wants to use " strong { (one_line(&question.tool)) } }
        code class="subject" tabindex="0" { (exact(&question.subject)) }
        (elsewhere(session.machine.as_ref()))
    };
    let act = html! { (answers(visitor, session, question, After::Overview)) };
    html! {
        li data-need="permission" data-permission=(question.permission) {
            (line(&html! { span class="badge warn" { "Permission" } }, &what, &more, &act))
        }
    }
}

/// Where somebody is led after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    Session,
    Overview,
}

/// The buttons that answer a question.
pub(super) fn answers(
    visitor: &Visitor,
    session: &Session,
    question: &WaitingPermission,
    after: After,
) -> Markup {
    let hidden = |name: &str, value: &str| html! { input type="hidden" name=(name) value=(value); };
    html! {
        @for (answer, word) in [("allow", "Allow"), ("allow_always", "Always allow"), ("deny", "Deny")] {
            form method="post" action="/sessions/change" {
                (token_field(visitor))
                (hidden("id", &session.id))
                (hidden("action", "answer"))
                (hidden("permission", &question.permission))
                (hidden("answer", answer))
                @if after == After::Overview { (hidden("after", "overview")) }
                button type="submit" class=[(answer == "allow").then_some("primary")]
                    data-key={ "answer " (answer) " " (question.permission) } data-answer-button=(answer)
                    aria-label={ (word) ": " (one_line(&question.tool)) " " (one_line(&question.subject)) } { (word) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use protocol::{BreakerState, JobState, Plan, PlanState, Server, ServerState, SessionState};

    use super::super::job_state::tests::{HOSTILE, assert_harmless, job};
    use super::super::plan_state::tests::{overlap, plan};
    use super::super::servers::tests::server;
    use super::super::session_state::tests::session;
    use super::*;
    use crate::app::tests::detached;
    use crate::needs::tests::{breaker, rescued, stuck_workspace};

    async fn rendered(list: Vec<Need>) -> String {
        let app = detached().await;
        let needs = Needs {
            here: None,
            list,
            is_partial: false,
        };
        card(&Visitor {
            needs: Arc::new(needs),
            ..Visitor::for_tests(&app)
        })
        .into_string()
    }

    /// One of each kind, with this text wherever there is one.
    fn all(text: &str) -> Vec<Need> {
        let mut asking = session(SessionState::Asking);
        asking.title = text.to_owned();
        asking.agent.name = text.to_owned();
        let question = WaitingPermission {
            permission: "permission_1".to_owned(),
            tool: text.to_owned(),
            // Whoever is to allow it sees every character of it.
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

    #[tokio::test]
    async fn each_need_says_what_it_is_and_leads_on() {
        let page = rendered(all("Some work")).await;
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
        for part in [
            "<span class=\"number\">9</span>",
            "tidelock workspace rescued restore rescued_1",
            "tidelock workspace repair workspace_1",
            "name=\"after\" value=\"overview\"",
            "data-answer-button=\"allow_always\"",
            "ready for review · 2 files",
            "1 file in common, 1 conflicts",
            "aria-label=\"Review: Some work\">Review</a>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[tokio::test]
    async fn nothing_is_a_good_answer_and_too_much_is_cut() {
        assert!(
            rendered(Vec::new())
                .await
                .contains("Nothing right now: no questions")
        );
        let many = vec![Need::Plan(Box::new(plan(PlanState::Sealed)), PlanNeed::Review); SHOWN_NEEDS + 3];
        let page = rendered(many).await;
        assert_eq!(page.matches("<li").count(), SHOWN_NEEDS);
        assert!(page.contains("and 3 more"), "{page}");
    }

    #[tokio::test]
    async fn what_others_say_is_shown_as_text() {
        let page = rendered(all(HOSTILE)).await;
        assert_harmless(&page);
        assert!(!page.contains("<b>") && page.contains("&lt;U+202E&gt;"), "{page}");
    }
}
