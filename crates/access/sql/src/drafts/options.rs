//! Of how files are written what the engine's message of a sink does not say, or says otherwise.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::csv::WriterBuilder;
use datafusion::common::config::TableParquetOptions;
use datafusion::common::file_options::csv_writer::CsvWriterOptions;
use datafusion::datasource::file_format::csv::CsvSink;
use datafusion::datasource::file_format::json::JsonSink;
use datafusion::datasource::file_format::parquet::ParquetSink;
use datafusion::datasource::physical_plan::FileSink;
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::physical_plan::ExecutionPlan;
use serde::{Deserialize, Serialize};

/// Options of a sink that go beside its message. That of a CSV sink says an empty format where there is none, by which dates and times
/// come out empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkOptions {
    /// Formats of dates, dates with times, times, timestamps and timestamps with a zone in CSV.
    formats: [Option<String>; 5],
    /// How hard files of CSV and JSON are compressed.
    level: Option<u32>,
    /// What Parquet files say of themselves.
    metadata: BTreeMap<String, Option<String>>,
}

impl SinkOptions {
    /// Those of a plan that writes files.
    pub fn of(plan: &Arc<dyn ExecutionPlan>) -> Self {
        let Some(writes) = plan.downcast_ref::<DataSinkExec>() else { return Self::default() };
        let sink = writes.sink();
        if let Some(sink) = sink.downcast_ref::<CsvSink>() {
            let options = sink.writer_options();
            let csv = &options.writer_options;
            let formats =
                [csv.date_format(), csv.datetime_format(), csv.time_format(), csv.timestamp_format(), csv.timestamp_tz_format()];
            let formats = formats.map(|format| format.map(str::to_string));
            return Self { formats, level: options.compression_level, ..Self::default() };
        }
        if let Some(sink) = sink.downcast_ref::<JsonSink>() {
            return Self { level: sink.writer_options().compression_level, ..Self::default() };
        }
        let Some(sink) = sink.downcast_ref::<ParquetSink>() else { return Self::default() };
        let told = sink.parquet_options().key_value_metadata.iter();
        Self { metadata: told.map(|(key, value)| (key.clone(), value.clone())).collect(), ..Self::default() }
    }

    /// The plan that was sent, by what its message has come to.
    pub(super) fn put_into(self, plan: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        let Some(writes) = plan.downcast_ref::<DataSinkExec>() else { return Arc::clone(plan) };
        let Some(sink) = self.sink_like(writes.sink()) else { return Arc::clone(plan) };
        Arc::new(DataSinkExec::new(Arc::clone(writes.input()), sink, writes.sort_order().clone()))
    }

    fn sink_like(self, sink: &dyn DataSink) -> Option<Arc<dyn DataSink>> {
        if let Some(sink) = sink.downcast_ref::<CsvSink>() {
            let told = sink.writer_options();
            let (compression, compression_level) = (told.compression, self.level);
            let options =
                CsvWriterOptions { writer_options: self.csv_like(&told.writer_options), compression, compression_level };
            return Some(Arc::new(CsvSink::new(FileSink::config(sink).clone(), options)));
        }
        if let Some(sink) = sink.downcast_ref::<JsonSink>() {
            let mut options = sink.writer_options().clone();
            options.compression_level = self.level;
            return Some(Arc::new(JsonSink::new(FileSink::config(sink).clone(), options)));
        }
        let sink = sink.downcast_ref::<ParquetSink>()?;
        let key_value_metadata = self.metadata.into_iter().collect();
        let options = TableParquetOptions { key_value_metadata, ..sink.parquet_options().clone() };
        Some(Arc::new(ParquetSink::new(FileSink::config(sink).clone(), options)))
    }

    /// A format that was set can't be taken away again, so that all of the rest is said once more.
    fn csv_like(self, told: &WriterBuilder) -> WriterBuilder {
        let csv = WriterBuilder::new()
            .with_header(told.header())
            .with_delimiter(told.delimiter())
            .with_quote(told.quote())
            .with_escape(told.escape())
            .with_double_quote(told.double_quote())
            .with_null(told.null().to_string())
            .with_quote_style(told.quote_style())
            .with_ignore_leading_whitespace(told.ignore_leading_whitespace())
            .with_ignore_trailing_whitespace(told.ignore_trailing_whitespace());
        let set: [fn(WriterBuilder, String) -> WriterBuilder; 5] = [
            WriterBuilder::with_date_format,
            WriterBuilder::with_datetime_format,
            WriterBuilder::with_time_format,
            WriterBuilder::with_timestamp_format,
            WriterBuilder::with_timestamp_tz_format,
        ];
        let formats = self.formats.into_iter().zip(set);
        formats.fold(csv, |csv, (format, set)| match format {
            Some(format) => set(csv, format),
            None => csv,
        })
    }
}
