//! `forebay shard build`: a shard on this machine from a file of records or of flat text.

use forebay_shard_store::Store;
use forebay_types::{Error, format_bytes};
use serde_json::json;

use super::tell_of_repeated;
use crate::cli::ShardBuildArgs;
use crate::exit::Outcome;
use crate::output::show;
use crate::progress;
use crate::records::{self, Wanted};

pub(super) fn run(args: &ShardBuildArgs) -> Outcome {
    Store::free_for(&args.out, args.force)?;
    // Of flat text there are no records.
    let mut read = None;
    match (&args.text, &args.input, &args.key) {
        (Some(text), ..) => {
            let bar = progress::spinner("building");
            Store::build_text(&args.out, text, args.size)?;
            bar.finish_and_clear();
        }
        (None, Some(path), Some(key)) => {
            let input = records::open(path, &Wanted { key, columns: args.columns.as_deref(), in_paths: &[], like: None })?;
            let bar = progress::bytes("reading", input.bytes);
            let mut building = Store::build(&args.out, input.columns, args.size)?;
            for piece in input.records {
                let piece = piece.map_err(|error| error.context(path.display()))?;
                for (key, values) in piece.records {
                    building.push(key, values)?;
                    *read.get_or_insert(0_u64) += 1;
                }
                bar.inc(piece.bytes);
            }
            bar.finish_and_clear();
            let bar = progress::spinner("building");
            building.finish()?;
            bar.finish_and_clear();
        }
        _ => return Err(Error::invalid("say what to build from: a file of records with --key, or --text").into()),
    }
    let inspection = Store::open(&args.out)?.inspect()?;
    let (shard, records, size) = (args.out.display().to_string(), inspection.records, inspection.ratio());
    let (bytes, input_bytes) = (inspection.bytes, inspection.input_bytes);
    tell_of_repeated(read.unwrap_or(0), records);
    let record =
        json!({"shard": shard, "read": read, "records": records, "input_bytes": input_bytes, "bytes": bytes, "size": size});
    show(args.json, &record, |output| {
        let what = if args.text.is_some() { String::new() } else { format!("{records} records, ") };
        let (bytes, input) = (format_bytes(bytes), format_bytes(input_bytes));
        output.line(&format!("{shard}: {what}{bytes}, {size:.3} of the input's {input}"))
    })
}
