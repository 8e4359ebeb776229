//! `forebay shard inspect`: the parts of a shard of this machine, with what each takes.

use forebay_types::format_bytes;

use super::open;
use crate::cli::ShardArgs;
use crate::exit::Outcome;
use crate::output::show;

pub(super) fn run(args: &ShardArgs) -> Outcome {
    let inspection = open(&args.shard)?.inspect()?;
    show(args.json, &inspection, |output| {
        output.line(&args.shard.display().to_string())?;
        output.line(&format!("  records     {}", inspection.records))?;
        output.line(&format!("  input       {} ({} bytes)", format_bytes(inspection.input_bytes), inspection.input_bytes))?;
        output.line(&format!("  stored      {} ({:.3} of the input)", format_bytes(inspection.bytes), inspection.ratio()))?;
        output.line(&format!("  set to      {:.3} of the input", inspection.size_set))?;
        if inspection.updates > 0 {
            output.line(&format!("  updates     {} that are not compressed yet", inspection.updates))?;
        }
        output.line("")?;
        let ratio = |bytes: u64| format!("{:.4}", bytes as f64 / inspection.input_bytes.max(1) as f64);
        let row = |part: &forebay_shard_store::PartInspection| {
            let rate = part.rate.map_or(String::new(), |rate| rate.to_string());
            vec![part.part.clone(), part.bytes.to_string(), ratio(part.bytes), rate, part.file.clone()]
        };
        let rows: Vec<Vec<String>> = inspection.parts.iter().map(row).collect();
        output.table(&["part", "bytes", "of input", "rate", "file"], &[1, 2, 3], &rows)
    })
}
