//! The only one who writes to the database: what is durable there goes into the state after that, never before.

use std::sync::Arc;

use forebay_metadata::Metadata;
use forebay_protocol::{ControlReply, Pin, TableDefinition, decode, encode};
use std::time::Duration;

use forebay_metrics::table;
use forebay_runtime::time::interval;
use forebay_transport::unix_now;
use forebay_types::{Error, ErrorKind, Result, Verifier, WorkerId};
use tokio::sync::mpsc;
use tracing::{info, warn};

use super::queues::Job;
use super::shared::Shared;
use crate::decide::{Catalogue, Change, Checkpoint, Command, Event, Stored};

/// How often the catalogue is read again while a write's outcome is not known.
const RELOAD_EVERY: Duration = Duration::from_secs(1);
/// The kind of the checkpoint that holds the live workers.
pub(crate) const MEMBERS: &str = "members";
/// The kinds of those that hold popularity, and which segments are routed where.
const POPULARITY: &str = "popularity";
const ROUTES: &str = "routes";

/// Writes one change after the other, first to the database, then to the state: whoever asked may be gone meanwhile, a
/// change is always finished. Ends with an error when another coordinator has taken over.
pub(crate) async fn write(metadata: Metadata, shared: Arc<Shared>, mut jobs: mpsc::Receiver<Job>) -> Error {
    let mut reloads = interval(RELOAD_EVERY);
    let mut uncertain = false;
    loop {
        let job = tokio::select! {
            job = jobs.recv() => job,
            _ = reloads.tick(), if uncertain => None,
        };
        let outcome = match job {
            Some(Job::Change(change, reply)) => {
                let outcome = carry_out(&metadata, change).await;
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
            Some(Job::Remember(workers)) => metadata.put_checkpoint(MEMBERS, 0, &encode(&workers)).await,
            Some(Job::Checkpoint(checkpoint)) => put_placement(&metadata, &checkpoint).await,
            None if jobs.is_closed() => return Error::closed("the coordinator was shut down"),
            None => Ok(()),
        };
        match outcome {
            Err(error) if error.kind() == ErrorKind::Closed => return error,
            // It was not written, for sure.
            Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::NotFound | ErrorKind::Invalid) => {}
            Err(error) => {
                table::COORDINATOR_METADATA_ERRORS.only().add(1);
                warn!(%error, "metadata not written");
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

/// Reads the catalogue.
pub(crate) async fn load(metadata: &Metadata) -> Result<Catalogue> {
    let mounts = metadata.mounts().await?.into_iter().map(|mount| (mount.id, mount)).collect();
    let pins = metadata.pins().await?.into_iter().map(|(mount, prefix)| Pin { mount, prefix }).collect();
    let tables = metadata.tables().await?.into_iter();
    let tables =
        tables.map(|table| (table.name.clone(), TableDefinition { name: table.name, statement: table.statement })).collect();
    let tokens = metadata.tokens().await?.into_iter().map(|token| (token.id.clone(), token)).collect();
    Ok(Catalogue { mounts, pins, tables, tokens })
}

/// The workers that were live under the coordinator before, with their addresses.
pub(crate) async fn load_members(metadata: &Metadata) -> Result<Vec<(WorkerId, String)>> {
    let Some((_, bytes)) = metadata.checkpoint(MEMBERS).await? else { return Ok(Vec::new()) };
    // Coordinators from before the first release wrote the ids alone.
    let ids = || -> Result<Vec<(WorkerId, String)>> {
        let ids: Vec<WorkerId> = decode(&bytes)?;
        Ok(ids.into_iter().map(|worker| (worker, String::new())).collect())
    };
    decode(&bytes).or_else(|_| ids()).or_else(|error: Error| {
        // Of another version: nobody is presumed, and the next change of members writes it anew.
        warn!(%error, "checkpoint of members not read");
        Ok(Vec::new())
    })
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
