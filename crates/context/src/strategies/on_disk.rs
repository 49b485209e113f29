//! What others see who look at the disk, while the question is about the sandbox of a plan.

use std::sync::Arc;

use kernel::Scope;

use crate::executor::on_thread;
use crate::path::TreePath;
use crate::strategy::{Ground, StrategyError};
use crate::view::Since;

/// Files that look different on disk from what the question is about, in order. There are none if it is about the disk.
pub(super) async fn not_as_on_disk(ground: &Ground, scope: &Scope) -> Result<Arc<[TreePath]>, StrategyError> {
    let view = Arc::clone(&ground.view);
    let since = on_thread(scope.clone(), move |_| Ok(view.since())).await?;
    if since == Since::default() {
        return Ok(Arc::default());
    }
    Ok(Arc::clone(&ground.beside_index))
}
