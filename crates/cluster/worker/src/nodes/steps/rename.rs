//! Renames between two workers of which one is killed after each step. A killed worker says no word to anybody.

use std::sync::Arc;
use std::time::Duration;

use forebay_nodes::{CreateOptions, DirId, Got, NodeErrorKind, NodeType, ROOT, StorageClass, Value};
use forebay_testbed::until;

use crate::nodes::rename::{Prepared, Renames};
use crate::nodes::{Brought, Nodes};
use crate::process::bed::Bed;
use crate::{Tuning, Worker};

/// Two workers: the source has `/tmp` and in it `k`, the target has the nodes of a directory in it.
struct Pair {
    source: Option<Worker>,
    target: Option<Worker>,
    dir: DirId,
    name: String,
    /// The number of the rename that is made step by step.
    rename: u128,
    _bed: Bed,
}

impl Pair {
    async fn start() -> Self {
        let bed = Bed::start(Duration::from_secs(2)).await;
        let tuning = || Tuning { beat: Duration::from_millis(50), ..Tuning::default() };
        let (source, target) = (bed.worker("source", tuning()).await, bed.worker("target", tuning()).await);
        until("they know each other", || [&source, &target].iter().all(|worker| worker.rooms.cluster.view().workers.len() == 2))
            .await;
        let nodes = &source.rooms.nodes;
        let directory = CreateOptions::new(NodeType::Directory);
        for number in 0.. {
            let name = format!("d{number}");
            nodes.create(ROOT, &name, directory.clone()).await.unwrap();
            let elsewhere = nodes.names.read().elsewhere(ROOT, &name).unwrap();
            if let Some(dir) = elsewhere {
                nodes.put_value(ROOT.into(), "k", value("old")).unwrap();
                let rename = nodes.apart.renames.lock().begin();
                return Self { source: Some(source), target: Some(target), dir, name, rename, _bed: bed };
            }
        }
        unreachable!("some directory comes to the other worker")
    }

    /// A container of the source whose name is with the target.
    async fn inner(&self) -> (String, DirId) {
        for number in 0.. {
            let name = format!("i{number}");
            self.target().create(self.dir, &name, CreateOptions::new(NodeType::Directory)).await.unwrap();
            let inner = self.target().names.read().elsewhere(self.dir, &name).unwrap();
            if let Some(inner) = inner {
                return (name, inner);
            }
        }
        unreachable!("some directory comes to the other worker")
    }

    fn source(&self) -> &Arc<Nodes> {
        &self.source.as_ref().unwrap().rooms.nodes
    }

    fn target(&self) -> &Arc<Nodes> {
        &self.target.as_ref().unwrap().rooms.nodes
    }

    /// The first step: the target has taken it in, unseen.
    async fn prepare(&self) -> u64 {
        let nodes = self.source();
        let moving = nodes.names.write().begin_move(ROOT, "k").unwrap();
        let prepared = nodes.prepare(self.rename, "k", (self.dir, "moved"), &moving).await;
        match prepared.unwrap_or_else(|(error, _)| panic!("{error}")) {
            Prepared::By(worker) => {
                assert_eq!(worker, self.target().worker);
                worker
            }
            Prepared::Back(..) => panic!("it is with the target"),
        }
    }

    fn commit(&self) {
        let nodes = self.source();
        nodes.names.write().commit_move(ROOT, "k").unwrap();
        nodes.apart.renames.lock().end(self.rename, true);
    }

    fn abort(&self) {
        let nodes = self.source();
        nodes.names.write().abort_move(ROOT, "k");
        nodes.apart.renames.lock().end(self.rename, false);
    }

    /// The value where it was, and where it was to come.
    fn at_source(&self) -> Option<Vec<u8>> {
        value_of(self.source(), ROOT, "k")
    }

    fn at_target(&self) -> Option<Vec<u8>> {
        value_of(self.target(), self.dir, "moved")
    }

    fn put_at_target(&self) -> Result<(), NodeErrorKind> {
        let put = self.target().put_value(self.dir.into(), "moved", value("new"));
        put.map(drop).map_err(|error| error.kind)
    }

    fn put_at_source(&self) -> Result<(), NodeErrorKind> {
        let put = self.source().put_value(ROOT.into(), "k", value("new"));
        put.map(drop).map_err(|error| error.kind)
    }
}

fn value(text: &str) -> Value {
    Value::from(Vec::from(text))
}

fn value_of(nodes: &Nodes, dir: DirId, name: &str) -> Option<Vec<u8>> {
    match nodes.names.read().get(dir, name) {
        Ok(Got::Inline(bytes)) => Some(bytes.to_vec()),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn source_killed_before_it_commits() {
    let mut pair = Pair::start().await;
    pair.prepare().await;
    assert_eq!(pair.at_source().unwrap(), b"old", "readers still see it");
    assert_eq!(pair.put_at_source(), Err(NodeErrorKind::Retry));
    forebay_runtime::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(pair.at_target(), None, "unseen as long as the source has not said more");
    assert_eq!(pair.put_at_target(), Err(NodeErrorKind::Retry), "the place is taken");
    drop(pair.source.take());
    until("the target has the only one that is left", || pair.at_target().is_some()).await;
    assert_eq!(pair.at_target().unwrap(), b"old");
    assert_eq!(pair.put_at_target(), Ok(()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn source_killed_after_it_committed() {
    let mut pair = Pair::start().await;
    pair.prepare().await;
    pair.commit();
    drop(pair.source.take());
    until("the target shows it", || pair.at_target().is_some()).await;
    assert_eq!(pair.at_target().unwrap(), b"old");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn word_of_the_commit_is_lost() {
    let pair = Pair::start().await;
    pair.prepare().await;
    pair.commit();
    until("the target asks", || pair.at_target().is_some()).await;
    assert_eq!((pair.at_target().unwrap(), pair.at_source()), (b"old".to_vec(), None), "it is once, at its new place");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn source_gives_up_after_the_target_prepared() {
    let pair = Pair::start().await;
    let target = pair.prepare().await;
    pair.abort();
    assert!(pair.source().tell_end(target, pair.rename, false).await);
    assert_eq!((pair.at_source().unwrap(), pair.at_target()), (b"old".to_vec(), None));
    assert_eq!((pair.put_at_source(), pair.put_at_target()), (Ok(()), Ok(())));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn word_that_the_source_gave_up_is_lost() {
    let pair = Pair::start().await;
    pair.prepare().await;
    forebay_runtime::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(pair.put_at_target(), Err(NodeErrorKind::Retry), "the target waits for what is under way");
    pair.abort();
    until("the target asks", || pair.put_at_target() == Ok(())).await;
    assert_eq!((pair.at_source().unwrap(), pair.at_target().unwrap()), (b"old".to_vec(), b"new".to_vec()));
}

#[test]
fn what_an_earlier_process_was_to_give_up_is_the_targets() {
    let (mut before, mut after) = (Renames::new(1), Renames::new(2));
    let old = before.begin();
    assert_eq!((before.outcome(old), after.outcome(old)), (Some(false), Some(true)));
    let new = after.begin();
    assert_eq!(after.outcome(new), Some(false));
    after.end(new, true);
    assert_eq!(after.outcome(new), Some(true));
    let other = after.begin();
    after.end(other, false);
    assert_eq!(after.outcome(other), None, "it was given up");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asked_goes_away_while_it_is_under_way() {
    let pair = Pair::start().await;
    let renaming = pair.source().rename((ROOT.into(), "k"), (pair.dir, "moved"), false);
    // Begun, and dropped by the server as it drops a call whose connection ends.
    let _ = futures::poll!(Box::pin(renaming));
    until("it has come", || pair.at_target().is_some()).await;
    assert_eq!((pair.at_target().unwrap(), pair.at_source()), (b"old".to_vec(), None));
    assert_eq!(pair.put_at_target(), Ok(()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_on_its_way_is_not_deleted() {
    let pair = Pair::start().await;
    pair.target().put_value(pair.dir.into(), "k", value("inside")).unwrap();
    let nodes = pair.source();
    nodes.names.write().begin_move(ROOT, &pair.name).unwrap();
    let refused = nodes.delete(ROOT, &pair.name, true).await.unwrap_err();
    assert_eq!(refused.kind, NodeErrorKind::Retry, "{refused}");
    assert_eq!(value_of(pair.target(), pair.dir, "k").unwrap(), b"inside", "nothing was changed");
    nodes.names.write().abort_move(ROOT, &pair.name);
    nodes.delete(ROOT, &pair.name, true).await.unwrap();
    assert_eq!(value_of(pair.target(), pair.dir, "k"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_containers_that_are_moved_into_each_other_one_stays_where_it_is() {
    let pair = Pair::start().await;
    let (nodes, target) = (pair.source(), pair.target());
    let (a, a_id, mut other) = (pair.name.as_str(), pair.dir, None);
    for number in 100.. {
        let name = format!("d{number}");
        nodes.create(ROOT, &name, CreateOptions::new(NodeType::Directory)).await.unwrap();
        other = nodes.names.read().elsewhere(ROOT, &name).unwrap().map(|id| (name, id));
        if other.is_some() {
            break;
        }
    }
    let (b, b_id) = other.as_ref().map(|(name, id)| (name.as_str(), *id)).unwrap();
    for _ in 0..20 {
        let (into_b, into_a) =
            (nodes.rename((ROOT.into(), a), (b_id, "in"), false), nodes.rename((ROOT.into(), b), (a_id, "in"), false));
        let (first, second) = futures::join!(into_b, into_a);
        for refused in [&first, &second].into_iter().filter_map(|moved| moved.as_ref().err()) {
            assert!(matches!(refused.kind, NodeErrorKind::Invalid | NodeErrorKind::Retry), "{refused}");
        }
        match (first.is_ok(), second.is_ok()) {
            (true, true) => panic!("nothing leads to either of them any more"),
            (true, false) => target.rename((b_id.into(), "in"), (ROOT, a), false).await.unwrap(),
            (false, true) => target.rename((a_id.into(), "in"), (ROOT, b), false).await.unwrap(),
            (false, false) => {}
        }
    }
    nodes.rename((ROOT.into(), a), (b_id, "in"), false).await.unwrap();
    let refused = nodes.rename((ROOT.into(), b), (a_id, "in"), false).await.unwrap_err();
    assert_eq!(refused.kind, NodeErrorKind::Invalid, "{refused}");
    assert!(nodes.names.read().stat(ROOT, b).unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_keeps_its_lease_when_the_way_to_its_new_place_is_with_another_worker() {
    let pair = Pair::start().await;
    let (nodes, (_, inner)) = (pair.source(), pair.inner().await);
    nodes.create(ROOT, "leased", CreateOptions::new(NodeType::Directory)).await.unwrap();
    let until = nodes.now() + Duration::from_secs(600);
    nodes.names.write().set_lease(ROOT, "leased", Some(until)).unwrap();
    nodes.rename((ROOT.into(), "leased"), (inner, "moved"), false).await.unwrap();
    let names = nodes.names.read();
    assert_eq!((names.lease(inner, "moved"), names.lease(ROOT, "leased")), (Some(until), None));
    assert!(names.stat(ROOT, "leased").unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_renamed_by_a_way_that_leads_back_is_taken_in_once_or_stays_where_it_is() {
    let pair = Pair::start().await;
    let (nodes, (name, inner)) = (pair.source(), pair.inner().await);
    let to = (pair.dir, name.as_str());
    for dir in [ROOT, inner] {
        nodes.create(dir, "c", CreateOptions::new(NodeType::Directory)).await.unwrap();
    }
    let refused = nodes.rename((ROOT.into(), "c"), to, false).await.unwrap_err();
    assert_eq!(refused.kind, NodeErrorKind::Exists, "{refused}");
    assert!(nodes.names.read().stat(ROOT, "c").unwrap().is_some());
    nodes.put_value(inner.into(), "own", value("here")).unwrap();
    for own in ["own", "c"] {
        nodes.rename((inner.into(), own), to, false).await.unwrap();
        assert!(nodes.names.read().stat(inner, own).unwrap().is_some());
    }
    assert_eq!(value_of(nodes, inner, "own").unwrap(), b"here");
    nodes.rename((ROOT.into(), "k"), to, false).await.unwrap();
    assert_eq!((value_of(nodes, inner, "k").unwrap(), pair.at_source()), (b"old".to_vec(), None));
    assert_eq!(pair.put_at_source(), Ok(()), "its old name is free");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_is_no_container_that_it_could_come_into_itself() {
    let pair = Pair::start().await;
    let refused = pair.source().rename((ROOT.into(), "k"), (ROOT, "-"), true).await.unwrap_err();
    assert_eq!(refused.kind, NodeErrorKind::NotContainer, "{refused}");
    assert_eq!(pair.at_source().unwrap(), b"old");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_block_is_given_back_when_no_node_has_it_at_two_looks() {
    let pair = Pair::start().await;
    let nodes = pair.source();
    let block = nodes.keep_block(b"block", StorageClass::Dram, Brought::ByClient).await.unwrap();
    let look = async || nodes.look_at_kept(Duration::ZERO).await;
    let is_there = async || nodes.read_block(block, 0, block.len).await.unwrap().is_some();
    look().await;
    assert!(is_there().await, "its node may just have been on its way");
    pair.target().put_value(pair.dir.into(), "b", Value::Blocks([block].into())).unwrap();
    for _ in 0..3 {
        look().await;
    }
    assert!(is_there().await, "a node of another worker has it");
    // Nobody hears that this one goes.
    pair.target().names.write().delete(pair.dir, "b", false).unwrap();
    look().await;
    assert!(is_there().await, "a node had it at the look before");
    look().await;
    assert!(!is_there().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn target_killed_before_it_prepares() {
    let mut pair = Pair::start().await;
    drop(pair.target.take());
    // It answers no more when the coordinator has given it up, if not before.
    until("the source knows that the target is gone", || pair.source().cluster.view().workers.len() == 1).await;
    let to = (pair.dir, "moved");
    let renamed = pair.source().rename((ROOT.into(), "k"), to, false).await.unwrap_err();
    assert_eq!(renamed.kind, NodeErrorKind::DataLost, "{renamed}");
    assert_eq!(pair.at_source().unwrap(), b"old");
    assert_eq!(pair.put_at_source(), Ok(()), "nothing is left of the rename");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn target_killed_after_it_prepared() {
    let mut pair = Pair::start().await;
    let target = pair.prepare().await;
    drop(pair.target.take());
    pair.commit();
    // Nobody is there to hear it, and nobody waits for ever.
    pair.source().tell_end(target, pair.rename, true).await;
    assert_eq!(pair.at_source(), None, "what the target had is lost with it");
    until("the source knows that the target is gone", || pair.source().cluster.view().workers.len() == 1).await;
    let nodes = Arc::clone(pair.source());
    nodes.delete(ROOT, &pair.name, true).await.unwrap();
    assert_eq!(nodes.names.read().stat(ROOT, &pair.name).unwrap(), None);
}
