//! Work on datasets that may take longer than an answer.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use forebay_client::Client;
use forebay_shards::{ReadRecords, Refreshed, ReshardStep, ReshardTo, Resharded, Scratch, Shards};
use forebay_types::{Error, ForebayPath, Result, ResultExt, format_bytes};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use crate::describe::Content;
use crate::refusal::{Refusal, Wrong};
use crate::shards::visit::Changing;

/// Works that are under way at a time: each takes disk and processors of this machine.
const AT_ONCE: usize = 2;
/// Works that are known, those that are over among them.
const KNOWN_MAX: usize = 64;
/// What has become of a work.
const STATES: [&str; 3] = ["running", "done", "failed"];

/// What who begins a work is answered.
pub(super) const WORK: Content = Content::json::<WorkStatus>("It is done, or `running` still.");

/// What work on datasets is done with.
pub struct Workshop {
    reader: Arc<dyn ReadRecords>,
    scratch: PathBuf,
    free: FreeBytes,
}

/// Tells how much room the disk of a folder has; none where that is not known.
type FreeBytes = fn(&Path) -> Option<u64>;

impl Workshop {
    /// Knows the formats of objects by `reader`, and has files in the folder `scratch`, of which a process before this one leaves nothing; `free`
    /// tells how much room its disk has, if that is known.
    pub fn open(reader: Arc<dyn ReadRecords>, scratch: PathBuf, free: fn(&Path) -> Option<u64>) -> Result<Self> {
        match std::fs::remove_dir_all(&scratch) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).context(|| scratch.display()),
            _ => Ok(Self { reader, scratch, free }),
        }
    }
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// What has changed of the objects is taken over.
    Refresh,
    /// The dataset comes to have other shards.
    Reshard(ReshardTo),
}

impl Task {
    /// Whether both are of one kind, of which a dataset has one at a time.
    fn is_like(self, other: Self) -> bool {
        matches!(self, Self::Refresh) == matches!(other, Self::Refresh)
    }
}

/// How a work stands.
#[derive(Clone)]
enum Told {
    /// It is under way: what is being done.
    Running(String),
    Refreshed(Refreshed),
    Resharded(Resharded),
    Failed(Error),
}

/// A work that is under way, or over.
struct Work {
    dataset: ForebayPath,
    task: Task,
    told: watch::Receiver<Told>,
    /// Ends with the process's HTTP.
    _doing: AbortOnDropHandle<()>,
}

impl Work {
    fn is_running(&self) -> bool {
        matches!(*self.told.borrow(), Told::Running(_)) && self.told.has_changed().is_ok()
    }

    async fn ended(&self) {
        // Who tells no more has ended by a defect.
        let mut told = self.told.clone();
        let _ = told.wait_for(|told| !matches!(told, Told::Running(_))).await;
    }

    fn told(&self) -> Told {
        let is_told = self.told.has_changed().is_ok();
        match &*self.told.borrow() {
            Told::Running(_) if !is_told => {
                Told::Failed(Error::internal(format!("{}: it ended by a defect: the log of the process has more", self.dataset)))
            }
            told => told.clone(),
        }
    }
}

/// How a work on a dataset stands.
#[derive(JsonSchema, Serialize)]
pub(in crate::shards) struct WorkStatus {
    /// The folder that the dataset lies in.
    dataset: String,
    /// What has become of it.
    #[schemars(extend("enum" = STATES))]
    state: &'static str,
    /// What is being done.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<String>,
    /// What a refresh did that is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    refreshed: Option<Refreshed>,
    /// What the dataset has that was given other shards.
    #[serde(skip_serializing_if = "Option::is_none")]
    resharded: Option<Resharded>,
    /// Why it has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    wrong: Option<Wrong>,
}

impl WorkStatus {
    fn of(dataset: &ForebayPath, told: Told) -> Self {
        let dataset = dataset.to_string();
        let status = |state| Self { dataset, state, step: None, refreshed: None, resharded: None, wrong: None };
        match told {
            Told::Running(step) => Self { step: Some(step), ..status(STATES[0]) },
            Told::Refreshed(refreshed) => Self { refreshed: Some(refreshed), ..status(STATES[1]) },
            Told::Resharded(resharded) => Self { resharded: Some(resharded), ..status(STATES[1]) },
            Told::Failed(error) => Self { wrong: Some(Wrong::from(&error)), ..status(STATES[2]) },
        }
    }
}

/// The works of this process; the oldest first.
pub(in crate::shards) struct Works {
    workshop: Arc<OnceLock<Workshop>>,
    known: Mutex<Vec<Arc<Work>>>,
}

impl Works {
    pub(in crate::shards) fn new(workshop: Arc<OnceLock<Workshop>>) -> Self {
        Self { workshop, known: Mutex::default() }
    }

    /// Begins a work, or gives the same one where it is under way already. `Conflict` where the dataset is given another number of shards, `Retry`
    /// where too much is done at once.
    fn begin(&self, client: Client, dataset: &ForebayPath, task: Task) -> Result<Arc<Work>> {
        let none = || {
            Error::not_found(
                "this process makes nothing of datasets: `forebay shard refresh` and `reshard` do it on their machine",
            )
        };
        let workshop = self.workshop.get().ok_or_else(none)?;
        let mut known = self.known.lock();
        let is_of = |work: &Work| work.dataset == *dataset && work.task.is_like(task);
        if let Some(work) = known.iter().find(|work| is_of(work) && work.is_running()) {
            return match work.task == task {
                true => Ok(Arc::clone(work)),
                false => Err(Error::conflict(format!("{dataset}: it is being given other shards: wait for that"))),
            };
        }
        if known.iter().filter(|work| work.is_running()).count() >= AT_ONCE {
            return Err(Error::retry(format!("{dataset}: {AT_ONCE} datasets are being made anew already: ask again later")));
        }
        known.retain(|work| !is_of(work));
        if known.len() >= KNOWN_MAX
            && let Some(over) = known.iter().position(|work| !work.is_running())
        {
            known.remove(over);
        }
        debug_assert!(known.len() < KNOWN_MAX, "few are under way, so there was one to forget");
        let scratch = Scratch::below(&workshop.scratch)?;
        let (tell, told) = watch::channel(Told::Running("beginning".to_string()));
        let (reader, free) = (Arc::clone(&workshop.reader), workshop.free);
        let doing = forebay_runtime::spawn(run(client, dataset.clone(), task, reader, (scratch, free), tell));
        let work = Work { dataset: dataset.clone(), task, told, _doing: AbortOnDropHandle::new(doing) };
        let work = Arc::new(work);
        known.push(Arc::clone(&work));
        debug_assert_eq!(known.iter().filter(|work| is_of(work)).count(), 1, "a dataset has one work of a kind");
        Ok(work)
    }

    /// How a dataset's last work of a kind stands; none where this process knows of none.
    pub(super) fn status(&self, dataset: &ForebayPath, task: Task) -> Option<WorkStatus> {
        let known = self.known.lock();
        let work = known.iter().find(|work| work.dataset == *dataset && work.task.is_like(task))?;
        Some(WorkStatus::of(dataset, work.told()))
    }
}

/// Has something done for who may change the dataset: how it stands when it is over, or when there is no more time to wait for that.
pub(super) async fn work(changing: &Changing, task: Task) -> Result<WorkStatus, Refusal> {
    let visit = changing.visit();
    let client = visit.client().await?;
    let work = visit.datasets.works.begin(client, visit.dataset(), task)?;
    // It goes on beyond that.
    let _ = forebay_runtime::time::timeout_at(visit.deadline, work.ended()).await;
    match work.told() {
        Told::Failed(error) => Err(error.into()),
        told => Ok(WorkStatus::of(visit.dataset(), told)),
    }
}

async fn run(
    client: Client,
    dataset: ForebayPath,
    task: Task,
    reader: Arc<dyn ReadRecords>,
    (scratch, free): (Scratch, FreeBytes),
    tell: watch::Sender<Told>,
) {
    let done = match task {
        Task::Refresh => {
            tell.send_modify(|told| *told = Told::Running("reading what has changed".to_string()));
            forebay_shards::refresh(&client, &dataset, reader, scratch.path()).await.map(Told::Refreshed)
        }
        Task::Reshard(to) => reshard(&client, &dataset, to, (scratch.path(), free), &tell).await.map(Told::Resharded),
    };
    if let Err(error) = &done {
        tracing::info!(%dataset, %error, "what was asked for over HTTP was not done");
    }
    tell.send_modify(|told| *told = done.unwrap_or_else(Told::Failed));
}

async fn reshard(
    client: &Client,
    dataset: &ForebayPath,
    to: ReshardTo,
    (scratch, free): (&Path, FreeBytes),
    tell: &watch::Sender<Told>,
) -> Result<Resharded> {
    let now = Shards::open(client, dataset).await?;
    let before = now.dataset().shards.len();
    check_room(dataset, to.scratch_bytes(&now)?, free(scratch))?;
    let progress = |step: ReshardStep| tell.send_modify(|told| *told = Told::Running(step.to_string()));
    let shards = forebay_shards::reshard(client, dataset, to, scratch, progress).await?;
    Ok(Resharded::of(&shards, before))
}

/// `Invalid` where it would take more than half of the room that the disk has here: others' files are on it, too.
fn check_room(dataset: &ForebayPath, wanted: u64, free: Option<u64>) -> Result<()> {
    match free {
        Some(free) if wanted > free / 2 => Err(Error::invalid(format!(
            "{dataset}: it takes {} of disk here, and {} are free: `forebay shard reshard` does it on another machine",
            format_bytes(wanted),
            format_bytes(free)
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::ErrorKind;

    use super::*;

    #[test]
    fn a_work_takes_no_more_than_half_of_the_disk_that_is_free() {
        let dataset: ForebayPath = "/lake/orders.shards".parse().unwrap();
        let check = |free| check_room(&dataset, 100, free).map_err(|error| error.kind());
        assert_eq!((check(None), check(Some(200))), (Ok(()), Ok(())));
        assert_eq!(check(Some(199)), Err(ErrorKind::Invalid));
    }
}
