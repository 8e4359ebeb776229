//! Calls whose answers are lost, as a worker sees them: another connection asks what became of them.

use std::sync::Arc;

use bytes::Bytes;
use forebay_coordinator::CoordinatorSettings;
use forebay_nodes::{CallNumber, Got, NodeErrorKind, NodeType, ROOT, Slots};
use forebay_protocol::{NodeCall, NodeOp, NodeReply, Raw};
use forebay_transport::{Connection, Security};

use crate::nodes::Nodes;
use crate::process::bed::Bed;
use crate::{Tuning, Worker};

/// What a call was answered: a length, or that it was not done.
type Said = Result<Option<u64>, NodeErrorKind>;

async fn ask(connection: &Connection, number: Option<CallNumber>, path: &str, op: NodeOp<'_>) -> Said {
    let call = NodeCall { from: ROOT, moves: 0, path, op, number }.encode();
    let answer = connection.call(call, Vec::<Bytes>::new()).await.unwrap();
    match NodeReply::decode(&answer.meta).unwrap() {
        NodeReply::Failed(error) => Err(error.kind),
        NodeReply::Length(length) => Ok(Some(length)),
        NodeReply::Done => Ok(Some(0)),
        NodeReply::Refused(refused) => Ok(Some(refused.len() as u64)),
        NodeReply::Outcome(false) => Ok(None),
        other => panic!("{other:?} is no answer to these"),
    }
}

async fn put(connection: &Connection, number: Option<CallNumber>, value: &str) -> Said {
    ask(connection, number, "k", NodeOp::Put { value: Raw(value.as_bytes()) }).await
}

async fn was_done(connection: &Connection, number: CallNumber) -> Said {
    ask(connection, None, "", NodeOp::WasDone { number, within_ms: 60_000 }).await
}

fn value(nodes: &Nodes) -> String {
    let names = nodes.names.read();
    let Got::Inline(bytes) = names.get(ROOT, "k").unwrap() else { panic!("it is short") };
    String::from_utf8(bytes.to_vec()).unwrap()
}

async fn start() -> (Worker, Bed) {
    let bed = Bed::start(CoordinatorSettings::LEASE).await;
    (bed.worker("one", Tuning::default()).await, bed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_put_whose_answer_was_lost_is_not_done_again_over_that_of_another_client() {
    let (worker, _bed) = start().await;
    let nodes = Arc::clone(&worker.rooms.nodes);
    let connect = async || Connection::connect(&worker.address(), &Security::default()).await.unwrap();
    let (one, again, other) = (connect().await, connect().await, connect().await);
    let mut slots = Slots::new(7);
    let (done, late) = (slots.draw(), slots.draw());
    assert_eq!(put(&one, Some(done), "first").await, Ok(Some(5)));
    assert_eq!(put(&other, None, "by another").await, Ok(Some(10)));
    assert_eq!(was_done(&again, done).await, Ok(Some(5)), "its own answer");
    assert_eq!(put(&one, Some(done), "first").await, Err(NodeErrorKind::Retry));
    assert_eq!(was_done(&again, late).await, Ok(None));
    assert_eq!(put(&one, Some(late), "late").await, Err(NodeErrorKind::Retry), "its client has been told that it is not done");
    assert_eq!(was_done(&again, late).await, Ok(None));
    assert_eq!(value(&nodes), "by another");
    slots.give_back(late);
    assert_eq!(put(&again, Some(slots.draw()), "anew").await, Ok(Some(4)));
    assert_eq!(value(&nodes), "anew");
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_kind_of_call_that_has_a_number_is_remembered_when_it_is_done_and_only_then() {
    let (worker, _bed) = start().await;
    let connection = Connection::connect(&worker.address(), &Security::default()).await.unwrap();
    let mut slots = Slots::new(7);
    let large = vec![7; 100_000];
    let values = |name| NodeOp::PutMany { values: vec![("m", Raw(b"v")), (name, Raw(b"v"))] };
    let folder = NodeOp::Create { kind: NodeType::Directory, enumerable: true, class: None, location: None };
    ask(&connection, None, "d", folder).await.unwrap();
    for (path, op, answer) in [
        ("k", NodeOp::Put { value: Raw(b"value") }, Ok(Some(5))),
        ("l", NodeOp::Put { value: Raw(&large) }, Ok(Some(100_000))),
        ("", values("n"), Ok(Some(0))),
        ("k", NodeOp::Lease { ttl_ms: Some(60_000) }, Ok(Some(0))),
        ("d", NodeOp::SetQuota { bytes: Some(1 << 20) }, Ok(Some(0))),
        ("d", NodeOp::Put { value: Raw(b"value") }, Err(NodeErrorKind::WrongType)),
        ("k", NodeOp::SetQuota { bytes: None }, Err(NodeErrorKind::NotContainer)),
    ] {
        let number = slots.draw();
        assert_eq!(ask(&connection, Some(number), path, op.clone()).await, answer, "{op:?}");
        assert_eq!(was_done(&connection, number).await, answer.or(Ok(None)), "{op:?}: what fails is not done");
    }
    // Of many values of which some were refused nobody remembers which.
    let number = slots.draw();
    assert_eq!(ask(&connection, Some(number), "", values("d")).await, Ok(Some(1)));
    assert_eq!(was_done(&connection, number).await, Err(NodeErrorKind::Retry));
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_lost_with_the_names_of_a_worker_was_not_done() {
    let (worker, _bed) = start().await;
    let nodes = Arc::clone(&worker.rooms.nodes);
    let connection = Connection::connect(&worker.address(), &Security::default()).await.unwrap();
    let number = Slots::new(7).draw();
    assert_eq!(put(&connection, Some(number), "value").await, Ok(Some(5)));
    nodes.begin_anew();
    assert_eq!(nodes.was_done(number, 60_000).unwrap(), NodeReply::Outcome(false));
}
