//! Containers that move between two workers of which one is killed after each step. A killed worker says no word to anybody.

use std::sync::Arc;
use std::time::Duration;

use forebay_nodes::{CreateOptions, DirId, Got, NodeErrorKind, NodeType, ROOT, Value};
use forebay_testbed::until;
use forebay_transport::Security;

use crate::nodes::Nodes;
use crate::nodes::handover::Line;
use crate::process::bed::Bed;
use crate::{Tuning, Worker};

/// Three workers: the first has `/tmp`, the source a directory in it with `k`, and the target nothing.
struct Three {
    first: Worker,
    source: Option<Worker>,
    target: Option<Worker>,
    dir: DirId,
    name: String,
    bed: Bed,
}

impl Three {
    async fn start() -> Self {
        let bed = Bed::start(Duration::from_secs(2)).await;
        let tuning = || Tuning { beat: Duration::from_millis(50), ..Tuning::default() };
        let first = bed.worker("first", tuning()).await;
        let (source, target) = (bed.worker("source", tuning()).await, bed.worker("target", tuning()).await);
        let all = [&first, &source, &target];
        until("they know each other", || all.iter().all(|worker| worker.rooms.cluster.view().workers.len() == 3)).await;
        for number in 0.. {
            let name = format!("d{number}");
            let nodes = &first.rooms.nodes;
            nodes.create(ROOT, &name, CreateOptions::new(NodeType::Directory)).await.unwrap();
            let dir = nodes.names.read().elsewhere(ROOT, &name).unwrap().filter(|dir| dir.worker == source.id().0);
            if let Some(dir) = dir {
                source.rooms.nodes.put_value(dir.into(), "k", Value::from(b"old".to_vec())).unwrap();
                let (source, target) = (Some(source), Some(target));
                return Self { first, source, target, dir, name, bed };
            }
        }
        unreachable!("some directory comes to the source")
    }

    fn source(&self) -> &Arc<Nodes> {
        &self.source.as_ref().unwrap().rooms.nodes
    }

    fn target(&self) -> &Arc<Nodes> {
        &self.target.as_ref().unwrap().rooms.nodes
    }

    /// Where the directory's name leads.
    fn leads_to(&self) -> DirId {
        self.first.rooms.nodes.names.read().elsewhere(ROOT, &self.name).unwrap().unwrap()
    }

    async fn prepare(&self) -> DirId {
        let prepared = self.source().prepare_handover(self.dir, self.target().worker).await;
        prepared.unwrap_or_else(|(error, _)| panic!("{error}"))
    }

    fn put_at_source(&self) -> Result<(), NodeErrorKind> {
        let put = self.source().put_value(self.dir.into(), "k", Value::from(b"new".to_vec()));
        put.map(drop).map_err(|error| error.kind)
    }
}

fn value_of(nodes: &Nodes, dir: DirId) -> Option<Vec<u8>> {
    match nodes.names.read().get(dir, "k") {
        Ok(Got::Inline(bytes)) => Some(bytes.to_vec()),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn source_killed_before_it_gives_a_container_up() {
    let mut three = Three::start().await;
    let new = three.prepare().await;
    assert_eq!(value_of(three.source(), three.dir).unwrap(), b"old", "readers still see it");
    assert_eq!(three.put_at_source(), Err(NodeErrorKind::Moving));
    drop(three.source.take());
    until("its name leads to the target", || three.leads_to() == new).await;
    assert_eq!(value_of(three.target(), new).unwrap(), b"old");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn source_killed_while_it_copies_a_container() {
    let mut three = Three::start().await;
    let carton = three.source().names.write().begin_handover(three.dir).unwrap();
    let new = three.target().names.write().begin_takeover(three.source().worker, carton).unwrap();
    drop(three.source.take());
    until("nothing is left at the target", || !three.target().names.read().has(new)).await;
    assert_eq!(three.leads_to(), three.dir, "it is lost with the source, and says so");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn source_killed_after_it_gave_a_container_up() {
    let mut three = Three::start().await;
    let new = three.prepare().await;
    three.source().names.write().commit_handover(three.dir, new);
    assert_eq!(three.put_at_source(), Err(NodeErrorKind::Moving), "not gone, but elsewhere");
    drop(three.source.take());
    until("its name leads to the target", || three.leads_to() == new).await;
    assert_eq!(value_of(three.target(), new).unwrap(), b"old");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn target_killed_before_a_container_is_its_own() {
    let mut three = Three::start().await;
    three.prepare().await;
    let to = three.target().worker;
    drop(three.target.take());
    let nodes = Arc::clone(three.source());
    nodes.abort_handover(three.dir, to).await;
    assert_eq!(three.put_at_source(), Ok(()), "nothing is left of it");
    assert_eq!(value_of(three.source(), three.dir).unwrap(), b"new");
    assert_eq!(three.leads_to(), three.dir);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn target_that_has_no_room_leaves_a_container_where_it_was() {
    let three = Three::start().await;
    let big = Value::from(vec![1; 16 << 10]);
    let fill = async |nodes: &Arc<Nodes>, dir: DirId| {
        for number in 0.. {
            if nodes.put_value(dir.into(), &number.to_string(), big.clone()).is_err() {
                return;
            }
        }
    };
    let full = three.target().names.write().adopt(NodeType::Directory, Default::default(), ROOT).unwrap();
    fill(three.target(), full).await;
    three.source().put_value(three.dir.into(), "big", big.clone()).unwrap();
    let follow = Box::new(|_| ());
    let mut line =
        Line { coordinator: three.bed.node.coordinator_at().clone(), security: Security::default(), connection: None, follow };
    let nodes = three.source();
    let error = nodes.hand_over(three.dir, three.target().worker, &mut line).await.err().unwrap();
    assert_eq!(error.kind, NodeErrorKind::NoSpace, "{error}");
    assert_eq!(three.put_at_source(), Ok(()));
    assert!(three.target().names.read().coming().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_root_is_with_one_worker_at_a_time() {
    let three = Three::start().await;
    let first = Arc::clone(&three.first.rooms.nodes);
    let rooms = Arc::clone(&three.first.rooms);
    let follow = Box::new(move |view| rooms.follow(view));
    let to = three.source().worker;
    let mut line =
        Line { coordinator: three.bed.node.coordinator_at().clone(), security: Security::default(), connection: None, follow };
    first.put_value(ROOT.into(), "k", Value::from(b"root".to_vec())).unwrap();
    first.hand_over(ROOT, to, &mut line).await.map(drop).unwrap();
    assert!(!first.names.read().has(ROOT));
    until("the other one has it", || value_of(three.source(), ROOT).is_some()).await;
    assert_eq!(value_of(three.source(), ROOT).unwrap(), b"root");
    until("all say so", || three.target().cluster.view().root().unwrap().id.0 == to).await;
    assert!(!first.names.read().has(ROOT), "an old view makes no new one");
}
