//! `forebay simulate shards`.

use forebay_simulation::{
    RepairHost, RepairWay, SHARD_SCENARIOS, ShardCurve, repair_chart, repair_csv, repair_table, shards, shards_chart, shards_csv,
    shards_repair, shards_skew, shards_table, skew_chart, skew_csv, skew_table,
};

use super::{list_scenarios, write};
use crate::cli::SimulateShardsArgs;
use crate::exit::Outcome;
use crate::output::Output;

/// How skewed the load is, as in the paper.
const THETA: f64 = 0.99;
/// Storage over the input.
const STORAGE: [f64; 6] = [0.55, 0.6, 0.65, 0.7, 0.8, 1.0];

pub(crate) fn run(args: &SimulateShardsArgs) -> Outcome {
    let mut output = Output::new(args.json);
    match args.scenario.as_str() {
        "list" => {
            let beside = [
                ("skew", "skewed shards of fixed storage, led in different ways (figure 8)"),
                (
                    "repair",
                    "one of 12 workers is lost, shards beside Reed-Solomon (10,2), three copies and an object store (figure 7)",
                ),
            ];
            let all: Vec<_> = SHARD_SCENARIOS.iter().chain(&beside).copied().collect();
            return list_scenarios(args.json, &all);
        }
        "skew" => {
            let rows = shards_skew(ShardCurve::Paper, args.shards as usize, THETA, &STORAGE, args.seed)?;
            write(args.csv.as_deref(), || skew_csv(&rows))?;
            write(args.plot.as_deref(), || skew_chart(&rows).svg())?;
            match args.json {
                true => rows.iter().try_for_each(|row| output.record(row))?,
                false => output.line(skew_table(&rows).trim_end())?,
            }
        }
        "repair" => repair(args, &mut output)?,
        name => {
            let run = shards(name, args.routing.parse()?, args.seed)?;
            write(args.csv.as_deref(), || shards_csv(&run))?;
            write(args.plot.as_deref(), || shards_chart(&run).svg())?;
            if args.json { output.record(&run)? } else { output.line(shards_table(&run).trim_end())? }
        }
    }
    output.finish()
}

/// With memory for all that is stored, and with less than the input; curves are of the latter.
fn repair(args: &SimulateShardsArgs, output: &mut Output) -> Outcome {
    let [enough, short] = [RepairHost::ENOUGH, RepairHost::SHORT].map(|host| shards_repair(host, args.seed));
    let (enough, short): (Vec<RepairWay>, Vec<RepairWay>) = (enough?, short?);
    write(args.csv.as_deref(), || repair_csv(&short))?;
    write(args.plot.as_deref(), || repair_chart(&short).svg())?;
    for ways in [&enough, &short] {
        if args.json {
            ways.iter().try_for_each(|way| output.record(way))?;
        } else if let Some(way) = ways.first() {
            output.line(&format!("memory for {}x of the input\n{}", way.host.memory, repair_table(ways)))?;
        }
    }
    Ok(())
}
