use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_protocol::{ControlReply, ControlRequest, decode, encode};
use forebay_shared_storage::{Storage, StorageSettings};
use forebay_transport::{Peer, Response, Service, Session};
use forebay_types::{Error, Mount, Result};
use metrics::counter;
use tokio::sync::oneshot;

use super::shared::Shared;
use super::writer::Job;
use crate::decide::{Change, Command, Event};

/// How long shared storage may take to answer when a mount is added: whoever adds it waits.
const CHECK_DEADLINE: Duration = Duration::from_secs(20);
const CHECK_REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const CHECK_RETRIES_MAX: u32 = 2;

/// Answers control requests on every connection.
pub(crate) struct ControlService(pub(crate) Arc<Shared>);

/// One connection.
pub(crate) struct ControlSession(Arc<Shared>);

impl Service for ControlService {
    type Session = ControlSession;

    fn open(&self, _peer: Peer) -> Result<ControlSession> {
        Ok(ControlSession(Arc::clone(&self.0)))
    }
}

impl Session for ControlSession {
    async fn call(self: &Arc<Self>, meta: Bytes, _payload: Bytes) -> Response {
        let reply = match decode::<ControlRequest>(&meta) {
            Ok(ControlRequest::News(worker)) => {
                self.0.news().wait(worker).await.unwrap_or_else(|error| ControlReply::failed(&error))
            }
            Ok(request) => {
                let kind = kind(&request);
                let reply = self.answer(request).await.unwrap_or_else(|error| ControlReply::failed(&error));
                counter!("forebay_coordinator_requests", "kind" => kind).increment(1);
                if matches!(reply, ControlReply::Failed { .. }) {
                    counter!("forebay_coordinator_failures", "kind" => kind).increment(1);
                }
                reply
            }
            Err(error) => ControlReply::failed(&error),
        };
        Response::new(encode(&reply))
    }

    fn notice(self: &Arc<Self>, _meta: Bytes) {}
}

impl ControlSession {
    async fn answer(&self, request: ControlRequest) -> Result<ControlReply> {
        let mut answer = None;
        for command in self.0.decide(Event::Asked(request)) {
            match command {
                Command::Answer(reply) => answer = Some(reply),
                Command::Check(mount, change) => {
                    check(&mount).await?;
                    answer = Some(self.write(change).await?);
                }
                Command::Write(change) => answer = Some(self.write(change).await?),
                Command::Remember(_)
                | Command::ReportLost(..)
                | Command::Plan(_)
                | Command::Checkpoint(_)
                | Command::TellAll
                | Command::Tell(_) => {}
            }
        }
        answer.ok_or_else(|| Error::internal("a control request was not answered"))
    }

    async fn write(&self, change: Change) -> Result<ControlReply> {
        let (reply, written) = oneshot::channel();
        let closed = || Error::closed("the coordinator is shutting down: try again with its successor");
        self.0.writer().send(Job::Change(change, reply)).await.map_err(|_| closed())?;
        written.await.map_err(|_| closed())
    }
}

/// Asks shared storage whether the mount can be used from here.
async fn check(mount: &Mount) -> Result<()> {
    let settings = StorageSettings {
        request_timeout: CHECK_REQUEST_TIMEOUT,
        deadline: CHECK_DEADLINE,
        max_retries: CHECK_RETRIES_MAX,
        ..StorageSettings::default()
    };
    let checking = async { Storage::open(mount, settings)?.check().await };
    match tokio::time::timeout(CHECK_DEADLINE + CHECK_REQUEST_TIMEOUT, checking).await {
        Ok(checked) => checked,
        Err(_) => Err(Error::retry(format!(
            "mount {}: {} did not answer within {} s: check the endpoint and the network",
            mount.name,
            mount.url,
            (CHECK_DEADLINE + CHECK_REQUEST_TIMEOUT).as_secs()
        ))),
    }
}

/// A request's name in metrics.
fn kind(request: &ControlRequest) -> &'static str {
    match request {
        ControlRequest::Register(_) => "register",
        ControlRequest::Heartbeat(_) => "heartbeat",
        ControlRequest::Leave(_) => "leave",
        ControlRequest::View { .. } => "view",
        ControlRequest::MountAdd { .. } => "mount_add",
        ControlRequest::MountSet { .. } => "mount_set",
        ControlRequest::MountRemove { .. } => "mount_remove",
        ControlRequest::PinAdd { .. } => "pin_add",
        ControlRequest::PinRemove { .. } => "pin_remove",
        ControlRequest::TableAdd { .. } => "table_add",
        ControlRequest::TableRemove { .. } => "table_remove",
        ControlRequest::Tables => "tables",
        ControlRequest::Budget { .. } => "budget",
        ControlRequest::Status => "status",
        ControlRequest::Routes { .. } => "routes",
        ControlRequest::Placement { .. } => "placement",
        ControlRequest::News(_) => "news",
        ControlRequest::Scheduler { .. } => "scheduler",
        ControlRequest::Drain { .. } => "drain",
        ControlRequest::PassRoot { .. } => "pass_root",
        ControlRequest::Unheard { .. } => "unheard",
    }
}
