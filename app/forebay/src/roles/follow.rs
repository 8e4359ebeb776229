//! Refreshes of datasets of shards that follow objects: those of this process's workers, one at a time.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_client::{Client, ClientSettings};
use forebay_node::Node;
use forebay_runtime::{now, random_range};
use forebay_shards::Shards;
use forebay_types::{ErrorKind, ForebayPath, Result, ResultExt};
use forebay_worker::Worker;
use tokio_util::task::AbortOnDropHandle;

use crate::records::Formats;

/// How often it is looked whether a dataset is to be refreshed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Refreshes what is the workers' of a node, as long as this runs; none where it has no workers. Objects that are read are files below
/// `folder` meanwhile.
pub(super) fn follow(node: &Node, folder: &Path) -> Option<AbortOnDropHandle<()>> {
    let (settings, workers) = (node.client_settings(), node.workers.clone());
    let scratch = folder.join("refresh");
    (!workers.is_empty()).then(|| AbortOnDropHandle::new(forebay_runtime::spawn(refresh_all(settings, workers, scratch))))
}

async fn refresh_all(settings: ClientSettings, workers: Vec<Arc<Worker>>, scratch: PathBuf) {
    let mut due: HashMap<ForebayPath, (Duration, Instant)> = HashMap::new();
    let mut client: Option<Client> = None;
    loop {
        forebay_runtime::time::sleep(LOOK_EVERY).await;
        let followed: Vec<(ForebayPath, Duration)> = workers.iter().flat_map(|worker| worker.followed()).collect();
        due.retain(|path, _| followed.iter().any(|(of, _)| of == path));
        for (path, every) in followed {
            let of_path = due.entry(path.clone()).or_insert_with(|| (every, next(every)));
            // Somebody has ordered something else meanwhile.
            if of_path.0 != every {
                *of_path = (every, next(every));
            }
            if now() < of_path.1 {
                continue;
            }
            if let Err(error) = refresh(&settings, &mut client, &path, &scratch).await {
                match error.kind() {
                    ErrorKind::Retry => tracing::debug!(%path, %error, "a dataset is refreshed later"),
                    _ => {
                        Worker::count_refresh(0, 1);
                        tracing::warn!(%path, %error, "a dataset stays as it was");
                    }
                }
            }
            due.insert(path, (every, next(every)));
        }
    }
}

/// When it is due again: not all at once, where many datasets were made together.
fn next(every: Duration) -> Instant {
    now() + every.mul_f64(random_range(0.75..1.0))
}

async fn refresh(settings: &ClientSettings, client: &mut Option<Client>, path: &ForebayPath, scratch: &Path) -> Result<()> {
    if client.is_none() {
        *client = Some(Client::connect(settings.clone()).await?);
    }
    let Some(client) = client else { return Ok(()) };
    // What a process before this one has left.
    if scratch.exists() {
        std::fs::remove_dir_all(scratch).context(|| scratch.display())?;
    }
    std::fs::create_dir_all(scratch).context(|| scratch.display())?;
    let done = Shards::refresh(client, path, Arc::new(Formats), scratch).await?;
    let errors = done.errors.len() as u64;
    Worker::count_refresh((done.added + done.replaced + done.gone).saturating_sub(errors), errors);
    if done.added + done.replaced + done.gone > 0 {
        let (added, replaced, gone, changes) = (done.added, done.replaced, done.gone, done.changes);
        tracing::info!(%path, added, replaced, gone, changes, "a dataset was refreshed");
    }
    done.errors.iter().for_each(|error| tracing::warn!(%path, %error, "an object is not followed"));
    Ok(())
}
