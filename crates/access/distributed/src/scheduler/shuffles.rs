//! Makes, leases and removes the directory of temporary nodes in which a job passes on rows between its stages.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ballista_scheduler::state::execution_graph::ExecutionGraphBox;
use datafusion::common::tree_node::TreeNode;
use datafusion::physical_plan::displayable;
use forebay_client::{CreateOptions, NodeErrorKind, NodeResult, NodeType, Nodes, StorageClass};
use forebay_jobs::Books;
use forebay_runtime::time::{sleep, timeout};
use parking_lot::Mutex;

use crate::shuffle::{ROOT, Shuffle, job_path};

/// A job's directory goes away so long after its scheduler, and is kept so often before that.
const LEASE: Duration = Duration::from_secs(10);
const RENEW: Duration = Duration::from_secs(2);
/// How often it is looked which jobs are over.
const LOOK: Duration = Duration::from_millis(200);
/// How long a task may wait for its job's directory, and how long a job does without one that could not be made.
const PATIENCE: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_secs(10);

/// Directories of temporary nodes in which jobs pass on what is between their stages. Each is there as long as its job.
pub(super) struct Shuffles {
    nodes: Nodes,
    shuffle: Shuffle,
    books: Arc<Mutex<Books>>,
    jobs: Mutex<HashMap<String, Directory>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Directory {
    Made,
    Failed(Instant),
}

impl Shuffles {
    pub(super) fn new(nodes: Nodes, shuffle: Shuffle, books: Arc<Mutex<Books>>) -> Arc<Self> {
        Arc::new(Self { nodes, shuffle, books, jobs: Mutex::default() })
    }

    /// Where a task of a stage whose results others read writes them: nodes of this class in its job's directory, which is
    /// there then; none for files.
    pub(super) async fn of_job(&self, job: &str) -> Option<StorageClass> {
        let Shuffle::Nodes(class) = self.shuffle else { return None };
        let known = self.jobs.lock().get(job).copied();
        match known {
            Some(Directory::Made) => return Some(class),
            Some(Directory::Failed(since)) if since.elapsed() < AGAIN => return None,
            _ => {}
        }
        let made = timeout(PATIENCE, self.make(job, class)).await;
        let why = match made {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("no answer within {} s", PATIENCE.as_secs())),
        };
        if let Some(why) = &why {
            tracing::warn!(job, why, "no directory in temporary nodes: what passes between stages goes to files for now");
        }
        let directory = if why.is_none() { Directory::Made } else { Directory::Failed(forebay_runtime::now()) };
        self.jobs.lock().insert(job.to_string(), directory);
        why.is_none().then_some(class)
    }

    async fn make(&self, job: &str, class: StorageClass) -> NodeResult<()> {
        let path = job_path(job);
        let there = |made: NodeResult<()>| match made {
            Err(error) if error.kind == NodeErrorKind::Exists => Ok(()),
            made => made,
        };
        there(self.nodes.create(ROOT, CreateOptions::new(NodeType::Directory)).await)?;
        let options = CreateOptions { class: Some(class), ..CreateOptions::new(NodeType::Directory) };
        there(self.nodes.create(&path, options).await)?;
        self.nodes.lease(&path, Some(LEASE)).await
    }

    /// Keeps the directories of jobs that run, and removes those of the others, until it is dropped.
    pub(super) async fn keep(self: Arc<Self>) {
        let mut renewed = forebay_runtime::now();
        loop {
            sleep(LOOK).await;
            let known: Vec<(String, Directory)> = self.jobs.lock().iter().map(|(job, at)| (job.clone(), *at)).collect();
            let over: Vec<(String, Directory)> = {
                let books = self.books.lock();
                known.iter().filter(|(job, _)| !books.jobs.contains_key(job)).cloned().collect()
            };
            for (job, directory) in &over {
                self.jobs.lock().remove(job);
                if matches!(directory, Directory::Made)
                    && let Err(error) = self.nodes.delete(&job_path(job), true).await
                {
                    tracing::debug!(job, %error, "a job's directory stays until its lease is over");
                }
            }
            if renewed.elapsed() < RENEW {
                continue;
            }
            renewed = forebay_runtime::now();
            for (job, _) in known.iter().filter(|known| matches!(known.1, Directory::Made) && !over.contains(known)) {
                if let Err(error) = self.nodes.lease(&job_path(job), Some(LEASE)).await {
                    tracing::warn!(job, %error, "a job's directory can't be kept");
                    if error.kind == NodeErrorKind::NotFound {
                        self.jobs.lock().remove(job);
                    }
                }
            }
        }
    }
}

/// Whether other stages of the job read what this one has; what no other one reads is fetched by who asked the query, from
/// files. A graph that is planned as it runs does not say which stage is its last one, but shows for each of the others the
/// exchange that it is.
pub(super) fn is_passed_on(graph: &ExecutionGraphBox, stage: usize, links: &[usize]) -> bool {
    let shown = format!(" stage_id={stage},");
    !links.is_empty()
        || graph
            .physical_plan()
            .exists(
                |node| Ok(node.name() == "ExchangeExec" && displayable(node.as_ref()).one_line().to_string().contains(&shown)),
            )
            .unwrap_or(false)
}
