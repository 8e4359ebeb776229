//! The scheduler that a cluster's coordinator knows, as `/api/v1` shows its jobs.

use forebay_api::Scheduler;
use forebay_client::{Client, ClientSettings};
use forebay_distributed::{Cluster, SchedulerControl};
use forebay_protocol::{JobState, TaskState, TransferState};
use forebay_types::Result;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{Mutex, OnceCell};

/// Asks it with what this process shows; who may see the answer has been looked at before.
pub(crate) struct KnownScheduler {
    settings: ClientSettings,
    /// Made with the first question.
    client: OnceCell<Client>,
    /// The one that was asked last, by its address.
    control: Mutex<Option<(String, SchedulerControl)>>,
}

impl KnownScheduler {
    pub(crate) fn new(settings: ClientSettings) -> Self {
        Self { settings, client: OnceCell::new(), control: Mutex::new(None) }
    }

    /// None where the coordinator knows of none.
    async fn control(&self) -> Result<Option<SchedulerControl>> {
        let client = self.client.get_or_try_init(|| Client::connect(self.settings.clone())).await?;
        let Some(address) = client.scheduler().await? else { return Ok(None) };
        let mut control = self.control.lock().await;
        match &*control {
            Some((of, known)) if *of == address => Ok(Some(known.clone())),
            _ => {
                let made = Cluster::control(&address, &self.settings.security)?;
                *control = Some((address, made.clone()));
                Ok(Some(made))
            }
        }
    }

    /// None where there is none to ask.
    async fn asked<T, F>(&self, ask: impl FnOnce(SchedulerControl) -> F) -> Result<Option<T>>
    where
        F: Future<Output = Result<T>>,
    {
        let Some(control) = self.control().await? else { return Ok(None) };
        ask(control).await.map(Some)
    }
}

impl Scheduler for KnownScheduler {
    fn jobs(&self) -> BoxFuture<'_, Result<Option<Vec<JobState>>>> {
        self.asked(|control| async move { control.jobs().await }).boxed()
    }

    fn tasks(&self) -> BoxFuture<'_, Result<Option<Vec<TaskState>>>> {
        self.asked(|control| async move { control.tasks().await }).boxed()
    }

    fn transfers(&self) -> BoxFuture<'_, Result<Option<Vec<TransferState>>>> {
        self.asked(|control| async move { control.transfers().await }).boxed()
    }
}
