//! `forebay simulate shards`.

use forebay_simulation::{
    SHARD_SCENARIOS, ShardCurve, shards, shards_chart, shards_csv, shards_skew, shards_table, skew_chart, skew_csv, skew_table,
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
            let skew = [("skew", "skewed shards of fixed storage, led in different ways (figure 8)")];
            let all: Vec<_> = SHARD_SCENARIOS.iter().chain(&skew).copied().collect();
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
        name => {
            let run = shards(name, args.routing.parse()?, args.seed)?;
            write(args.csv.as_deref(), || shards_csv(&run))?;
            write(args.plot.as_deref(), || shards_chart(&run).svg())?;
            if args.json { output.record(&run)? } else { output.line(shards_table(&run).trim_end())? }
        }
    }
    output.finish()
}
