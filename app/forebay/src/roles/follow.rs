//! Refreshes of datasets of shards that follow objects: those of this process's workers, one at a time.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_client::{Client, ClientSettings};
use forebay_node::Node;
use forebay_runtime::{now, random_range};
use forebay_shards::Shards;
use forebay_types::{Error, ErrorKind, ForebayPath, Result, ResultExt};
use forebay_worker::Worker;
use tokio_util::task::AbortOnDropHandle;

use crate::records::Formats;

/// How often it is looked whether a dataset is to be refreshed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Refreshes what is the workers' of a node, as long as this runs; none where it has no workers. Objects that are read are files below
/// `folder` meanwhile.
pub(super) fn follow(node: &Node, folder: &Path) -> Option<AbortOnDropHandle<()>> {
    let (settings, workers) = (node.client_settings(), node.workers.clone());
    let folder = folder.to_path_buf();
    (!workers.is_empty()).then(|| AbortOnDropHandle::new(forebay_runtime::spawn(refresh_all(settings, workers, folder))))
}

async fn refresh_all(settings: ClientSettings, workers: Vec<Arc<Worker>>, folder: PathBuf) {
    let (scratch, list) = (folder.join("refresh"), folder.join("refreshed"));
    // What was refreshed here before this process began, of which the workers know nothing until somebody asks.
    let mut listed: Vec<ForebayPath> = read(&list);
    let mut before: VecDeque<ForebayPath> = listed.iter().cloned().collect();
    let mut due: HashMap<ForebayPath, (Duration, Instant)> = HashMap::new();
    let mut client: Option<Client> = None;
    loop {
        forebay_runtime::time::sleep(LOOK_EVERY).await;
        let followed: Vec<(ForebayPath, Duration)> = workers.iter().flat_map(|worker| worker.followed()).collect();
        match before.pop_front() {
            Some(path) => {
                if !ask(&settings, &mut client, &path).await {
                    before.push_back(path);
                }
            }
            None => list_anew(&list, &mut listed, &followed),
        }
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

/// Has workers hear of a dataset; false where that has to be tried again.
async fn ask(settings: &ClientSettings, client: &mut Option<Client>, path: &ForebayPath) -> bool {
    let asked = async {
        let client = connected(settings, client).await?;
        Shards::open(client, path).await?.status().await
    };
    match asked.await {
        Err(error) if error.kind() == ErrorKind::Retry => false,
        Err(error) => {
            tracing::info!(%path, %error, "a dataset is not refreshed any more");
            true
        }
        Ok(_) => true,
    }
}

/// Keeps the list of what is refreshed here for the process after this one.
fn list_anew(list: &Path, listed: &mut Vec<ForebayPath>, followed: &[(ForebayPath, Duration)]) {
    let mut now: Vec<ForebayPath> = followed.iter().map(|(path, _)| path.clone()).collect();
    now.sort_unstable();
    if now == *listed {
        return;
    }
    let text: String = now.iter().map(|path| format!("{path}\n")).collect();
    if let Err(error) = std::fs::write(list, text) {
        tracing::warn!(list = %list.display(), %error, "after a restart datasets are refreshed once somebody asks for them");
    }
    *listed = now;
}

/// The paths of a list: what is none, as half a line, is passed over.
fn read(list: &Path) -> Vec<ForebayPath> {
    let text = std::fs::read_to_string(list).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

async fn connected<'c>(settings: &ClientSettings, client: &'c mut Option<Client>) -> Result<&'c Client> {
    if client.is_none() {
        *client = Some(Client::connect(settings.clone()).await?);
    }
    client.as_ref().ok_or_else(|| Error::closed("no client"))
}

/// When it is due again: not all at once, where many datasets were made together.
fn next(every: Duration) -> Instant {
    now() + every.mul_f64(random_range(0.75..1.0))
}

async fn refresh(settings: &ClientSettings, client: &mut Option<Client>, path: &ForebayPath, scratch: &Path) -> Result<()> {
    let client = connected(settings, client).await?;
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
