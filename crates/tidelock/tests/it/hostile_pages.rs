//! Pages full of text that means harm, in a real browser: nothing of it runs, nothing is asked for elsewhere, nothing breaks
//! the layout, and it is shown as what it is: text.

use fantoccini::Locator;

use crate::browser::{PAGE_LIMIT, Scripts, browse};
use crate::browser_views::{VIEWS, faults, look, sign_in, text, visit};
use crate::hostile_stage::{Hostile, MARK, Shows};
use crate::security_stage::Target;

#[test]
fn hostile_text_is_shown_and_does_nothing_on_any_page() {
    let hostile = Hostile::new();
    let world = &hostile.project.world;
    browse(world, Scripts::On, async |page| {
        let address = sign_in(world, page).await;
        let mut wrong = Vec::new();
        for view in VIEWS {
            look(page, view).await;
            for place in hostile.places() {
                let name = format!("hostile-{}-{}.png", place.name, view.name);
                visit(world, page, &address, &place, &name).await;
                let mut found = faults(page).await;
                if place.shows == Shows::Hostile && !text(page).await.contains(MARK) {
                    found.push("the text is not shown".to_owned());
                }
                wrong.extend(
                    found
                        .iter()
                        .map(|fault| format!("{} {}: {fault}", place.name, view.name)),
                );
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));

        // The pages can still be used: the question is answered by a click, and that is seen.
        page.goto(
            address
                .join(&format!("/sessions/{}", hostile.waiting))
                .unwrap()
                .as_str(),
        )
        .await
        .unwrap();
        let button = page.wait().at_most(PAGE_LIMIT);
        let button = button
            .for_element(Locator::XPath("//form//button[contains(., 'Allow')]"))
            .await
            .unwrap();
        button.click().await.unwrap();
        page.wait()
            .at_most(PAGE_LIMIT)
            .for_element(Locator::XPath("//article/p[@data-end]/span[text()='Done']"))
            .await
            .unwrap();
    });
}

#[test]
fn answers_of_the_interface_are_never_a_page() {
    let hostile = Hostile::new();
    let (plan, job, session) = (hostile.plan, hostile.job, hostile.session);
    let target = Target::of(hostile.project.world);
    for path in [
        format!("/v1/plans/{plan}/diff?format=text"),
        format!("/v1/plans/{plan}/diff"),
        format!("/v1/plans/{plan}/file?path=a.txt"),
        format!("/v1/jobs/{job}/output"),
        format!("/v1/jobs/{job}/logs"),
        format!("/v1/sessions/{session}/export"),
        format!("/v1/sessions/{session}/export?format=markdown"),
        "/v1/plans/%3Cscript%3E".to_owned(),
        "/v1/%3Cscript%3E".to_owned(),
    ] {
        let reply = target.ask("GET", &path, "");
        let media_type = reply.header("content-type").unwrap_or_default();
        assert!(!media_type.contains("html"), "{path}: {media_type}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
        let policy = reply.header("content-security-policy").unwrap_or_default();
        assert!(policy.contains("default-src 'none'"), "{path}: {policy}");
    }
}
