//! Refreshes of datasets of shards that follow objects: those of this process's workers, one at a time.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_client::{Client, ClientSettings};
use forebay_node::Node;
use forebay_runtime::{now, random_range};
use forebay_shards::{RefreshState, Shards, latest_manifest};
use forebay_types::{Error, ErrorKind, ForebayPath, Result, ResultExt};
use forebay_worker::Worker;
use tokio_util::task::AbortOnDropHandle;

use crate::records::Formats;

/// How often it is looked whether a dataset is to be refreshed.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A dataset is refreshed after this at the latest that never was, or that another process refreshes.
const SOON: Duration = Duration::from_secs(60);

/// Refreshes what is the workers' of a node, as long as this runs; none where it has no workers. Objects that are read are files below
/// `folder` meanwhile.
pub(super) fn follow(node: &Node, folder: &Path) -> Option<AbortOnDropHandle<()>> {
    let (settings, workers) = (node.client_settings(), node.workers.clone());
    let folder = folder.to_path_buf();
    (!workers.is_empty()).then(|| AbortOnDropHandle::new(forebay_runtime::spawn(refresh_all(settings, workers, folder))))
}

async fn refresh_all(settings: ClientSettings, workers: Vec<Arc<Worker>>, folder: PathBuf) {
    let (scratch, list) = (folder.join("refresh"), folder.join("refreshed"));
    if let Err(error) = clear(&scratch) {
        tracing::warn!(%error, "objects that a process before this one has read stay");
    }
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
            // It is this process's from now on, or somebody has ordered something else meanwhile.
            if due.get(&path).is_none_or(|(of, _)| *of != every) {
                let age = age(&settings, &mut client, &path).await;
                due.insert(path.clone(), (every, now() + due_in(every, age, share())));
            }
            if due.get(&path).is_some_and(|(_, at)| now() < *at) {
                continue;
            }
            let wait = match refresh(&settings, &mut client, &path, &scratch).await {
                Ok(()) => every,
                Err(error) if error.kind() == ErrorKind::Retry => {
                    tracing::debug!(%path, %error, "a dataset is refreshed later");
                    every.min(SOON)
                }
                Err(error) => {
                    Worker::count_refresh(0, 1);
                    tracing::warn!(%path, %error, "a dataset stays as it was");
                    if error.kind() == ErrorKind::NotFound && is_gone(&settings, &mut client, &path).await {
                        workers.iter().for_each(|worker| worker.forget_dataset(&path));
                    }
                    every
                }
            };
            due.insert(path, (every, now() + wait.mul_f64(share())));
        }
    }
}

/// How long ago a dataset was refreshed, by whomever; none where it never was, or that can't be known now.
async fn age(settings: &ClientSettings, client: &mut Option<Client>, path: &ForebayPath) -> Option<Duration> {
    let asked = async {
        let client = connected(settings, client).await?;
        RefreshState::read(&Shards::open(client, path).await?).await
    };
    match asked.await {
        Ok(state) => state.and_then(|state| state.age()),
        Err(error) => {
            tracing::debug!(%path, %error, "it is not known when a dataset was refreshed");
            None
        }
    }
}

/// Whether there is no dataset any more.
async fn is_gone(settings: &ClientSettings, client: &mut Option<Client>, path: &ForebayPath) -> bool {
    let Ok(client) = connected(settings, client).await else { return false };
    match latest_manifest(client, path).await {
        Ok(last) => last.is_none(),
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// When a dataset is due that was refreshed so long ago, after a share of its period: restarts don't put it off.
fn due_in(every: Duration, age: Option<Duration>, share: f64) -> Duration {
    if let Some(age) = age { every.mul_f64(share).saturating_sub(age) } else { every.min(SOON).mul_f64(share) }
}

/// Not all at once, where many datasets were made together.
fn share() -> f64 {
    random_range(0.75..1.0)
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

/// Removes what objects were brought to.
fn clear(scratch: &Path) -> Result<()> {
    match std::fs::remove_dir_all(scratch) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).context(|| scratch.display()),
        _ => Ok(()),
    }
}

async fn refresh(settings: &ClientSettings, client: &mut Option<Client>, path: &ForebayPath, scratch: &Path) -> Result<()> {
    let client = connected(settings, client).await?;
    std::fs::create_dir_all(scratch).context(|| scratch.display())?;
    let done = forebay_shards::refresh(client, path, Arc::new(Formats), scratch).await;
    clear(scratch)?;
    let done = done?;
    let errors = done.errors.len() as u64;
    Worker::count_refresh((done.added + done.replaced + done.gone).saturating_sub(errors), errors);
    if done.added + done.replaced + done.gone > 0 {
        let (added, replaced, gone, changes) = (done.added, done.replaced, done.gone, done.changes);
        tracing::info!(%path, added, replaced, gone, changes, "a dataset was refreshed");
    }
    done.errors.iter().for_each(|error| tracing::warn!(%path, %error, "an object is not followed"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_period_ends_whatever_is_restarted_meanwhile() {
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        assert_eq!(due_in(hours(100), Some(hours(30)), 0.75), hours(45));
        assert_eq!(due_in(hours(100), Some(hours(80)), 0.75), Duration::ZERO);
        assert_eq!(due_in(hours(100), None, 0.75), Duration::from_secs(45), "nobody has refreshed it yet");
        assert_eq!(due_in(Duration::from_secs(4), None, 0.75), Duration::from_secs(3));
    }
}
