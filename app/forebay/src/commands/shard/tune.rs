//! `forebay shard tune`: trades bytes of a shard of this machine for speed, or back.

use forebay_shard_store::Store;
use forebay_types::format_bytes;
use serde_json::json;

use crate::cli::ShardTuneArgs;
use crate::exit::Outcome;
use crate::output::Output;
use crate::progress;

/// Adds or drops layers until the shard has the size.
pub(super) fn run(args: &ShardTuneArgs) -> Outcome {
    let shard = Store::open_to_change(&args.common.shard)?;
    let bar = progress::spinner("tuning");
    shard.tune(args.size)?;
    bar.finish_and_clear();
    let inspection = shard.inspect()?;
    shard.close()?;
    let mut output = Output::new(args.common.json);
    if args.common.json {
        output.record(&json!({"size": inspection.ratio(), "bytes": inspection.bytes, "input_bytes": inspection.input_bytes}))?;
    } else {
        let (bytes, input) = (format_bytes(inspection.bytes), format_bytes(inspection.input_bytes));
        output.line(&format!("{:.3} of the input: {bytes} of {input}", inspection.ratio()))?;
    }
    output.finish()
}
