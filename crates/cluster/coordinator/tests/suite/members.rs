//! Workers over real connections: they register, beat, leave and fall silent, and even nonsense is answered.

use std::time::Duration;

use forebay_protocol::{ControlReply, ControlRequest, MemberRequest, WorkerInfo, WorkerState};
use forebay_types::{ErrorKind, WorkerId};

use crate::cluster::{Cluster, info};

#[tokio::test]
async fn a_worker_registers_beats_and_leaves() {
    let cluster = Cluster::start().await;
    let empty = cluster.view().await;
    assert_eq!(empty.workers, []);
    let view = cluster.register(1).await;
    let turn = view.workers[0].turn;
    assert_eq!(view.workers, [WorkerInfo { turn, ..info(1) }]);
    assert!(view.version > empty.version);
    let (unchanged, shares) = cluster.beat(1, view.version, &[]).await;
    assert_eq!((unchanged, shares), (None, vec![]));

    let have = ControlRequest::View { have: view.version };
    assert_eq!(cluster.ask(have).await.unwrap(), ControlReply::Unchanged);
    let unknown = MemberRequest::Leave(WorkerId(9));
    assert_eq!(cluster.ask(unknown).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(cluster.ask(MemberRequest::Leave(WorkerId(1))).await.unwrap(), ControlReply::Done);
    assert_eq!(cluster.view().await.workers, []);
}

#[tokio::test]
async fn a_silent_worker_is_lost_after_its_lease() {
    let cluster = Cluster::start().await;
    cluster.register(1).await;
    cluster.register(2).await;
    let both = cluster.view().await;
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_millis(600)).await;
        cluster.beat(1, 0, &[]).await;
    }
    let one = cluster.view().await;
    let first = one.workers[0].turn;
    assert_eq!(one.workers, [WorkerInfo { turn: first, ..info(1) }]);
    assert!(one.version > both.version);

    let ControlReply::Status(status) = cluster.ask(ControlRequest::Status).await.unwrap() else { panic!("no status") };
    let workers: Vec<_> = status.workers.iter().map(|(info, state, report)| (info.id.0, *state, report.reads)).collect();
    assert_eq!(workers, [(1, WorkerState::Live, 42), (2, WorkerState::Lost, 0)]);
    assert_eq!((status.epoch, status.metadata.as_str()), (both.epoch, "sqlite"));
    assert!(status.uptime >= Duration::from_secs(3));
    assert_eq!(cluster.coordinator.status().workers, status.workers);

    let back = cluster.register(2).await.workers;
    let turn = back[1].turn;
    assert!(turn > both.workers[1].turn, "what it had of temporary data is lost, so it comes as the last one");
    assert_eq!(back, [WorkerInfo { turn: first, ..info(1) }, WorkerInfo { turn, ..info(2) }]);
}

#[tokio::test]
async fn what_is_no_request_is_answered_with_an_error() {
    let cluster = Cluster::start().await;
    let answer = cluster.connection.call(vec![0xff; 40].into(), vec![]).await.unwrap();
    let ControlReply::Failed { kind, .. } = forebay_protocol::decode(&answer.meta).unwrap() else { panic!("it failed") };
    assert_eq!(kind, ErrorKind::Invalid);
    cluster.view().await;
}
