//! What a question for a task takes at the live scheduler (gate, books, policy, Ballista's graphs) of executors that run nothing: each says that
//! its task is done and asks for the next one, so many of them a second, whether those before have their answers or not.
//!
//! Owns: the executors and their questions ([`polls`]); `limit` has the same ones answered by no scheduler. Never does: decide which task goes
//! where. Start with [`polls`].

mod limit;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ballista_core::BALLISTA_PROTOCOL_VERSION;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::protobuf::{
    ExecutorRegistration, PollWorkParams, ShuffleWritePartition, SuccessfulTask, TaskDefinition, TaskStatus, task_status,
};
use ballista_core::serde::scheduler::{ExecutorOperatingSystemSpecification, ExecutorSpecification};
use bytes::Bytes;
use clap::Args;
use forebay_bench_harness::{Bar, Figure};
use forebay_distributed::SchedulerControl;
use forebay_sql::Engine;
use forebay_transport::{Guarded, Security};
use forebay_types::{Error, Result};
use futures::stream::{self, StreamExt, TryStreamExt};
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until, timeout};
use tonic::transport::{Channel, Endpoint};

use crate::cluster::{LocalCluster, Shape};
use crate::rig::{S3, mount, mounted};

/// Connections to the scheduler.
const WAYS: usize = 8;
/// Questions at once while executors only say that they are there.
const AT_ONCE: usize = 64;
/// Questions without an answer, from where on no more are asked.
const WAITING_MAX: usize = 20_000;
/// So long answers are waited for at the end; what is not there then counts as so late.
const AFTER: Duration = Duration::from_secs(10);
/// How long all jobs may take until they are there.
const THERE_WITHIN: Duration = Duration::from_secs(90);
/// How often executors say meanwhile that they are there, at less than half the time after which one is lost; how often jobs are looked at.
const SAY: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(200);
/// What tasks say that they took.
const TASK_MS: u64 = 1_000;
/// Bytes of the one file: enough to be cut into parts.
const FILE_BYTES: usize = 12 << 20;

/// How many of what.
#[derive(Args)]
pub struct PollsArgs {
    /// Executors of one slot, each beside a worker of its own.
    #[arg(long, default_value_t = 10_000)]
    executors: usize,
    /// Jobs.
    #[arg(long, default_value_t = 100)]
    jobs: usize,
    /// Tasks of each.
    #[arg(long, default_value_t = 1_000)]
    tasks: usize,
    /// Tasks that end a second.
    #[arg(long, default_value_t = 10_000)]
    a_second: u32,
    /// For so long, if there are tasks.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
}

type Way = SchedulerGrpcClient<Channel>;

/// An executor of one slot that runs nothing.
struct Stub {
    is: ExecutorRegistration,
    /// What it will say of the task that it has.
    task: Option<TaskStatus>,
    /// It says nothing: a job with such a task does not end, and nobody asks for its rows.
    keeps: bool,
    /// It says the same each time.
    repeats: bool,
}

/// What came of a question.
struct Answered {
    /// It told of the end of a task.
    ended: bool,
    ms: f64,
}

/// Asks for as long as it is to, and gives the figures.
pub async fn polls(args: PollsArgs) -> Result<Vec<Figure>> {
    let mut s3 = S3::start(None, Duration::ZERO)?;
    let mut cluster = LocalCluster::start(&Shape { workers: 1, ahead: false, task_bytes: 0, ..Shape::default() }).await?;
    // They would run what they are given.
    cluster.executors.clear();
    mount(&cluster.client, s3.endpoint(), None).await?;
    s3.put("numbers.csv", Bytes::from("1234567\n".repeat(FILE_BYTES / 8))).await?;
    let mut ways = Vec::new();
    for _ in 0..WAYS {
        ways.push(way(cluster.scheduler_address()).await?);
    }
    let stubs: Vec<_> = (1..=args.executors).map(|number| Arc::new(Mutex::new(Stub::new(number)))).collect();
    are_there(&stubs, &ways).await?;
    let (mut saying, all, by) = (JoinSet::new(), stubs.clone(), ways.clone());
    saying.spawn(async move {
        // Who can't be asked any more fails the jobs too, which is told.
        while are_there(&all, &by).await.is_ok() {
            sleep(SAY).await;
        }
    });

    let (engine, control) = (cluster.engine(0, args.tasks).await?, cluster.control()?);
    let mut jobs = JoinSet::new();
    for _ in 0..args.jobs {
        begin(&mut jobs, engine.clone(), "tasks").await?;
    }
    let began = Instant::now();
    loop {
        let all = control.jobs().await?;
        let ready = all.iter().filter(|job| job.state == "running" && job.tasks >= args.tasks as u64).count();
        if ready >= args.jobs {
            break;
        }
        if began.elapsed() > THERE_WITHIN {
            let (jobs, tasks, first) = (args.jobs, args.tasks, all.first());
            return Err(Error::internal(format!("{ready} of {jobs} jobs run and have {tasks} tasks; the first is {first:?}")));
        }
        sleep(LOOK).await;
    }
    let submission = submission(&mut jobs, engine, &control).await?;
    drop(saying);
    let (p99, ended) = sums(&ask(&args, &stubs, &ways).await?);
    drop((jobs, ways, control, cluster));
    let (limit_p99, limit_ended) = sums(&limit::limit(&args).await?);
    let of = format!("{} executors, {} tasks", args.executors, args.jobs * args.tasks);
    Ok(vec![
        Figure::alone(format!("scheduling live, {of}: p99 of a poll"), p99, "ms", Bar::ValueAtMost(5.0)).within(limit_p99),
        Figure::alone(format!("scheduling live, {of}: tasks that end"), ended, "tasks/s", Bar::RatioAtLeast(0.95))
            .beside("asked for", f64::from(args.a_second))
            .within(limit_ended),
        Figure::alone(format!("scheduling live, {of}: submission of a job"), submission, "ms", Bar::ValueAtMost(100.0)),
        Figure::alone("the same questions, answered at once with nothing: p99 of a poll", limit_p99, "ms", Bar::Nothing),
        Figure::alone("the same questions, answered at once with nothing: answers", limit_ended, "tasks/s", Bar::Nothing)
            .beside("asked for", f64::from(args.a_second)),
    ])
}

/// The p99 of questions in milliseconds, and of how many tasks they told a second.
fn sums((answered, lasted): &(Vec<Answered>, Duration)) -> (f64, f64) {
    let ended = answered.iter().filter(|it| it.ended).count() as f64 / lasted.as_secs_f64();
    let mut took: Vec<f64> = answered.iter().map(|it| it.ms).collect();
    took.sort_by(f64::total_cmp);
    (took.get(took.len() * 99 / 100).copied().unwrap_or(f64::NAN), ended)
}

/// Submits a query once it is planned.
async fn begin(jobs: &mut JoinSet<Result<()>>, engine: Engine, name: &str) -> Result<()> {
    let sql = format!("select count(*) as {name} from '{}/numbers.csv'", mounted());
    let mut query = engine.execute(&sql).await?;
    jobs.spawn(async move { query.collect().await.map(|_| ()) });
    Ok(())
}

/// Milliseconds until a job is there that is submitted beside all others.
async fn submission(jobs: &mut JoinSet<Result<()>>, engine: Engine, control: &SchedulerControl) -> Result<f64> {
    begin(jobs, engine, "one_more").await?;
    let began = Instant::now();
    while began.elapsed() < AFTER && !control.jobs().await?.iter().any(|job| job.sql.contains("one_more")) {
        sleep(Duration::from_millis(1)).await;
    }
    Ok(began.elapsed().as_secs_f64() * 1e3)
}

/// Has all executors say that they are there; none is silent for long then.
async fn are_there(stubs: &[Arc<Mutex<Stub>>], ways: &[Way]) -> Result<()> {
    let poll = |(number, stub): (usize, &Arc<Mutex<Stub>>)| {
        let (stub, mut way) = (Arc::clone(stub), ways[number % ways.len()].clone());
        async move { stub.lock().await.ask(&mut way, false).await.map(|_| ()) }
    };
    let polls: Vec<_> = stubs.iter().enumerate().map(poll).collect();
    stream::iter(polls).buffer_unordered(AT_ONCE).try_collect::<()>().await
}

/// One executor after the other, and so around; what came of questions that told of a task or got one, and how long it was until all had
/// answers. One that fails has its answer then.
async fn ask(args: &PollsArgs, stubs: &[Arc<Mutex<Stub>>], ways: &[Way]) -> Result<(Vec<Answered>, Duration)> {
    let (mut all, mut polls) = (Vec::new(), JoinSet::<Option<Answered>>::new());
    let (began, lasts) = (Instant::now(), Duration::from_secs(args.seconds));
    for number in 0..usize::MAX {
        let due = began + Duration::from_secs_f64(number as f64 / f64::from(args.a_second));
        if due >= began + lasts || polls.len() >= WAITING_MAX {
            break;
        }
        if due > Instant::now() {
            sleep_until(due.into()).await;
        }
        let (stub, mut way) = (Arc::clone(&stubs[number % stubs.len()]), ways[number % ways.len()].clone());
        polls.spawn(async move {
            let asked = stub.lock().await.ask(&mut way, true).await;
            let (ended, given) = asked.unwrap_or((false, true));
            (ended || given).then(|| Answered { ended, ms: due.elapsed().as_secs_f64() * 1e3 })
        });
        while let Some(poll) = polls.try_join_next() {
            all.extend(poll.map_err(|error| Error::internal(error.to_string()))?);
        }
    }
    let rest = async {
        while let Some(poll) = polls.join_next().await {
            all.extend(poll.map_err(|error| Error::internal(error.to_string()))?);
        }
        Ok::<(), Error>(())
    };
    if let Ok(rest) = timeout(AFTER, rest).await {
        rest?;
    }
    all.extend((0..polls.len()).map(|_| Answered { ended: false, ms: AFTER.as_secs_f64() * 1e3 }));
    Ok((all, began.elapsed()))
}

impl Stub {
    fn new(number: usize) -> Self {
        let is = ExecutorRegistration {
            id: format!("{number:016x}-{number:016x}"),
            host: Some("127.0.0.1".to_string()),
            port: 1,
            grpc_port: 1,
            specification: Some(ExecutorSpecification::default().with_vcores(1).into()),
            os_info: Some(ExecutorOperatingSystemSpecification::default().into()),
            ballista_protocol_version: BALLISTA_PROTOCOL_VERSION,
        };
        Self { is, task: None, keeps: false, repeats: false }
    }

    /// One that says of one task that it is done, again and again.
    fn telling(number: usize) -> Self {
        let stub = Self::new(number);
        let job_id = "0000001".to_string();
        let task = TaskDefinition { task_id: number as u32, job_id, stage_id: 1, ..TaskDefinition::default() };
        Self { task: Some(stub.done(task)), repeats: true, ..stub }
    }

    /// Asks for a task, if it is to and has none, after it has said that the one before is done; whether it has said that, and got one.
    async fn ask(&mut self, way: &mut Way, takes: bool) -> Result<(bool, bool)> {
        let tells = takes && !self.keeps;
        let told = if self.repeats { self.task.clone() } else { self.task.take_if(|_| tells) };
        let task_status: Vec<TaskStatus> = told.into_iter().collect();
        let ended = !task_status.is_empty();
        let num_free_vcores = u32::from(takes && self.task.is_none());
        let asked = PollWorkParams { metadata: Some(self.is.clone()), num_free_vcores, task_status };
        let answer = way.poll_work(asked).await.map_err(|status| Error::internal(status.to_string()))?;
        let given = answer.into_inner().tasks.into_iter().next();
        let is_given = given.is_some();
        if let Some(task) = given {
            self.keeps = task.task_id == 0;
            self.task = Some(self.done(task));
        }
        Ok((ended, is_given))
    }

    /// What it says of a task: one row for whom it is passed on to.
    fn done(&self, task: TaskDefinition) -> TaskStatus {
        let rows = ShuffleWritePartition { num_batches: 1, num_rows: 1, num_bytes: 64, ..ShuffleWritePartition::default() };
        let done = SuccessfulTask { executor_id: self.is.id.clone(), partitions: vec![rows], ..SuccessfulTask::default() };
        TaskStatus {
            task_id: task.task_id,
            job_id: task.job_id,
            stage_id: task.stage_id,
            stage_attempt_num: task.stage_attempt_num,
            launch_time: task.launch_time,
            start_exec_time: task.launch_time,
            end_exec_time: task.launch_time + TASK_MS,
            metrics: Vec::new(),
            status: Some(task_status::Status::Successful(done)),
        }
    }
}

/// A way to the scheduler's port, which lets this process in.
async fn way(port: SocketAddr) -> Result<Way> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let near = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let Ok(mut far) = Guarded::connect(&port.to_string(), &Security::default()).await else { return };
            // Slower without it, and no less right.
            let _ = near.set_nodelay(true);
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut near, &mut far).await });
        }
    });
    let endpoint = Endpoint::from_shared(format!("http://{near}")).map_err(|error| Error::internal(error.to_string()))?;
    Ok(SchedulerGrpcClient::new(endpoint.connect_lazy()))
}
