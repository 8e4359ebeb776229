//! `forebay table convert`: hands files to the engine's conversion, with rows in their order and types as they are.

use std::sync::Arc;
use std::time::Duration;

use forebay_sql::{Conversion, ConversionProgress, EngineSettings};
use forebay_types::format_bytes;
use serde_json::json;

use super::engine::engine;
use crate::cli::{TableConvertArgs, TableLayout};
use crate::config::Config;
use crate::exit::{Failure, Outcome};
use crate::output::show;
use crate::progress;

pub(super) async fn run(config: &Config, args: &TableConvertArgs) -> Outcome {
    let Some((output, inputs)) = args.paths.split_last() else { unreachable!("there are at least two paths") };
    let mut options = Vec::new();
    if !args.groups.is_empty() {
        options.push(("format.groups".to_string(), args.groups.join(";")));
    }
    if !args.bloom_filters.is_empty() {
        options.push(("format.bloom_filters".to_string(), args.bloom_filters.join(",")));
    }
    if let Some(rows) = args.row_group_rows {
        options.push(("format.row_group_rows".to_string(), rows.to_string()));
    }
    if let Some(layout) = args.layout {
        let name = match layout {
            TableLayout::Aligned => "aligned",
            TableLayout::Packed => "packed",
        };
        options.push(("format.layout".to_string(), name.to_string()));
    }
    if !options.is_empty() && !output.ends_with(".albis") {
        return Err(Failure::Usage(format!(
            "--group, --bloom-filter, --row-group-rows and --layout are for tables: write to a name that ends with .albis instead of \
             {output}"
        )));
    }
    // One partition keeps the rows in their order; the prefetch still reads ahead of it.
    let settings = EngineSettings { target_partitions: Some(1), ..Default::default() };
    let paths = args.paths.iter().map(String::as_str).collect::<Vec<_>>();
    let engine = engine(config, settings, &paths).await?;
    // The types of the files, not those that the engine reads them as.
    engine.execute("set datafusion.execution.parquet.schema_force_view_types = false").await?;

    let started = forebay_runtime::now();
    let conversion = Conversion { inputs: inputs.to_vec(), output: output.clone(), options };
    let reached = Arc::new(ConversionProgress::default());
    let bar = progress::spinner(output);
    let work = engine.convert(&conversion, Arc::clone(&reached));
    tokio::pin!(work);
    let done = loop {
        tokio::select! {
            done = &mut work => break done,
            () = forebay_runtime::time::sleep(Duration::from_millis(200)) => {
                bar.set_message(format!("{output}: {} rows, {} read", reached.rows(), format_bytes(reached.bytes_read())));
            }
        }
    };
    bar.finish_and_clear();
    let rows = done?;
    let seconds = started.elapsed().as_secs_f64();
    let bytes_read = reached.bytes_read();
    let record = json!({"output": output, "inputs": inputs, "rows": rows, "bytes_read": bytes_read, "seconds": seconds});
    show(args.json, &record, |out| out.line(&format!("{output}: {rows} rows, {} read, {seconds:.1} s", format_bytes(bytes_read))))
}
