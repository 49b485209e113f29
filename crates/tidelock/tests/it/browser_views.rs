//! How a page is looked at: by its width and in light or dark, and what is true of every page in each.

use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, Locator};
use serde_json::{Value, json};

use crate::browser::{PAGE_LIMIT, take_screenshot, wait_for_heading};
use crate::harness::World;
use crate::hostile_stage::Place;

/// A way to look at pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) name: &'static str,
    width: u32,
    height: u32,
    scheme: &'static str,
}

/// A window on a desk by day, and a telephone by night: each width and each scheme once.
pub(crate) const VIEWS: [View; 2] = [
    View {
        name: "wide-light",
        width: 1200,
        height: 900,
        scheme: "light",
    },
    View {
        name: "narrow-dark",
        width: 390,
        height: 844,
        scheme: "dark",
    },
];

/// A command of the browser that the protocol of drivers does not have.
#[derive(Debug)]
struct DevTools {
    command: &'static str,
    parameters: Value,
}

impl WebDriverCompatibleCommand for DevTools {
    fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
        base.join(&format!(
            "session/{}/goog/cdp/execute",
            session.unwrap_or_default()
        ))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        let body = json!({ "cmd": self.command, "params": self.parameters });
        (http::Method::POST, Some(body.to_string()))
    }
}

async fn tell(page: &Client, command: &'static str, parameters: Value) {
    page.issue_cmd(DevTools { command, parameters }).await.unwrap();
}

/// Looks at all that follows in this way.
pub(crate) async fn look(page: &Client, view: View) {
    let size = json!({
        "width": view.width, "height": view.height, "deviceScaleFactor": 1, "mobile": false,
    });
    tell(page, "Emulation.setDeviceMetricsOverride", size).await;
    let scheme = json!({ "features": [{ "name": "prefers-color-scheme", "value": view.scheme }] });
    tell(page, "Emulation.setEmulatedMedia", scheme).await;
}

/// Signs the browser in.
pub(crate) async fn sign_in(world: &World, page: &Client) -> url::Url {
    let up = world.run(&["up", "--json"]).expect(0).json();
    page.goto(up["page"]["url"].as_str().unwrap()).await.unwrap();
    wait_for_heading(page, "Overview").await;
    page.current_url().await.unwrap()
}

/// Loads a page, waits until it stands, and keeps a picture.
pub(crate) async fn visit(world: &World, page: &Client, address: &url::Url, place: &Place, name: &str) {
    page.goto(address.join(&place.path).unwrap().as_str())
        .await
        .unwrap();
    page.wait()
        .at_most(PAGE_LIMIT)
        .for_element(Locator::Css("main h1"))
        .await
        .unwrap();
    take_screenshot(world, page, name).await;
}

/// What is wrong with the page that is shown, whatever it shows; empty if nothing is.
pub(crate) async fn faults(page: &Client) -> Vec<String> {
    let script = r#"
        const faults = [];
        if (window.taken !== undefined) faults.push(`a script ran: ${window.taken}`);
        const root = document.documentElement;
        if (root.scrollWidth > window.innerWidth) {
            const wide = [...document.body.querySelectorAll('*')]
                .filter((each) => each.getBoundingClientRect().right > window.innerWidth + 1)
                .filter((each) => {
                    for (let at = each.parentElement; at; at = at.parentElement)
                        if (getComputedStyle(at).overflowX !== 'visible' && at !== document.body && at !== root) return false;
                    return true;
                })
                .slice(0, 5)
                .map((each) => `${each.tagName}.${each.className}`);
            faults.push(`wider than the window: ${root.scrollWidth} > ${window.innerWidth} (${wide.join(', ')})`);
        }
        for (const entry of performance.getEntriesByType('resource'))
            if (!entry.name.startsWith(location.origin + '/')) faults.push(`asked for ${entry.name}`);
        for (const each of document.querySelectorAll('script'))
            if (!each.src.startsWith(location.origin + '/assets/')) faults.push(`a script: ${each.outerHTML}`);
        for (const each of document.querySelectorAll('img, svg, iframe, object, embed, base, style, form'))
            if (each.hasAttribute('onerror') || each.hasAttribute('onload') || each.getAttribute('src') === 'x'
                || (each.tagName === 'FORM' && !new URL(each.getAttribute('action') ?? '', location.href).href.startsWith(location.origin + '/')))
                faults.push(`markup: ${each.outerHTML.slice(0, 100)}`);
        for (const each of document.querySelectorAll('a[href]'))
            if (!each.href.startsWith(location.origin + '/')) faults.push(`a link to ${each.href}`);
        for (const each of document.querySelectorAll('*'))
            for (const name of each.getAttributeNames())
                if (name.startsWith('on') || name === 'style' && /url\(/.test(each.getAttribute(name)))
                    faults.push(`an attribute: ${name} of ${each.tagName}`);
        if (!document.title.endsWith('· Tidelock')) faults.push(`the title is ${document.title}`);
        return faults;"#;
    let found = page.execute(script, Vec::new()).await.unwrap();
    serde_json::from_value(found).unwrap()
}

/// All the text of the page.
pub(crate) async fn text(page: &Client) -> String {
    let found = page
        .execute("return document.body.textContent + [...document.querySelectorAll('input, textarea')].map((each) => each.value).join(' ');", Vec::new())
        .await
        .unwrap();
    found.as_str().unwrap().to_owned()
}
