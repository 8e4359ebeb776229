//! The only one who writes to the database: what is durable there goes into the state after that, never before.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use forebay_metadata::Metadata;
use forebay_metrics::table;
use forebay_protocol::{ControlReply, Pin, TableDefinition, decode, encode};
use forebay_runtime::simulated;
use forebay_runtime::time::{MissedTickBehavior, interval};
use forebay_transport::{Seldom, unix_now};
use forebay_types::{Error, ErrorKind, Result, Verifier, WorkerId};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tracing::{info, warn};

use super::queues::Job;
use super::remembered::Remembered;
use super::shared::Shared;
use crate::decide::{Catalogue, Change, Checkpoint, Command, Event, Stored};

/// How often the catalogue is read again while a write's outcome is not known, and live workers are written again that were not.
const RELOAD_EVERY: Duration = Duration::from_secs(1);
/// The kind of the checkpoint that holds the ids of live workers.
pub(crate) const MEMBERS: &str = "members";
/// The kind of the one that holds their addresses: by itself, since coordinators from before the first release, standbys too, know the ids alone.
const ADDRESSES: &str = "addresses";
/// The kinds of those that hold popularity, and which segments are routed where.
const POPULARITY: &str = "popularity";
const ROUTES: &str = "routes";

/// Writes one change after the other, first to the database, then to the state: whoever asked may be gone meanwhile, a
/// change is always finished. Ends with an error when another coordinator has taken over.
pub(crate) async fn write(metadata: Metadata, shared: Arc<Shared>, mut jobs: mpsc::Receiver<Job>) -> Error {
    let (mut reloads, mut failing) = (interval(RELOAD_EVERY), Seldom::default());
    // As long as all goes well nobody waits for one: all those seconds would come at once.
    reloads.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut uncertain, mut wanted) = (false, shared.remembered.follow());
    loop {
        let job = tokio::select! {
            job = jobs.recv() => job,
            _ = wanted.changed() => None,
            _ = reloads.tick(), if uncertain || shared.remembered.is_unwritten() => None,
        };
        let outcome = match job {
            Some(Job::Change(change, reply)) => {
                let outcome = carry_out(&metadata, *change).await;
                let answer = match &outcome {
                    Ok(stored) => shared.decide(Event::Stored(stored.clone())).into_iter().find_map(answer_of),
                    Err(error) => Some(ControlReply::failed(error)),
                };
                // What failed after it was written is read anew.
                uncertain |= outcome.is_ok() && matches!(answer, Some(ControlReply::Failed { .. }));
                // Whoever asked may be gone.
                let _ = reply.send(answer.expect("a stored change is answered"));
                outcome.map(|_| ())
            }
            Some(Job::Checkpoint(checkpoint)) => put_placement(&metadata, &checkpoint).await,
            None if jobs.is_closed() => return Error::closed("the coordinator was shut down"),
            None => put_members(&metadata, &shared.remembered).await,
        };
        match outcome {
            Err(error) if error.kind() == ErrorKind::Closed => return error,
            // It was not written, for sure.
            Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::NotFound | ErrorKind::Invalid) => {}
            Err(error) => {
                table::COORDINATOR_METADATA_ERRORS.only().add(1);
                if let Some(times) = failing.happens(forebay_runtime::now()) {
                    warn!(%error, times, "metadata not written");
                }
                uncertain = true;
            }
            Ok(()) => {}
        }
        if uncertain && let Ok(catalogue) = load(&metadata).await {
            shared.decide(Event::Loaded(catalogue));
            uncertain = false;
        }
    }
}

fn answer_of(command: Command) -> Option<ControlReply> {
    if let Command::Answer(reply) = command { Some(reply) } else { None }
}

async fn carry_out(metadata: &Metadata, change: Change) -> Result<Stored> {
    Ok(match change {
        Change::AddMount { name, url, options } => {
            let mount = metadata.add_mount(&name, &url, &options).await?;
            info!(mount = %name, id = mount.id.0, url, "mount added");
            Stored::Mount(mount)
        }
        Change::SetMount { name, options } => {
            let mount = metadata.set_mount_options(&name, &options).await?;
            info!(mount = %name, "mount options changed");
            Stored::Mount(mount)
        }
        Change::RemoveMount { name } => {
            let mount = metadata.remove_mount(&name).await?;
            info!(mount = %name, "mount removed");
            Stored::MountRemoved(mount.id)
        }
        Change::AddPin { mount, prefix } => {
            metadata.add_pin(mount, &prefix).await?;
            Stored::Pin(mount, prefix)
        }
        Change::RemovePin { mount, prefix } => {
            metadata.remove_pin(mount, &prefix).await?;
            Stored::PinRemoved(mount, prefix)
        }
        Change::PutTable { table, replace } => {
            metadata.put_table(&table.name, &table.statement, replace).await?;
            Stored::Table(table)
        }
        Change::RemoveTable { name } => {
            metadata.remove_table(&name).await?;
            Stored::TableRemoved(name)
        }
        Change::AddToken { id, grant, keys } => {
            let token = Verifier { id, grant, created: unix_now(), keys };
            metadata.add_token(&token).await?;
            info!(token = token.id, role = %token.grant.role, "token added");
            Stored::Token(token)
        }
        Change::RemoveTokens { ids } => {
            metadata.remove_tokens(&ids).await?;
            info!(tokens = ids.join(" "), "token removed");
            Stored::TokensRemoved(ids)
        }
    })
}

pub(crate) async fn load(metadata: &Metadata) -> Result<Catalogue> {
    let mounts = metadata.mounts().await?.into_iter().map(|mount| (mount.id, mount)).collect();
    let pins = metadata.pins().await?.into_iter().map(|(mount, prefix)| Pin { mount, prefix }).collect();
    let tables = metadata.tables().await?.into_iter();
    let tables =
        tables.map(|table| (table.name.clone(), TableDefinition { name: table.name, statement: table.statement })).collect();
    let tokens = metadata.tokens().await?.into_iter().map(|token| (token.id.clone(), token)).collect();
    Ok(Catalogue { mounts, pins, tables, tokens })
}

/// Writes live workers, where there are some that are not written. They stay so where that fails: a coordinator that starts then would take those for
/// lost that it does not know, though they answer from what they know, and temporary data with them.
async fn put_members(metadata: &Metadata, remembered: &Remembered) -> Result<()> {
    let Some((number, workers)) = remembered.unwritten() else { return Ok(()) };
    if simulated::happens("members-not-written") {
        return Err(Error::retry("members are not written, as a simulation wants it"));
    }
    let ids: Vec<WorkerId> = workers.iter().map(|(worker, _)| *worker).collect();
    let mut written = metadata.put_checkpoint(MEMBERS, 0, &encode(&ids)).await;
    if written.is_ok() {
        written = metadata.put_checkpoint(ADDRESSES, 0, &encode(&workers)).await;
    }
    // What is too long is so the next time too.
    if written.as_ref().err().is_none_or(|error| error.kind() == ErrorKind::Invalid) {
        remembered.set_written(number);
    }
    written
}

/// The workers that were live under the coordinator before, with their addresses, which are empty where they are not known.
pub(crate) async fn load_members(metadata: &Metadata) -> Result<Vec<(WorkerId, String)>> {
    let ids: Vec<WorkerId> = read(metadata, MEMBERS).await?;
    let addresses: Vec<(WorkerId, String)> = read(metadata, ADDRESSES).await?;
    let mut addresses: BTreeMap<_, _> = addresses.into_iter().collect();
    Ok(ids.into_iter().map(|worker| (worker, addresses.remove(&worker).unwrap_or_default())).collect())
}

/// What a checkpoint has; nothing where there is none.
async fn read<T: DeserializeOwned + Default>(metadata: &Metadata, kind: &str) -> Result<T> {
    let Some((_, bytes)) = metadata.checkpoint(kind).await? else { return Ok(T::default()) };
    Ok(decode(&bytes).unwrap_or_else(|error: Error| {
        // Of another version: the next change of members writes it anew.
        warn!(%error, kind, "checkpoint of members not read");
        T::default()
    }))
}

async fn put_placement(metadata: &Metadata, checkpoint: &Checkpoint) -> Result<()> {
    metadata.put_checkpoint(POPULARITY, checkpoint.window, &checkpoint.popularity).await?;
    metadata.put_checkpoint(ROUTES, checkpoint.window, &checkpoint.routes).await
}

/// What the coordinator before knew of popularity and routes.
pub(crate) async fn load_placement(metadata: &Metadata) -> Result<Option<Checkpoint>> {
    let (Some((window, popularity)), Some((_, routes))) =
        (metadata.checkpoint(POPULARITY).await?, metadata.checkpoint(ROUTES).await?)
    else {
        return Ok(None);
    };
    Ok(Some(Checkpoint { window, popularity, routes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn members_are_known_without_their_addresses_where_another_version_wrote_them() {
        let folder = tempfile::tempdir().unwrap();
        let metadata = Metadata::open(&format!("sqlite:{}", folder.path().join("metadata.db").display())).await.unwrap();
        metadata.acquire_epoch().await.unwrap();
        assert!(load_members(&metadata).await.unwrap().is_empty());
        let [one, two] = [(WorkerId(1), "10.0.0.1:7000".to_string()), (WorkerId(2), "10.0.0.2:7000".to_string())];
        let remembered = Remembered::new(Vec::new());
        remembered.want(vec![one.clone(), two]);
        put_members(&metadata, &remembered).await.unwrap();
        let (_, ids) = metadata.checkpoint(MEMBERS).await.unwrap().unwrap();
        assert_eq!(decode::<Vec<WorkerId>>(&ids).unwrap(), [WorkerId(1), WorkerId(2)], "as they were written always");
        let others = Vec::from([WorkerId(1), WorkerId(3)]);
        metadata.put_checkpoint(MEMBERS, 0, &encode(&others)).await.unwrap();
        assert_eq!(load_members(&metadata).await.unwrap(), [one.clone(), (WorkerId(3), String::new())]);
        metadata.put_checkpoint(ADDRESSES, 0, b"of another version").await.unwrap();
        assert_eq!(load_members(&metadata).await.unwrap(), [(WorkerId(1), String::new()), (WorkerId(3), String::new())]);
        metadata.close().await;
    }

    #[tokio::test]
    async fn members_that_were_not_written_are_so_when_the_database_takes_them() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("metadata.db").display());
        let members = vec![(WorkerId(1), "10.0.0.1:7000".to_string())];
        let remembered = Remembered::new(Vec::new());
        remembered.want(members.clone());
        let away = Metadata::open(&url).await.unwrap();
        away.close().await;
        put_members(&away, &remembered).await.unwrap_err();
        assert!(remembered.is_unwritten(), "or the next coordinator would not know of the last who came");
        let metadata = Metadata::open(&url).await.unwrap();
        metadata.acquire_epoch().await.unwrap();
        put_members(&metadata, &remembered).await.unwrap();
        assert_eq!((remembered.is_unwritten(), load_members(&metadata).await.unwrap()), (false, members));
        metadata.close().await;
    }
}
