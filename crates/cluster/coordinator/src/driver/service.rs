//! Control requests as they come over connections: may the sender, what does the state or the writer say, what may be shown.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_metrics::table;
use forebay_protocol::{
    AdminRequest, ControlCall, ControlReply, ControlRequest, MemberRequest, TraceContext, YOUNG_SINCE, decode_from, encode_for,
};
use forebay_rights::{cut, needs};
use forebay_shared_storage::{Storage, StorageSettings};
use forebay_trace::{Kind, Span, within};
use forebay_transport::{Deed, Peer, Response, Service, Session};
use forebay_types::{Error, Mount, Result};
use tokio::sync::oneshot;

use super::queues::Job;
use super::shared::Shared;
use crate::decide::{Change, Command, Event};

/// How long shared storage may take to answer when a mount is added: whoever adds it waits.
const CHECK_DEADLINE: Duration = Duration::from_secs(20);
const CHECK_REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const CHECK_RETRIES_MAX: u32 = 2;

/// Answers control requests on every connection.
pub(crate) struct ControlService {
    pub(crate) shared: Arc<Shared>,
    /// The file of the metadata, where they are in one: it lies in the data folder.
    pub(crate) database: Option<Arc<Path>>,
}

pub(crate) struct ControlSession {
    shared: Arc<Shared>,
    database: Option<Arc<Path>>,
    peer: Peer,
}

impl Service for ControlService {
    type Session = ControlSession;

    fn open(&self, peer: Peer) -> Result<ControlSession> {
        Ok(ControlSession { shared: Arc::clone(&self.shared), database: self.database.clone(), peer })
    }
}

impl Session for ControlSession {
    async fn call(self: &Arc<Self>, meta: Bytes, _payload: Bytes) -> Response {
        let (asked, meta) = TraceContext::split(meta);
        let mut span = Span::below(asked, "decide", Kind::Server);
        let reply = match decode_from::<ControlCall>(self.peer.version, &meta) {
            Ok(mut call) => {
                self.keep_unsaid(&mut call);
                let kind = call.name();
                span.set("rpc.method", || kind);
                let answered = within(span.context(), self.answer(call)).await.inspect_err(|error| span.fail(error));
                let reply = answered.unwrap_or_else(|error| ControlReply::failed(&error));
                table::COORDINATOR_REQUESTS.with([kind]).add(1);
                if matches!(reply, ControlReply::Failed { .. }) {
                    table::COORDINATOR_FAILURES.with([kind]).add(1);
                }
                reply
            }
            Err(error) => ControlReply::failed(&error),
        };
        Response::new(encode_for(self.peer.version, &reply))
    }

    fn failed(&self, _meta: &Bytes) -> Response {
        let error = Error::internal("the request failed by a defect of the coordinator, whose log has more");
        Response::new(encode_for(self.peer.version, &ControlReply::failed(&error)))
    }

    fn given_up(&self, _meta: &Bytes) -> Response {
        let error =
            Error::retry("it was not done while its caller waited, and is given up: look whether it has changed something");
        Response::new(encode_for(self.peer.version, &ControlReply::failed(&error)))
    }

    fn notice(self: &Arc<Self>, _meta: Bytes) {}
}

impl ControlSession {
    /// What a client of the version before can't say of a mount stays as it is.
    fn keep_unsaid(&self, call: &mut ControlCall) {
        if self.peer.version < YOUNG_SINCE
            && let ControlCall::Administer(AdminRequest::MountSet { name, options }) = call
        {
            options.young = self.shared.mount_young(name);
        }
    }

    /// The answer to a call of who may make it, cut to what that one may see.
    async fn answer(&self, call: ControlCall) -> Result<ControlReply> {
        let deed = || Deed { port: "control", what: call.name(), on: subject(&call) };
        self.peer.may(&needs::control(&call), |mount| self.shared.mount_name(mount), deed)?;
        let mut reply = match call {
            ControlCall::Serve(MemberRequest::News(worker)) => self.shared.news.wait(worker).await?,
            ControlCall::Serve(MemberRequest::Credentials) => self.shared.credentials(),
            ControlCall::Ask(ControlRequest::WhoAmI) => ControlReply::Caller(self.peer.caller.who().info()),
            call => self.carry_out(call).await?,
        };
        // A change of members is told when the next coordinator would know of it.
        if matches!(reply, ControlReply::View(_) | ControlReply::Beat { view: Some(_), .. }) {
            self.shared.remembered.wait().await;
        }
        if let Some(grant) = self.peer.caller.who().grant() {
            cut(&mut reply, grant);
        }
        Ok(reply)
    }

    async fn carry_out(&self, call: ControlCall) -> Result<ControlReply> {
        let mut answer = None;
        for command in self.shared.decide_for(Event::Asked(call), &Sender(&self.peer)) {
            match command {
                Command::Answer(reply) => answer = Some(reply),
                Command::Check(mount, change) => {
                    check(&mount, self.database.clone()).await?;
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
        self.shared.writer.send(Job::Change(Box::new(change), reply)).await.map_err(|_| closed())?;
        written.await.map_err(|_| closed())
    }
}

/// Who is at the other end, as the log names it.
struct Sender<'a>(&'a Peer);

impl fmt::Display for Sender<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.0.caller.who(), self.0.address)
    }
}

/// Asks shared storage whether the mount can be used from here. A folder that the coordinator's own data lie in is none: whoever
/// may read the mount would read the owner's secret.
async fn check(mount: &Mount, database: Option<Arc<Path>>) -> Result<()> {
    let settings = StorageSettings {
        request_timeout: CHECK_REQUEST_TIMEOUT,
        deadline: CHECK_DEADLINE,
        max_retries: CHECK_RETRIES_MAX,
        ..StorageSettings::default()
    };
    let checking = async {
        let storage = Storage::open(mount, settings)?;
        storage.check().await?;
        let Some(database) = database else { return Ok(()) };
        // A file server may hang.
        match forebay_runtime::spawn_blocking(move || storage.holds(&database)).await {
            Ok(false) => Ok(()),
            Ok(true) => Err(Error::invalid(format!(
                "mount {}: the data folder of the coordinator lies in {}, and its secrets would be read by whoever may read the mount: \
                 mount another folder, or start with another --data-dir",
                mount.name, mount.url
            ))),
            Err(error) => Err(Error::internal(format!("mount {}: looking where its folder is ended early: {error}", mount.name))),
        }
    };
    match forebay_runtime::time::timeout(CHECK_DEADLINE + CHECK_REQUEST_TIMEOUT, checking).await {
        Ok(checked) => checked,
        Err(_) => Err(Error::retry(format!(
            "mount {}: {} did not answer within {} s: check the endpoint and the network",
            mount.name,
            mount.url,
            (CHECK_DEADLINE + CHECK_REQUEST_TIMEOUT).as_secs()
        ))),
    }
}

/// What a request is about, for the audit log.
fn subject(call: &ControlCall) -> String {
    match call {
        ControlCall::Ask(ControlRequest::TableAdd { table, .. }) => table.name.clone(),
        ControlCall::Ask(ControlRequest::TableRemove { name }) => name.clone(),
        ControlCall::Ask(ControlRequest::Unheard { mount, worker, .. }) => format!("worker {worker}, mount number {}", mount.0),
        ControlCall::Administer(request) => match request {
            AdminRequest::MountAdd { name, .. } | AdminRequest::MountSet { name, .. } | AdminRequest::MountRemove { name } => {
                name.to_string()
            }
            AdminRequest::PinAdd { path } | AdminRequest::PinRemove { path } => path.to_string(),
            AdminRequest::Drain { worker, .. } => format!("worker {worker}"),
            AdminRequest::TokenAdd { name, .. } | AdminRequest::TokenRemove { name } => name.clone(),
            AdminRequest::Tokens => String::new(),
        },
        ControlCall::Ask(_) | ControlCall::Serve(_) => String::new(),
    }
}
