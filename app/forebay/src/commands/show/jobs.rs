//! `forebay jobs` and `forebay transfers`: what the scheduler of distributed SQL runs and brings.

use forebay_distributed::{Cluster, SchedulerControl};
use forebay_protocol::{JobState, TaskState, TransferState};
use forebay_types::{Error, format_bytes};

use crate::cli::{JobsArgs, JobsCommand, TransfersArgs};
use crate::config::Config;
use crate::connect::connect;
use crate::exit::Outcome;
use crate::output::list;

/// Characters of a statement in the table.
const SQL_CHARS: usize = 50;

/// Lists jobs, or ends one.
pub(crate) async fn run(config: &Config, args: JobsArgs) -> Outcome {
    let control = control(config).await?;
    match args.command {
        Some(JobsCommand::Cancel { id }) => return Ok(control.cancel(&id).await?),
        Some(JobsCommand::Tasks) => return tasks(&control, args.json).await,
        None => {}
    }
    let titles = ["job", "state", "priority", "tasks", "running", "copied", "read", "of", "passed on", "seconds", "statement"];
    list(args.json, &control.jobs().await?, &titles, &[2, 3, 4, 5, 6, 7, 8, 9], row)
}

async fn tasks(control: &SchedulerControl, json: bool) -> Outcome {
    let row = |task: &TaskState| {
        vec![
            task.job.clone(),
            task.stage.to_string(),
            task.partition.map_or_else(|| "all".to_string(), |partition| partition.to_string()),
            task.state.clone(),
            task.worker.clone(),
            format_bytes(task.bytes),
            format_bytes(task.bytes_local),
            format!("{:.2}", task.seconds),
            format!("{:.1}", task.ended_seconds_ago),
        ]
    };
    let titles = ["job", "stage", "partition", "state", "worker", "reads", "had there", "seconds", "ended ago"];
    list(json, &control.tasks().await?, &titles, &[1, 2, 5, 6, 7, 8], row)
}

pub(crate) async fn transfers(config: &Config, args: TransfersArgs) -> Outcome {
    let transfers = control(config).await?.transfers().await?;
    let row = |transfer: &TransferState| {
        vec![
            transfer.path.clone(),
            transfer.start.to_string(),
            format_bytes(transfer.bytes),
            transfer.worker.clone(),
            format!("{:.1}", transfer.seconds),
        ]
    };
    list(args.json, &transfers, &["path", "from", "bytes", "worker", "seconds"], &[1, 2, 4], row)
}

async fn control(config: &Config) -> Outcome<SchedulerControl> {
    let scheduler = match config.scheduler() {
        Some(scheduler) => scheduler.to_string(),
        None => connect(config).await?.scheduler().await?.ok_or_else(|| {
            let at = &config.settings.coordinator.0;
            Error::retry(format!(
                "the coordinator at {at} knows of no scheduler: start one with `forebay up --cluster N` or `forebay scheduler`"
            ))
        })?,
    };
    Ok(Cluster::control(&scheduler, &config.security)?)
}

fn row(job: &JobState) -> Vec<String> {
    let sql: String = job.sql.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(SQL_CHARS).collect();
    vec![
        job.id.clone(),
        job.state.clone(),
        job.priority.to_string(),
        format!("{}/{}", job.tasks_done, job.tasks),
        job.tasks_running.to_string(),
        job.tasks_copied.to_string(),
        format_bytes(job.bytes_done),
        format_bytes(job.bytes),
        format_bytes(job.bytes_passed),
        format!("{:.1}", job.seconds),
        sql,
    ]
}
