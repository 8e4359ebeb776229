//! What leaves the tiers of workers and what comes into them, told to the schedule as it happens.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use forebay_client::Client;
use forebay_scheduling::BlockRange;
use forebay_types::{PageRun, Result, SegmentId, WorkerId};
use parking_lot::Mutex;
use tokio_util::task::AbortOnDropHandle;

use crate::books::{Books, Sender};

/// How often it is looked whose tiers count.
const LOOK: Duration = Duration::from_millis(50);
/// What leaves and comes within so long is told together.
const TOGETHER: Duration = Duration::from_millis(50);
/// A worker is asked so long for what changes before it is asked anew.
const ASKED_FOR: Duration = Duration::from_secs(10);
/// A worker that does not say is asked again after so long.
const AGAIN: Duration = Duration::from_secs(1);

/// Follows the workers beside executors as long as there are jobs, until it is dropped.
pub async fn follow(client: Client, books: Arc<Mutex<Books>>) {
    let mut followed: HashMap<WorkerId, AbortOnDropHandle<()>> = HashMap::new();
    loop {
        let workers = books.lock().workers_at_work();
        followed.retain(|worker, _| workers.contains(worker));
        for worker in workers {
            followed.entry(worker).or_insert_with(|| {
                let following = follow_one(client.clone(), Arc::clone(&books), worker);
                AbortOnDropHandle::new(forebay_runtime::spawn(following))
            });
        }
        forebay_runtime::time::sleep(LOOK).await;
    }
}

async fn follow_one(client: Client, books: Arc<Mutex<Books>>, worker: WorkerId) {
    let mut since = 0;
    loop {
        let pause = match next(&client, &books, worker, since).await {
            Ok(next) => {
                since = next;
                TOGETHER
            }
            Err(error) => {
                tracing::debug!(%worker, %error, "a worker does not say what changes in its tiers");
                AGAIN
            }
        };
        forebay_runtime::time::sleep(pause).await;
    }
}

/// Waits for what leaves or comes next, and tells it.
async fn next(client: &Client, books: &Mutex<Books>, worker: WorkerId, since: u64) -> Result<u64> {
    let departed = client.departed(worker, since, ASKED_FOR).await?;
    let runs = match departed.lost {
        // More than was told, as at first: what is taken to be there is looked at.
        true => {
            let held = books.lock().schedule.held_by(worker);
            let (_, gone) = there(client, worker, held).await?;
            gone.into_iter().map(run_of).collect()
        }
        false => departed.runs,
    };
    if !runs.is_empty() {
        books.lock().decide("what left a tier", Sender::Nobody, |books| books.schedule.departed(worker, &runs));
    }
    // Behind that, and asked for now: what has left again since is told the next time.
    let wanted = books.lock().schedule.wanted_at(worker, &departed.came);
    let (came, _) = there(client, worker, wanted).await?;
    if !came.is_empty() {
        books.lock().decide("what came to a tier", Sender::Nobody, |books| {
            came.iter().for_each(|range| books.schedule.arrived(*range, worker));
        });
    }
    Ok(departed.next)
}

/// The ranges that are there as a whole, and those that are not.
async fn there(client: &Client, worker: WorkerId, ranges: Vec<BlockRange>) -> Result<(Vec<BlockRange>, Vec<BlockRange>)> {
    if ranges.is_empty() {
        return Ok(Default::default());
    }
    let runs: Vec<(SegmentId, PageRun)> = ranges.iter().copied().map(run_of).collect();
    let present = client.present(worker, &runs).await?;
    let (there, gone): (Vec<_>, Vec<_>) = ranges.into_iter().zip(present).partition(|(_, present)| *present);
    let bare = |ranges: Vec<(BlockRange, bool)>| ranges.into_iter().map(|(range, _)| range).collect();
    Ok((bare(there), bare(gone)))
}

fn run_of(range: BlockRange) -> (SegmentId, PageRun) {
    (range.segment, range.pages)
}

#[cfg(test)]
mod tests {
    use forebay_scheduling::{JobId, ScheduleSettings, TaskId, TaskInput, TaskSpec};
    use forebay_testbed::{BUCKET, TestCluster, add_mount, until};
    use forebay_types::{ForebayPath, OperationId};

    use super::*;
    use crate::ticket::Ticket;

    const MIB: u64 = 1 << 20;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_task_was_sent_to_a_worker_whose_tier_had_lost_its_input() {
        let mut test = TestCluster::empty(|_| {}).await;
        test.worker.store.dram_bytes = 16 << 20;
        test.worker.unix_socket = None;
        test.add_worker().await;
        let (worker, client) = (test.node.workers[0].id(), test.node.client().await.unwrap());
        add_mount(&client, "lake", &format!("s3://{BUCKET}/pool"), test.s3.mount_options()).await;
        for (key, len) in [("pool/x", MIB), ("pool/y", 40 * MIB)] {
            test.store(key, &vec![7; len as usize]);
        }
        let open = async |path: &str| client.open(&path.parse::<ForebayPath>().unwrap()).await.unwrap().version;
        let (x, y) = (open("/lake/x").await, open("/lake/y").await);
        client.load(vec![x.clone()], false, |_| {}).await.unwrap();

        let mut books = Books::new(ScheduleSettings::default());
        books.executor_asks(&format!("{:x}-1", worker.0), 1, Some(12 << 20));
        books.job_seen("job", || Ticket::silent(OperationId(1)));
        let range = BlockRange { segment: SegmentId::of(&x, 0), pages: PageRun::new(0, 256) };
        let number = books.jobs["job"].number;
        let input = TaskInput { range, storage: x.mount, holders: vec![worker], routed: Vec::new() };
        books.schedule.add_tasks(number, vec![TaskSpec { id: TaskId(1), inputs: vec![input] }]);
        assert_eq!((number, books.schedule.held_by(worker)), (JobId(1), vec![range]));
        let books = Arc::new(Mutex::new(books));
        let _following = AbortOnDropHandle::new(forebay_runtime::spawn(follow(client.clone(), Arc::clone(&books))));

        // It is asked first what is there, so that is there still.
        client.departed(worker, 0, Duration::from_millis(1)).await.unwrap();
        forebay_runtime::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(books.lock().schedule.held_by(worker), [range]);
        for at in 0..40 {
            client.read(client.operation(), &y, at * MIB..(at + 1) * MIB).await.unwrap();
        }
        until("the schedule hears of it", || books.lock().schedule.held_by(worker).is_empty()).await;
        // Whoever reads it brings it back.
        client.read(client.operation(), &x, 0..MIB).await.unwrap();
        until("the schedule hears of that too", || books.lock().schedule.held_by(worker) == [range]).await;
        books.lock().job_over("job", "done", String::new());
        assert!(books.lock().workers_at_work().is_empty(), "nobody is followed for nothing");
    }
}
