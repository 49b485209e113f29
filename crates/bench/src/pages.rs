//! The page with a lot of data: how long the HTML of each view takes, and how soon a browser shows something.

mod browser;
mod state;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::http::HttpClient;
use crate::programs::find_peer;
use crate::report::{BarVerdict, Table};
use browser::Browser;
use state::State;

/// How often each page is requested.
const ROUNDS: usize = 200;
/// How often each page is shown in the browser.
const PAINTS: usize = 11;
/// What people perceive as instant.
const AT_ONCE: Duration = Duration::from_millis(100);

pub(crate) fn measure(tidelock: &Path) -> Result<Table> {
    let mut table = Table::with_columns(
        "Pages",
        "A warm daemon with 1,000 sessions, 1,000 plans and 10,000 jobs. *HTML* is one request for a page, from the first \
         byte sent to the last one received. *First paint* is what a headless Chromium says of itself \
         (`first-contentful-paint`): style and scripts are read from its cache, the page is not. The bar is for the 99th \
         percentile of the first and the median of the second.",
        &[
            "page",
            "HTML p50",
            "HTML p99",
            "size",
            "first paint p50",
            "most",
            "bar",
            "met",
        ],
    );
    let state = State::make(tidelock)?;
    let Some(driver) = find_peer("chromedriver") else {
        table.skipped("there is no chromedriver");
        return Ok(table);
    };
    let browser = Browser::start(&driver, &state.link()?)?;
    let (host, cookie) = state.sign_in()?;
    for (name, path) in state.pages()? {
        let mut client = HttpClient::with_cookie(&state.address, &host, &cookie)?;
        let mut bytes = client.get(&path)?.len();
        let mut times = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            let began = Instant::now();
            bytes = client.get(&path)?.len();
            times.push(began.elapsed());
        }
        times.sort_unstable();
        let address = format!("http://{host}{path}");
        let mut paints = (0..PAINTS)
            .map(|_| browser.first_paint(&address))
            .collect::<Result<Vec<Duration>>>()
            .with_context(|| format!("no paint of {name}"))?;
        paints.sort_unstable();
        let (worst, usual) = (times[ROUNDS * 99 / 100], paints[PAINTS / 2]);
        let cells = vec![
            name,
            milliseconds(times[ROUNDS / 2]),
            milliseconds(worst),
            format!("{} KiB", bytes.div_ceil(1024)),
            milliseconds(usual),
            milliseconds(paints[PAINTS - 1]),
            "under 100 ms".to_owned(),
        ];
        table.judged_row(cells, BarVerdict::from(worst < AT_ONCE && usual < AT_ONCE));
    }
    Ok(table)
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}
