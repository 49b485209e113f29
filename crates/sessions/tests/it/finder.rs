//! A finder of context that does what the question says.

use std::sync::Mutex;

use async_trait::async_trait;
use sessions::{ContextFinder, ContextFound, ContextOrder, FinderError};

/// Finds nothing. A question says what happens: `hang`, `fail`, `nothing`, `flood`, `leak PATH`; all others are found in
/// `src/main.rs`.
#[derive(Debug, Default)]
pub(crate) struct FakeFinder {
    pub(crate) orders: Mutex<Vec<ContextOrder>>,
}

impl FakeFinder {
    /// How often it was asked.
    pub(crate) fn asked(&self) -> usize {
        self.orders.lock().unwrap().len()
    }

    /// The last order.
    pub(crate) fn last(&self) -> ContextOrder {
        self.orders.lock().unwrap().last().unwrap().clone()
    }
}

#[async_trait]
impl ContextFinder for FakeFinder {
    async fn find(&self, order: ContextOrder) -> Result<ContextFound, FinderError> {
        self.orders.lock().unwrap().push(order.clone());
        let found = |text: String, file: &str| {
            Ok(ContextFound {
                text,
                summary: "1 piece of 1 file, 9 tokens".to_owned(),
                files: vec![file.to_owned()],
            })
        };
        match order.query.split_once(' ').unwrap_or((&order.query, "")) {
            ("hang", _) => std::future::pending().await,
            ("fail", _) => Err(FinderError {
                text: "no strategy answered".to_owned(),
            }),
            ("nothing", _) => Ok(ContextFound::default()),
            ("flood", _) => found("x".repeat(100_000), "src/main.rs"),
            ("leak", path) => found("hidden".to_owned(), path),
            _ => found("src/main.rs:1\nfn main() {}\n".to_owned(), "src/main.rs"),
        }
    }
}
