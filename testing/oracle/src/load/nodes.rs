//! Temporary nodes: values that several clients put, get and replace on a condition, files that they append to.
//!
//! A node is used for a while, then the next one: histories stay short enough to be searched for an order.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use forebay_client::{CreateOptions, NodeCondition, NodeError, NodeErrorKind, NodeResult, NodeType, Nodes, value_tag};
use parking_lot::Mutex;
use rand::Rng;
use rand::rngs::StdRng;
use tokio::time::{sleep, timeout};

use super::{GIVEN_UP_AFTER, Shared, given_up, of_nodes, pause};
use crate::history::{Door, Failure, What};

/// Where all nodes of a load are.
pub const ROOT: &str = "/tmp/storm";
/// Calls on one node, after which there is a next one.
const CALLS: u32 = 90;
const CREATE_PAUSE: Duration = Duration::from_millis(100);
/// Bytes of a file are read at once.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// How often the number of a large value stands in it: more than lies beside its name.
const TIMES_LARGE: usize = 4_000;
/// Of the numbers from 0 on that a call is drawn by, the last one: it reads.
const READS: u32 = 3;
/// Stands for bytes that nobody put.
const FOREIGN: u64 = u64::MAX;

/// Clients that use the same nodes at the same time.
pub struct Group {
    folder: String,
    kind: NodeType,
    now: Mutex<Now>,
}

/// The node that a group uses.
#[derive(Debug, Default)]
struct Now {
    number: u32,
    calls: u32,
    is_there: bool,
}

/// One client of a group.
#[derive(Clone)]
pub struct Member {
    /// Its group.
    pub group: Arc<Group>,
    /// Its client's way to nodes.
    pub nodes: Nodes,
    /// What that way is called.
    pub door: Door,
    /// No two members have the same.
    pub number: u32,
    /// Between two of its calls, about.
    pub pause: Duration,
}

impl Group {
    /// Of values, or of files.
    pub fn new(name: &str, kind: NodeType) -> Self {
        Self { folder: format!("{ROOT}/{name}"), kind, now: Mutex::default() }
    }

    /// The node to use; none while there is none.
    fn node(&self) -> Option<String> {
        let mut now = self.now.lock();
        now.calls += 1;
        if now.calls > CALLS {
            *now = Now { number: now.number + 1, ..Now::default() };
        }
        now.is_there.then(|| format!("{}/{}", self.folder, now.number))
    }

    /// A call on a node may be done or not: the next calls are on another one.
    fn leave(&self, path: &str) {
        let mut now = self.now.lock();
        if path.ends_with(&format!("/{}", now.number)) {
            *now = Now { number: now.number + 1, ..Now::default() };
        }
    }

    /// Makes the next node, whose number nobody has used: the container where it is missing, and a file.
    async fn make(&self, nodes: &Nodes) {
        let number = {
            let mut now = self.now.lock();
            now.number += 1;
            now.number
        };
        let holds = if self.kind == NodeType::File { NodeType::Directory } else { NodeType::Table };
        let made = async {
            for (path, kind) in [(ROOT, NodeType::Directory), (&self.folder, holds)] {
                // It is there as a rule.
                let _ = nodes.create(path, CreateOptions::new(kind)).await;
            }
            match self.kind {
                NodeType::File => nodes.create(&format!("{}/{number}", self.folder), CreateOptions::new(NodeType::File)).await,
                _ => Ok(()),
            }
        };
        if let Ok(Ok(())) = timeout(GIVEN_UP_AFTER, made).await {
            let mut now = self.now.lock();
            if now.number == number {
                *now = Now { number, calls: 0, is_there: true };
            }
        } else {
            sleep(CREATE_PAUSE).await;
        }
    }
}

impl Member {
    /// Calls until the load ends.
    pub async fn run(self, shared: &Shared, mut chance: StdRng) {
        let mut counter = 0;
        let mut known: (String, Option<u64>) = Default::default();
        while shared.goes_on() {
            let Some(path) = self.group.node() else {
                self.group.make(&self.nodes).await;
                continue;
            };
            counter += 1;
            let value = u64::from(self.number) << 32 | counter;
            if known.0 != path {
                known = (path.clone(), None);
            }
            let begin_us = shared.recorder.now_us();
            let call = self.call(&path, value, known.1, chance.random_range(0..=READS));
            let (what, error) = match timeout(GIVEN_UP_AFTER, call).await {
                Ok(Some(called)) => called,
                Ok(None) => continue,
                Err(_) => (unanswered(&self.group, &path, value), Some(given_up())),
            };
            match &what {
                What::Get { value, .. } => known.1 = *value,
                What::Swap { value, done: Some(true), .. } | What::Put { value, .. } => known.1 = Some(*value),
                _ => {}
            }
            let leaves = error.as_ref().is_some_and(|failure| !failure.no_effect || failure.kind == "notfound");
            let may_be_lost = changes(&what) && error.as_ref().is_some_and(|failure| failure.kind == "data lost");
            shared.recorder.add(begin_us, self.door, what, error);
            if may_be_lost && shared.goes_on() {
                self.look(&path, shared).await;
            }
            if leaves {
                self.group.leave(&path);
            }
            pause(&mut chance, self.pause).await;
        }
    }

    /// Reads what is said to be lost before all go on to another node: where no worker was, it is there.
    async fn look(&self, path: &str, shared: &Shared) {
        let begin_us = shared.recorder.now_us();
        if let Ok(Some((what, error))) = timeout(GIVEN_UP_AFTER, self.call(path, 0, None, READS)).await {
            shared.recorder.add(begin_us, self.door, what, error);
        }
    }

    /// One call; none where what it needs before could not be done.
    async fn call(&self, path: &str, value: u64, known: Option<u64>, which: u32) -> Option<(What, Option<Failure>)> {
        let path_of = path.to_owned();
        Some(match (self.group.kind, which) {
            (NodeType::File, 0 | 1) => {
                let appended = self.nodes.append(path, value.to_le_bytes().to_vec()).await;
                let (count, error) = parted(appended.map(|bytes| bytes / 8));
                (What::Append { path: path_of, value, count }, error)
            }
            (NodeType::File, _) => {
                let read = found(self.nodes.read(path, 0, FILE_BYTES_MAX).await);
                let (numbers, error) = parted(read.map(|bytes| bytes.map(|bytes| numbers(&bytes))));
                (What::Numbers { path: path_of, numbers: numbers.flatten() }, error)
            }
            (_, 0) => {
                let (_, error) = parted(self.nodes.put(path, bytes_of(value)).await);
                (What::Put { path: path_of, value }, error)
            }
            (_, 1) if known.is_none_or(|known| !is_large(known)) => {
                let (done, error) = self.swap(path, value, known).await?;
                (What::Swap { path: path_of, expected: known, value, done }, error)
            }
            _ => {
                let got = found(self.nodes.get(path).await);
                let (value, error) = parted(got.map(|bytes| bytes.map(|bytes| value_in(&bytes))));
                (What::Get { path: path_of, value: value.flatten() }, error)
            }
        })
    }

    /// Puts a value under a name of its own, and in the place of the other if that is what is expected.
    async fn swap(&self, path: &str, value: u64, expected: Option<u64>) -> Option<(Option<bool>, Option<Failure>)> {
        let (folder, name) = path.rsplit_once('/')?;
        let draft = format!("{folder}/draft-{value:x}");
        self.nodes.put(&draft, bytes_of(value)).await.ok()?;
        let condition = match expected {
            None => NodeCondition::Absent,
            Some(expected) => NodeCondition::Tag(value_tag(&bytes_of(expected))?),
        };
        match self.nodes.replace(&draft, name, condition).await {
            Ok(()) => Some((Some(true), None)),
            Err(error) if error.kind == NodeErrorKind::Exists => Some((Some(false), None)),
            // The draft is missing, or the other one: nothing was replaced.
            Err(error) if error.kind == NodeErrorKind::NotFound => None,
            Err(error) => Some((None, Some(of_nodes(&error)))),
        }
    }
}

fn changes(what: &What) -> bool {
    matches!(what, What::Append { .. } | What::Put { .. } | What::Swap { .. })
}

/// What is taken down of a call that was given up: any that may change something.
fn unanswered(group: &Group, path: &str, value: u64) -> What {
    let path = path.to_owned();
    match group.kind {
        NodeType::File => What::Append { path, value, count: None },
        _ => What::Put { path, value },
    }
}

/// What is not there is an answer.
fn found(read: NodeResult<Bytes>) -> NodeResult<Option<Bytes>> {
    match read {
        Err(NodeError { kind: NodeErrorKind::NotFound, .. }) => Ok(None),
        read => read.map(Some),
    }
}

fn parted<T>(answer: NodeResult<T>) -> (Option<T>, Option<Failure>) {
    match answer {
        Ok(answer) => (Some(answer), None),
        Err(error) => (None, Some(of_nodes(&error))),
    }
}

/// Every fourth value is large, and lies in blocks.
fn is_large(value: u64) -> bool {
    value.is_multiple_of(4)
}

fn bytes_of(value: u64) -> Vec<u8> {
    value.to_le_bytes().repeat(if is_large(value) { TIMES_LARGE } else { 1 })
}

fn value_in(bytes: &[u8]) -> u64 {
    let first = numbers(&bytes[..bytes.len().min(8)]).first().copied().unwrap_or(FOREIGN);
    if bytes == bytes_of(first) { first } else { FOREIGN }
}

fn numbers(bytes: &[u8]) -> Vec<u64> {
    let number = |piece: &[u8]| piece.try_into().map_or(FOREIGN, u64::from_le_bytes);
    bytes.chunks(8).map(number).collect()
}
