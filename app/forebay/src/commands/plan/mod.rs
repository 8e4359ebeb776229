//! `forebay plan`: what the coordinator and workers would decide, without a cluster.

mod answer;
mod demand;
mod log;
mod natural;
mod shards;
mod tasks;
mod workers;

use forebay_placement::{PlanSettings, Policy, Snapshot, plan};
use forebay_types::Error;

use self::answer::Answer;
use self::demand::Demand;
use crate::cli::{PlanCommand, PlanReplicasArgs};
use crate::exit::{Failure, Outcome};
use crate::output::Output;

/// Plans and says what came out.
pub(crate) fn run(command: PlanCommand) -> Outcome {
    match command {
        PlanCommand::Replicas(args) => replicas(&args),
        PlanCommand::Tasks(args) => tasks::run(&args),
        PlanCommand::Shards(args) => shards::run(&args),
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
    let mut output = Output::new(args.json);
    if args.json {
        output.record(&answer)?;
    } else {
        answer.show(&mut output)?;
    }
    output.finish()
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
