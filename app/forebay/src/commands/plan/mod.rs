//! `forebay plan`: what the coordinator and workers would decide, without a cluster.

mod answer;
mod demand;
mod log;
mod natural;
mod tasks;
mod workers;

use forebay_navigation::Settings;
use forebay_placement::{PlanSettings, Policy, Snapshot, plan};
use forebay_simulation::{shards_planned, shards_planned_table};
use forebay_types::Error;

use self::answer::Answer;
use self::demand::Demand;
use crate::cli::{PlanCommand, PlanReplicasArgs, PlanShardsArgs};
use crate::exit::{Failure, Outcome};
use crate::output::{Output, show};

pub(crate) fn run(command: PlanCommand) -> Outcome {
    match command {
        PlanCommand::Replicas(args) => replicas(&args),
        PlanCommand::Tasks(args) => tasks::run(&args),
        PlanCommand::Shards(args) => shards(&args),
    }
}

fn replicas(args: &PlanReplicasArgs) -> Outcome {
    let settings = settings(args)?;
    let demand = Demand::read(args)?;
    let workers = workers::read(args)?;
    let total = demand.accesses();
    let room = args.capacity.map(|capacity| u128::from(capacity) * workers.len() as u128);
    if room.is_some_and(|room| room < u128::from(total)) {
        return Err(Failure::Failed(Error::invalid(format!(
            "{} workers of capacity {} take fewer than the {total} accesses of a window: give --capacity {} or more workers",
            workers.len(),
            args.capacity.unwrap_or_default(),
            total.div_ceil(workers.len() as u64)
        ))));
    }
    let held = demand::holdings(args.holdings.as_deref(), &demand, workers.len() as u32)?;
    let snapshot = Snapshot { segments: &demand.segments, workers: &workers, held: &held };
    let plan = plan(&snapshot, &settings);
    let answer = Answer { demand: &demand, plan: &plan, settings: &settings };
    show(args.json, &answer, |output| answer.show(output))
}

fn settings(args: &PlanReplicasArgs) -> Outcome<PlanSettings> {
    let fewest = if args.capacity.is_some() { Policy::Repack } else { Policy::Getafix };
    let policy = match (args.policy.unwrap_or(fewest), args.replicas) {
        (Policy::Uniform { .. }, Some(replicas)) => Policy::Uniform { replicas },
        (other, Some(_)) => {
            return Err(Failure::Usage(format!("--replicas is for the policy uniform; {other} works out how many there are")));
        }
        (policy, None) => policy,
    };
    let settings = PlanSettings { policy, slack: args.slack, budget: args.budget, seed: args.seed, iterations: args.iterations };
    settings.validate().map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(settings)
}

/// Says which layers a worker would give to its shards, by the same function that workers call.
fn shards(args: &PlanShardsArgs) -> Outcome {
    let (period_secs, target_us) = (args.period.as_secs_f64(), args.target.as_secs_f64() * 1e6);
    let settings = Settings { period_secs, target_us, ..Settings::default() };
    settings.validate().map_err(|error| Failure::Usage(error.to_string()))?;
    let name = args.worker.display().to_string();
    let planned = shards_planned(&demand::text(&args.worker)?, &settings).map_err(|error| error.context(name))?;
    let mut output = Output::new(args.json);
    match args.json {
        true => planned.iter().try_for_each(|planned| output.record(planned))?,
        false => output.line(shards_planned_table(&planned).trim_end())?,
    }
    output.finish()
}
