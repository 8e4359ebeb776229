//! Shared storage itself, where no worker answers.

use std::collections::HashMap;
use std::future::Future;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_protocol::{ControlReply, ControlRequest, RangeSpec};
use forebay_shared_storage::{Class, Get, GetRange, Storage, StorageSettings};
use forebay_types::{Attributes, Error, ErrorKind, Key, Mount, MountId, ObjectInfo, ObjectVersion, Result};
use parking_lot::Mutex;
use tracing::debug;

use crate::connect::{Control, to_its_end, unexpected};

/// The last resort: shared storage itself, with this process's own credentials, within a share of the bandwidth bound
/// that the coordinator leases.
pub(crate) struct Fallback {
    settings: StorageSettings,
    control: Arc<Control>,
    client: u64,
    doors: Mutex<HashMap<MountId, Arc<Door>>>,
}

struct Door {
    mount: Mount,
    storage: Storage,
    /// The same for who comes after workers that have waited for it.
    hasty: OnceLock<Storage>,
    /// Until when the share holds.
    leased: tokio::sync::Mutex<Option<Instant>>,
}

/// Retries, and the time in which nothing moves, where workers have asked shared storage until it was enough, or were waited for in vain: time
/// is spent on that once.
const HASTY_RETRIES: u32 = 1;
const HASTY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the coordinator may take to give a share, and how long a client does without asking again when it didn't.
const LEASE_DEADLINE: Duration = Duration::from_secs(2);
const WITHOUT_LEASE: Duration = Duration::from_secs(2);
/// A client that can't ask for its share takes this part of the bound.
const SHARE_UNASKED: u64 = 20;
/// And at once no more than this.
const BURST_UNASKED: u64 = 64 << 10;

impl Fallback {
    pub(crate) fn new(settings: StorageSettings, control: Arc<Control>) -> Self {
        Self { settings, control, client: forebay_runtime::random(), doors: Mutex::default() }
    }

    /// The mount's storage, with a share that holds now.
    pub(crate) async fn storage(&self, mount: &Mount) -> Result<Storage> {
        let door = self.door(mount)?;
        let storage = door.storage.clone();
        let leased = lease_door(Arc::clone(&self.control), self.client, door);
        to_its_end(leased).await?;
        Ok(storage)
    }

    /// Storage of a mount that may not be there yet.
    pub(crate) fn open(&self, mount: &Mount) -> Result<Storage> {
        Storage::open(mount, self.settings.clone())
    }

    fn door(&self, mount: &Mount) -> Result<Arc<Door>> {
        let mut doors = self.doors.lock();
        match doors.get(&mount.id) {
            Some(door) if &door.mount == mount => Ok(Arc::clone(door)),
            _ => {
                let storage = self.open(mount)?;
                let door = Arc::new(Door {
                    mount: mount.clone(),
                    storage,
                    hasty: OnceLock::new(),
                    leased: tokio::sync::Mutex::new(None),
                });
                doors.insert(mount.id, Arc::clone(&door));
                Ok(door)
            }
        }
    }

    /// The mount's storage for what workers have waited for already: it has one more try.
    fn hasty(&self, mount: &Mount) -> Result<Storage> {
        let door = self.door(mount)?;
        if let Some(hasty) = door.hasty.get() {
            return Ok(hasty.clone());
        }
        let max_retries = self.settings.max_retries.min(HASTY_RETRIES);
        let request_timeout = self.settings.request_timeout.min(HASTY_TIMEOUT);
        let hasty = door.storage.again(StorageSettings { max_retries, request_timeout, ..self.settings.clone() })?;
        Ok(door.hasty.get_or_init(|| hasty).clone())
    }

    /// Asks shared storage what no worker could answer. What it says about the object stands alone; all else is told
    /// beside the workers' `away`.
    pub(crate) async fn instead<T, Fut>(
        &self,
        mount: &Mount,
        key: &Key,
        away: Error,
        ask: impl FnOnce(Storage) -> Fut,
    ) -> Result<T>
    where
        Fut: Future<Output = Result<T>>,
    {
        let neither = |storage: Error| {
            // What workers have found of the object's bytes stands where nobody can look from here.
            if away.kind() == ErrorKind::Corrupt {
                return away.clone();
            }
            // Storage that is away is so for workers as well: credentials help where somebody is refused.
            let remedy = match storage.kind() {
                ErrorKind::Retry => "see whether shared storage is up, and that a worker runs that reaches it",
                _ => "start a worker, or give this process the credentials",
            };
            Error::retry(format!(
                "/{}/{key}: no worker could answer ({away}), and shared storage can't be read from here ({storage}); {remedy}",
                mount.name
            ))
            .with_source(storage)
        };
        debug!(mount = %mount.name, "no worker answers, asking shared storage directly");
        let mut storage = self.storage(mount).await.map_err(neither)?;
        if away.is_in_vain() {
            storage = self.hasty(mount).map_err(neither)?;
        }
        match ask(storage.clone()).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                // That the object is not there counts only where the storage is: another host may lack the folder.
                storage.check().await.map_err(neither)?;
                Err(error)
            }
            Err(error) if !matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Invalid | ErrorKind::Corrupt) => {
                Err(neither(error))
            }
            answer => answer,
        }
    }
}

/// Sees to it that the share of a door's mount holds.
async fn lease_door(control: Arc<Control>, client: u64, door: Arc<Door>) -> Result<()> {
    let mut leased = door.leased.lock().await;
    if leased.is_none_or(|until| until <= forebay_runtime::now()) {
        *leased = Some(forebay_runtime::now() + lease(&control, client, &door).await);
    }
    Ok(())
}

/// Sets the share; gives how long it holds.
async fn lease(control: &Control, client: u64, door: &Door) -> Duration {
    let request = ControlRequest::Budget { client, mount: door.mount.id }.into();
    let asked = match control.ask(&request, LEASE_DEADLINE).await {
        Ok(ControlReply::Budget(lease)) => Ok(lease),
        Ok(_) => Err(unexpected("the coordinator", "budget")),
        Err(error) => Err(error),
    };
    let (rate, burst, lasts) = match asked {
        Ok(lease) => (lease.share.bytes_per_sec, lease.share.burst_bytes, lease.lasts),
        Err(error) => {
            let bound = door.mount.options.bandwidth.map(|rate| rate.bytes_per_sec());
            debug!(mount = %door.mount.name, %error, "no budget to be had, taking a twentieth of the bound");
            (bound.map(|bound| (bound / SHARE_UNASKED).max(1)), BURST_UNASKED, WITHOUT_LEASE)
        }
    };
    door.storage.set_share(rate, burst);
    lasts
}

/// Exactly `range` of `version`.
pub(crate) async fn read(storage: Storage, version: &ObjectVersion, range: Range<u64>) -> Result<Bytes> {
    match read_once(&storage, version, range.clone()).await {
        // Of two versions that the store has mixed, one may be whole by now.
        Err(error) if error.kind() == ErrorKind::Corrupt => read_once(&storage, version, range).await,
        read => read,
    }
}

async fn read_once(storage: &Storage, version: &ObjectVersion, range: Range<u64>) -> Result<Bytes> {
    let wanted = GetRange::part(range.clone(), version.size);
    let get = Get { key: &version.key, range: wanted, if_match: Some(&version.tag), class: Class::Demand };
    let body = storage.get(get).await?;
    if body.info.version != *version || body.range != range {
        return Err(Error::conflict(format!("{} has changed since it was opened: open it again", version.key)));
    }
    body.collect().await
}

/// The range of whatever version is there, cut off at the object's end, with what the store says of the object beside.
pub(crate) async fn read_object(
    storage: Storage,
    key: &Key,
    range: RangeSpec,
) -> Result<(ObjectInfo, Attributes, Range<u64>, Bytes)> {
    let range = match range {
        RangeSpec::Bounded { start, len } => GetRange::Bounded(start..start.saturating_add(len)),
        RangeSpec::From { start: 0 } => GetRange::All,
        RangeSpec::From { start } => GetRange::From(start),
        RangeSpec::Suffix { len } => GetRange::Suffix(len),
    };
    let body = storage.get(Get { key, range, if_match: None, class: Class::Demand }).await?;
    let (info, attributes, range) = (body.info.clone(), body.attributes.clone(), body.range.clone());
    Ok((info, attributes, range, body.collect().await?))
}
