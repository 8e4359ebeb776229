//! Which statements' files executors can write.

use std::sync::Arc;

use datafusion::datasource::file_format::csv::CsvSink;
use datafusion::datasource::file_format::json::JsonSink;
use datafusion::datasource::file_format::parquet::ParquetSink;
use datafusion::datasource::physical_plan::{FileSink, FileSinkConfig};
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::physical_plan::ExecutionPlan;
use forebay_types::{Error, ForebayPath, Key, Result};

use crate::albis::TableSink;
use crate::location::{SCHEME, is_temporary};
use crate::sinks::ArrowSink;

/// Why this process alone can write what a plan's sink is to write; none where executors can.
pub(crate) fn keeps(plan: &Arc<dyn ExecutionPlan>) -> Option<String> {
    let Some(writes) = plan.downcast_ref::<DataSinkExec>() else { return Some("it writes no files".to_string()) };
    match config_of(writes.sink()) {
        None => Some(
            "what it writes is written by this process: executors write Parquet, CSV, JSON, Arrow and table files".to_string(),
        ),
        Some(config) if !config.object_store_url.as_str().starts_with(SCHEME) || config.table_paths.is_empty() => {
            Some("what it writes is below no mount".to_string())
        }
        // Who asked would have nothing to commit: only objects of mounts have drafts that another process makes visible.
        Some(config) if config.table_paths.iter().any(|target| is_temporary(target.prefix())) => {
            Some("what it writes is temporary data, which this process alone writes".to_string())
        }
        Some(_) => None,
    }
}

/// How files are written, of those formats that executors can be told of.
pub(super) fn config_of(sink: &dyn DataSink) -> Option<&FileSinkConfig> {
    if let Some(sink) = sink.downcast_ref::<ParquetSink>() {
        return Some(FileSink::config(sink));
    }
    if let Some(sink) = sink.downcast_ref::<CsvSink>() {
        return Some(FileSink::config(sink));
    }
    if let Some(sink) = sink.downcast_ref::<TableSink>() {
        return Some(FileSink::config(sink));
    }
    if let Some(sink) = sink.downcast_ref::<ArrowSink>() {
        return Some(FileSink::config(sink));
    }
    sink.downcast_ref::<JsonSink>().map(FileSink::config)
}

/// Whether all rows go to one file, whose name the statement says.
pub(super) fn is_single(config: &FileSinkConfig) -> bool {
    let target = config.table_paths.first();
    config.table_partition_cols.is_empty() && target.is_some_and(|target| config.file_output_mode.single_file_output(target))
}

/// What the keys of all files start with.
pub(super) fn below(config: &FileSinkConfig, single: bool) -> Result<ForebayPath> {
    let Some(target) = config.table_paths.first() else { return Err(Error::internal("a statement writes nowhere")) };
    let target = target.prefix().as_ref();
    let (mount, key) = target.split_once('/').unwrap_or((target, ""));
    let key = if single || key.is_empty() { key.to_string() } else { format!("{key}/") };
    Ok(ForebayPath::new(mount.parse()?, Key::new(key)?))
}
