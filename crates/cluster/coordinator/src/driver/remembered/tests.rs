//! Views are held back until their members are written, and not for ever.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use forebay_metadata::{Memory, Metadata};
use forebay_protocol::{ControlCall, ControlReply, MemberRequest, WorkerInfo, decode, encode};
use forebay_transport::{Address, Answer, Connection, Listener, Security, Server, ServerLimits};
use forebay_types::HostId;
use tokio::sync::mpsc;

use super::*;
use crate::PlacementSettings;
use crate::decide::{Catalogue, Start, State};
use crate::driver::queues::{self, Job};
use crate::driver::service::ControlService;
use crate::driver::shared::Shared;
use crate::driver::writer::{load_members, write};

/// A coordinator that writes nothing, what it would write, and a connection to it.
async fn without_writer() -> (Server, Arc<Shared>, mpsc::Receiver<Job>, Connection) {
    let ((queue, jobs), (plans, _)) = (queues::for_writer(), queues::for_planner());
    let start = Start {
        epoch: 1,
        lease: Duration::from_secs(5),
        metadata: "memory",
        catalogue: Catalogue::default(),
        presumed: Vec::new(),
        placement: PlacementSettings::default(),
        seed: 7,
        checkpoint: None,
    };
    let (security, remembered) = (Security::default(), Remembered::new(Vec::new()));
    let shared = Arc::new(Shared::new(State::new(start).0, queue, plans, Arc::clone(&security.admits), remembered));
    let service = Arc::new(ControlService { shared: Arc::clone(&shared), database: None });
    let listener = Listener::bind(&Address::Tcp("127.0.0.1:0".into())).await.unwrap();
    let server = Server::start(listener, security, service, ServerLimits::default()).unwrap();
    let connection = Connection::connect(&server.local_address(), &Security::default()).await.unwrap();
    (server, shared, jobs, connection)
}

fn register(worker: u64) -> Bytes {
    let info = WorkerInfo::new(WorkerId(worker), HostId("host".into()), format!("10.0.0.{worker}:7000"));
    encode(&ControlCall::from(MemberRequest::Register(info)))
}

fn workers_of(answer: &Answer) -> Vec<u64> {
    match decode(&answer.meta).unwrap() {
        ControlReply::View(view) => view.workers.iter().map(|worker| worker.id.0).collect(),
        other => panic!("{other:?} is no view"),
    }
}

#[tokio::test]
async fn a_view_is_told_once_the_next_coordinator_would_know_its_workers() {
    let (_server, shared, jobs, connection) = without_writer().await;
    let mut asked = pin!(connection.call(register(1), Vec::new()));
    let early = timeout(Duration::from_millis(200), asked.as_mut()).await;
    assert!(early.is_err(), "{early:?} is told of a worker that a coordinator takes for lost which starts now");
    let memory = Memory::new();
    let metadata = Metadata::open(memory.url()).await.unwrap();
    let answer = tokio::select! {
        answer = asked => answer.unwrap(),
        error = write(metadata.clone(), shared, jobs) => panic!("{error}"),
    };
    assert_eq!(workers_of(&answer), [1]);
    assert_eq!(load_members(&metadata).await.unwrap(), [(WorkerId(1), "10.0.0.1:7000".to_owned())]);
}

#[tokio::test]
async fn a_database_that_is_away_keeps_no_worker_out() {
    let (_server, shared, _jobs, connection) = without_writer().await;
    let answer = timeout(WRITTEN_WITHIN * 10, connection.call(register(1), Vec::new())).await.unwrap().unwrap();
    assert_eq!(workers_of(&answer), [1]);
    assert_eq!(shared.remembered.unwritten().unwrap().1, [(WorkerId(1), "10.0.0.1:7000".to_owned())]);
    // Who comes back as he was has nothing written, and who comes after a while waits for nobody.
    let since = instant();
    connection.call(register(1), Vec::new()).await.unwrap();
    assert!(since.elapsed() < WRITTEN_WITHIN, "{:?}", since.elapsed());
}

#[test]
fn what_is_written_already_is_not_written_again() {
    let [one, two] = [1, 2].map(|worker| (WorkerId(worker), format!("10.0.0.{worker}:7000")));
    let remembered = Remembered::new(vec![two.clone(), one.clone()]);
    remembered.want(vec![one.clone(), two]);
    assert_eq!(remembered.unwritten(), None);
    remembered.want(vec![one.clone()]);
    assert_eq!(remembered.unwritten(), Some((1, vec![one])));
    remembered.want(Vec::new());
    remembered.set_written(1);
    assert_eq!(remembered.unwritten(), Some((2, Vec::new())), "what came meanwhile");
    remembered.set_written(2);
    assert!(!remembered.is_unwritten());
}
