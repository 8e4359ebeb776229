//! `forebay plan tasks`: MixApart's bound on parallel tasks, as a number and as a picture.

use forebay_scheduling::sustained_tasks;
use forebay_simulation::capacity_chart;
use forebay_types::{Error, ResultExt, format_bytes, format_duration};
use serde::Serialize;

use crate::cli::PlanTasksArgs;
use crate::exit::{Failure, Outcome};
use crate::output::show;

/// What is needed, and what comes of it.
#[derive(Serialize)]
struct Answer {
    reuse: f64,
    task_secs: f64,
    task_bytes: u64,
    bandwidth_bytes_per_sec: u64,
    /// None when nothing is fetched, so that any number of tasks is fed.
    tasks: Option<f64>,
    /// What a task fetches while it runs.
    fetched_bytes_per_sec: f64,
}

/// Says how many parallel tasks shared storage can feed (MixApart, figure 1).
pub(super) fn run(args: &PlanTasksArgs) -> Outcome {
    if !(0.0..=1.0).contains(&args.reuse) {
        return Err(Failure::Usage(format!("a reuse of {} is out of range: use a share from 0 to 1, as in 0.8", args.reuse)));
    }
    if args.task.is_zero() || args.task_bytes.0 == 0 {
        return Err(Failure::Usage("a task takes time and reads something: give --task and --task-bytes above 0".into()));
    }
    let (task_secs, bytes, bandwidth) = (args.task.as_secs_f64(), args.task_bytes.0 as f64, args.bandwidth.bytes_per_sec());
    let tasks = sustained_tasks(args.reuse, task_secs, bytes, bandwidth as f64);
    let answer = Answer {
        reuse: args.reuse,
        task_secs,
        task_bytes: args.task_bytes.0,
        bandwidth_bytes_per_sec: bandwidth,
        tasks: tasks.is_finite().then_some(tasks),
        fetched_bytes_per_sec: (1.0 - args.reuse) * bytes / task_secs,
    };
    if let Some(file) = &args.plot {
        let svg = capacity_chart(&[task_secs], bytes, &[bandwidth as f64]).svg();
        std::fs::write(file, svg).map_err(Error::from).context(|| format!("can't write {}", file.display()))?;
    }
    show(args.json, &answer, |output| {
        let tasks = answer.tasks.map_or("any number".into(), |tasks| format!("{tasks:.0} in parallel"));
        output.lines(&[
            format!("tasks      {tasks}"),
            format!("each       {} in {}", format_bytes(answer.task_bytes), format_duration(args.task)),
            format!("of which   {}/s from shared storage", format_bytes(answer.fetched_bytes_per_sec as u64)),
            format!("bandwidth  {}", args.bandwidth),
        ])
    })
}
