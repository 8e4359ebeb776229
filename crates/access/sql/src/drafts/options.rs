//! Of how files are written what the engine's message of a sink does not say, or says otherwise.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::csv::WriterBuilder;
use datafusion::common::config::TableParquetOptions;
use datafusion::common::file_options::csv_writer::CsvWriterOptions;
use datafusion::common::file_options::json_writer::JsonWriterOptions;
use datafusion::common::parsers::CompressionTypeVariant;
use datafusion::datasource::file_format::csv::CsvSink;
use datafusion::datasource::file_format::json::JsonSink;
use datafusion::datasource::file_format::parquet::ParquetSink;
use datafusion::datasource::physical_plan::{FileSink, FileSinkConfig};
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::physical_plan::ExecutionPlan;
use forebay_types::{Error, Result};
use serde::{Deserialize, Serialize};

use super::sink::config_of;
use crate::albis::{TableFiles, TableSink};
use crate::sinks::{ArrowFiles, ArrowSink};

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
    /// What the message stands for, where the engine has none.
    #[serde(default)]
    ours: Option<Ours>,
}

/// Kinds of files that the engine has no message for. One of JSON goes in its place, of the same files and columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Ours {
    /// Table files, with the statement's options.
    Table(BTreeMap<String, String>),
    /// Arrow files.
    Arrow,
}

impl Ours {
    fn of(sink: &dyn DataSink) -> Option<Self> {
        if let Some(sink) = sink.downcast_ref::<TableSink>() {
            return Some(Self::Table(sink.files.said.clone()));
        }
        sink.downcast_ref::<ArrowSink>().map(|_| Self::Arrow)
    }

    fn sink(&self, config: FileSinkConfig) -> Result<Arc<dyn DataSink>> {
        let sink: Arc<dyn DataSink> = match self {
            Self::Table(said) => Arc::new(TableSink::new(config, TableFiles::new(said.clone())?)),
            Self::Arrow => Arc::new(ArrowSink::new(config, ArrowFiles)),
        };
        Ok(sink)
    }
}

impl SinkOptions {
    /// Those of a plan that writes files.
    pub fn of(plan: &Arc<dyn ExecutionPlan>) -> Self {
        let Some(writes) = plan.downcast_ref::<DataSinkExec>() else { return Self::default() };
        let sink = writes.sink();
        if let Some(ours) = Ours::of(sink) {
            return Self { ours: Some(ours), ..Self::default() };
        }
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

    /// A plan that writes files, as the engine has a message for it.
    pub(super) fn in_message(plan: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        let Some(writes) = plan.downcast_ref::<DataSinkExec>() else { return Arc::clone(plan) };
        let config = Ours::of(writes.sink()).and_then(|_| config_of(writes.sink()));
        let Some(config) = config.cloned() else { return Arc::clone(plan) };
        let stands_for_it = JsonSink::new(config, JsonWriterOptions::new(CompressionTypeVariant::UNCOMPRESSED));
        Arc::new(DataSinkExec::new(Arc::clone(writes.input()), Arc::new(stands_for_it), writes.sort_order().clone()))
    }

    /// The plan that was sent, by what its message has come to.
    ///
    /// # Errors
    /// Options of a table file that there are not, and another sink in the place of such files' than one of JSON.
    pub(super) fn put_into(self, plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(writes) = plan.downcast_ref::<DataSinkExec>() else { return Ok(Arc::clone(plan)) };
        let sink = match (self.ours.clone(), writes.sink().downcast_ref::<JsonSink>()) {
            (Some(ours), Some(stands_for_it)) => Some(ours.sink(FileSink::config(stands_for_it).clone())?),
            (Some(_), None) => return Err(Error::internal("a sink of table or Arrow files came as another one")),
            (None, _) => self.sink_like(writes.sink()),
        };
        let Some(sink) = sink else { return Ok(Arc::clone(plan)) };
        Ok(Arc::new(DataSinkExec::new(Arc::clone(writes.input()), sink, writes.sort_order().clone())))
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
        formats.fold(csv, |csv, (format, set)| if let Some(format) = format { set(csv, format) } else { csv })
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::datasource::listing::ListingTableUrl;
    use datafusion::datasource::physical_plan::{FileGroup, FileOutputMode};
    use datafusion::logical_expr::dml::InsertOp;
    use datafusion::physical_plan::empty::EmptyExec;

    use super::*;

    fn config(extension: &str) -> FileSinkConfig {
        let target = ListingTableUrl::parse("forebay:///lake/out/").unwrap();
        FileSinkConfig {
            original_url: String::new(),
            object_store_url: target.object_store(),
            file_group: FileGroup::new(Vec::new()),
            table_paths: vec![target],
            output_schema: Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true)])),
            table_partition_cols: Vec::new(),
            insert_op: InsertOp::Append,
            keep_partition_by_columns: false,
            file_extension: extension.to_string(),
            file_output_mode: FileOutputMode::Automatic,
        }
    }

    fn writes(sink: Arc<dyn DataSink>) -> Arc<dyn ExecutionPlan> {
        let rows = Arc::new(EmptyExec::new(Arc::clone(sink.schema())));
        Arc::new(DataSinkExec::new(rows, sink, None))
    }

    #[test]
    fn what_the_engine_has_no_message_for_is_put_back_as_it_was() {
        let said: BTreeMap<String, String> = [("format.groups".to_string(), "id; *".to_string())].into();
        for (extension, plan) in [
            ("albis", writes(Arc::new(TableSink::new(config("albis"), TableFiles::new(said.clone()).unwrap())))),
            ("arrow", writes(Arc::new(ArrowSink::new(config("arrow"), ArrowFiles)))),
        ] {
            let (options, message) = (SinkOptions::of(&plan), SinkOptions::in_message(&plan));
            assert!(message.downcast_ref::<DataSinkExec>().unwrap().sink().downcast_ref::<JsonSink>().is_some(), "{extension}");
            assert_ne!(SinkOptions::of(&message), options, "{extension}");
            let sent: SinkOptions = serde_json::from_str(&serde_json::to_string(&options).unwrap()).unwrap();
            let back = sent.clone().put_into(&message).unwrap();
            assert_eq!(SinkOptions::of(&back), options, "{extension}");
            let to = config_of(back.downcast_ref::<DataSinkExec>().unwrap().sink()).unwrap();
            assert_eq!(to.file_extension, extension);
            assert!(sent.put_into(&plan).is_err(), "{extension}: in the place of another sink");
        }
        let unknown = [("format.colour".to_string(), "red".to_string())].into();
        let options = SinkOptions { ours: Some(Ours::Table(unknown)), ..SinkOptions::default() };
        assert!(
            options.put_into(&SinkOptions::in_message(&writes(Arc::new(ArrowSink::new(config("arrow"), ArrowFiles))))).is_err()
        );
    }
}
