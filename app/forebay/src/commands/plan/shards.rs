//! `forebay plan shards`.

use forebay_navigation::Settings;
use forebay_simulation::{shards_planned, shards_planned_table};

use super::demand::text;
use crate::cli::PlanShardsArgs;
use crate::exit::{Failure, Outcome};
use crate::output::Output;

/// Says which layers a worker would give to its shards, by the same function that workers call.
pub(super) fn run(args: &PlanShardsArgs) -> Outcome {
    let (period_secs, target_us) = (args.period.as_secs_f64(), args.target.as_secs_f64() * 1e6);
    let settings = Settings { period_secs, target_us, ..Settings::default() };
    settings.validate().map_err(|error| Failure::Usage(error.to_string()))?;
    let name = args.worker.display().to_string();
    let planned = shards_planned(&text(&args.worker)?, &settings).map_err(|error| error.context(name))?;
    let mut output = Output::new(args.json);
    match args.json {
        true => planned.iter().try_for_each(|planned| output.record(planned))?,
        false => output.line(shards_planned_table(&planned).trim_end())?,
    }
    output.finish()
}
