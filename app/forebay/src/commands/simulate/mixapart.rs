//! `forebay simulate mixapart`: what bringing input ahead of tasks wins, reuse by reuse.

use forebay_scheduling::Policy;
use forebay_simulation::{
    MixApartReplay, MixApartRow, MixApartSettings, mixapart_chart, mixapart_csv, mixapart_jobs, mixapart_replays, mixapart_rows,
};

use super::{recorded, write};
use crate::cli::{DataScheduler, JobOrder, MixApartArgs};
use crate::exit::{Failure, Outcome};
use crate::output::list;

/// Runs a cluster under a steady load, once for each reuse and with or without the data scheduler.
pub(crate) fn run(args: &MixApartArgs) -> Outcome {
    let settings = settings(args)?;
    let ways: &[bool] = match args.data_scheduler {
        DataScheduler::On => &[true],
        DataScheduler::Off => &[false],
        DataScheduler::Both => &[true, false],
    };
    if let Some(file) = &args.trace {
        let jobs = mixapart_jobs(&recorded(file)?, &settings.task_secs);
        return show_replays(args, &mixapart_replays(&settings, &jobs, ways));
    }
    let rows = mixapart_rows(&settings, &args.reuse, ways, args.load);
    write(args.csv.as_deref(), || mixapart_csv(&rows))?;
    write(args.plot.as_deref(), || mixapart_chart(&settings, &rows).svg())?;
    let titles = ["reuse", "data scheduler", "tasks offered", "computing", "job time", "slots waited", "link used", "local"];
    list(args.json, &rows, &titles, &[0, 2, 3, 4, 5, 6, 7], line)
}

/// A trace's jobs, a row a way.
fn show_replays(args: &MixApartArgs, rows: &[MixApartReplay]) -> Outcome {
    let titles = ["data scheduler", "jobs", "tasks", "reuse", "job time", "in all", "link used", "local"];
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    list(args.json, rows, &titles, &[1, 2, 3, 4, 5, 6, 7], |row| {
        vec![
            if row.data_scheduler { "on" } else { "off" }.into(),
            row.jobs.to_string(),
            row.tasks.to_string(),
            percent(row.reuse),
            format!("{:.1} s", row.job_secs),
            format!("{:.1} s", row.secs),
            percent(row.link),
            percent(row.local),
        ]
    })
}

fn settings(args: &MixApartArgs) -> Outcome<MixApartSettings> {
    if let Some(reuse) = args.reuse.iter().find(|reuse| !(0.0..=1.0).contains(*reuse)) {
        return Err(Failure::Usage(format!("a reuse of {reuse} is out of range: use shares from 0 to 1, as in 0.2,0.8")));
    }
    if !(args.load > 0.0 && args.load <= 2.0) {
        return Err(Failure::Usage(format!("a load of {} is out of range: use a share above 0, as in 0.7", args.load)));
    }
    let longest = args.task.iter().max().copied().unwrap_or_default();
    if args.task.iter().any(|task| task.as_millis() == 0) || args.task_bytes.0 == 0 {
        return Err(Failure::Usage("a task takes 1ms at least and reads something: give --task and --task-bytes".into()));
    }
    if args.task_bytes.0 > forebay_types::SEGMENT_BYTES {
        return Err(Failure::Usage(format!(
            "a task reads one segment at most here: give --task-bytes of 64MiB or less, not {}",
            args.task_bytes
        )));
    }
    if args.duration < 8 * longest {
        return Err(Failure::Usage("a run is eight tasks long at least, to tell anything: give a longer --duration".into()));
    }
    Ok(MixApartSettings {
        workers: args.workers,
        slots: args.slots,
        bandwidth_bytes_per_sec: args.bandwidth.bytes_per_sec() as f64,
        task_bytes: args.task_bytes.0,
        task_secs: args.task.iter().map(std::time::Duration::as_secs_f64).collect(),
        job_tasks_max: args.job_tasks,
        policy: match args.policy {
            JobOrder::Fifo => Policy::Fifo,
            JobOrder::Fair => Policy::Fair,
        },
        secs: args.duration.as_secs_f64(),
        seed: args.seed,
        ..MixApartSettings::default()
    })
}

fn line(row: &MixApartRow) -> Vec<String> {
    let (outcome, percent) = (&row.outcome, |share: f64| format!("{:.1} %", share * 100.0));
    vec![
        row.reuse.to_string(),
        if row.data_scheduler { "on" } else { "off" }.into(),
        format!("{:.0}", row.offered_tasks),
        format!("{:.0}", outcome.computing),
        format!("{:.1} s", outcome.job_secs),
        percent(outcome.waiting),
        percent(outcome.link),
        percent(outcome.local),
    ]
}
