//! Calls beside one that looks at the names for long.

use std::time::Duration;

use bytes::Bytes;
use forebay_nodes::{NodeErrorKind, ROOT, StorageClass, Value};
use forebay_protocol::{NodeCall, NodeOp, NodeReply, Raw};
use forebay_transport::{Answer, Connection, Security};

use crate::Tuning;
use crate::process::bed::Bed;

/// Whether an answer is the one that was expected.
type Fits = fn(&NodeReply<'_>) -> bool;

/// What a call for the node `k` is answered; none when it waits for something.
async fn ask(connection: &Connection, op: NodeOp<'_>, payload: &'static [u8]) -> Option<Answer> {
    let call = NodeCall { from: ROOT, moves: 0, path: "k", op, number: None }.encode();
    let payload = if payload.is_empty() { Vec::new() } else { vec![Bytes::from_static(payload)] };
    let answered = forebay_runtime::time::timeout(Duration::from_secs(10), connection.call(call, payload)).await;
    answered.ok().map(|answer| answer.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::await_holding_lock, reason = "what others do meanwhile is what is looked at")]
async fn who_looks_at_the_names_holds_up_nobody_else_who_only_looks() {
    let bed = Bed::start(Duration::from_secs(60)).await;
    // No view comes meanwhile, by which the names might be changed.
    let tuning = Tuning { beat: Duration::from_secs(3600), ..Tuning::default() };
    let worker = bed.worker("one", tuning).await;
    let nodes = &worker.rooms.nodes;
    nodes.put_value(ROOT.into(), "k", Value::Inline(b"value".as_slice().into())).unwrap();
    let connection = Connection::connect(&worker.address(), &Security::default()).await.unwrap();
    let names = nodes.names.read();
    let looks: [(NodeOp<'_>, &[u8], Fits); 5] = [
        (NodeOp::Get, b"", |reply| matches!(reply, NodeReply::Bytes(Raw(b"value")))),
        (NodeOp::Stat, b"", |reply| matches!(reply, NodeReply::Stat(Some(stat)) if stat.bytes == 5)),
        (NodeOp::Extents { offset: 1, bytes: 4 }, b"", |reply| matches!(reply, NodeReply::Extents { tail: Raw(b"alue"), .. })),
        (
            NodeOp::Read { offset: 0, bytes: 5 },
            b"",
            |reply| matches!(reply, NodeReply::Failed(error) if error.kind == NodeErrorKind::WrongType),
        ),
        (NodeOp::BlockWrite { class: StorageClass::Dram }, b"block", |reply| matches!(reply, NodeReply::Block(_))),
    ];
    for (op, payload, fits) in looks {
        let what = format!("{op:?}");
        let answer = ask(&connection, op, payload).await.unwrap_or_else(|| panic!("{what} waits for who looks at the names"));
        let reply = NodeReply::decode(&answer.meta).unwrap();
        assert!(fits(&reply), "{what}: {reply:?}");
    }
    assert!(nodes.names.try_write().is_none(), "nobody changes them meanwhile");
    drop(names);
    let put = ask(&connection, NodeOp::Put { value: Raw(b"changed") }, b"").await.unwrap();
    assert_eq!(NodeReply::decode(&put.meta).unwrap(), NodeReply::Length(7));
}
