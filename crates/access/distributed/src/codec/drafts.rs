//! The writing of a statement's files, which the engine has no message for but its sink's own.

use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{AsExecutionPlan, PhysicalExtensionCodec};
use datafusion_proto::protobuf::PhysicalPlanNode;
use forebay_client::Client;
use forebay_sql::{DraftsTo, drafts_of, drafts_to_send};
use forebay_types::WorkerId;

use super::{external, of_two, two};

/// First bytes of the node as it is written. As [`two`], what is told of the drafts, as JSON, and the engine's message of the sink, over
/// nothing.
const MARK: &[u8] = b"forebay.drafts.";

/// A node of this file as it is written; none for any other.
pub(super) fn to_bytes(node: &Arc<dyn ExecutionPlan>, codec: &dyn PhysicalExtensionCodec) -> Result<Option<Vec<u8>>> {
    let Some((to, sink)) = drafts_to_send(node) else { return Ok(None) };
    let to = serde_json::to_vec(&to).map_err(|error| DataFusionError::External(Box::new(error)))?;
    let mut message = Vec::new();
    PhysicalPlanNode::try_from_physical_plan(sink, codec)?.try_encode(&mut message)?;
    two(MARK, &to, &message).ok_or_else(damaged).map(Some)
}

/// The node that was written, over its input; none where the bytes are of another one.
pub(super) fn of_bytes(
    bytes: &[u8],
    inputs: &[Arc<dyn ExecutionPlan>],
    context: &TaskContext,
    codec: &dyn PhysicalExtensionCodec,
    runs: Option<(Client, Option<WorkerId>)>,
) -> Option<Result<Arc<dyn ExecutionPlan>>> {
    let read = |rest| {
        let (to, sink) = parts(rest)?;
        let [input] = inputs else { return Err(damaged()) };
        let sink = sink.try_into_physical_plan(context, codec)?;
        drafts_of(to, sink, Arc::clone(input), runs).map_err(external)
    };
    bytes.strip_prefix(MARK).map(read)
}

/// What is told of the drafts, and the message of the sink, if they are what was written.
fn parts(written: &[u8]) -> Result<(DraftsTo, PhysicalPlanNode)> {
    let (to, sink) = of_two(written).ok_or_else(damaged)?;
    let to = serde_json::from_slice(to).map_err(|_| damaged())?;
    Ok((to, PhysicalPlanNode::try_decode(sink)?))
}

fn damaged() -> DataFusionError {
    DataFusionError::Internal("what writes a statement's files came damaged".to_string())
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::csv::WriterBuilder;
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::common::config::TableParquetOptions;
    use datafusion::common::file_options::csv_writer::CsvWriterOptions;
    use datafusion::common::file_options::json_writer::JsonWriterOptions;
    use datafusion::common::parsers::CompressionTypeVariant;
    use datafusion::datasource::file_format::csv::CsvSink;
    use datafusion::datasource::file_format::json::JsonSink;
    use datafusion::datasource::file_format::parquet::ParquetSink;
    use datafusion::datasource::listing::ListingTableUrl;
    use datafusion::datasource::physical_plan::{FileGroup, FileOutputMode, FileSinkConfig};
    use datafusion::datasource::sink::{DataSink, DataSinkExec};
    use datafusion::execution::object_store::ObjectStoreUrl;
    use datafusion::logical_expr::dml::InsertOp;
    use datafusion::physical_plan::displayable;
    use datafusion::physical_plan::empty::EmptyExec;
    use datafusion_proto::physical_plan::DefaultPhysicalProtoConverter;
    use forebay_sql::SinkOptions;
    use forebay_types::OperationId;

    use super::*;
    use crate::codec::Codec;

    fn schema() -> Arc<Schema> {
        Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true)]))
    }

    fn config(url: &str) -> FileSinkConfig {
        let target = ListingTableUrl::parse(url).unwrap();
        FileSinkConfig {
            original_url: String::new(),
            object_store_url: target.object_store(),
            file_group: FileGroup::new(Vec::new()),
            table_paths: vec![target],
            output_schema: schema(),
            table_partition_cols: Vec::new(),
            insert_op: InsertOp::Append,
            keep_partition_by_columns: false,
            file_extension: "csv".to_string(),
            file_output_mode: FileOutputMode::Automatic,
        }
    }

    fn written_by(sink: Arc<dyn DataSink>) -> Arc<dyn ExecutionPlan> {
        Arc::new(DataSinkExec::new(Arc::new(EmptyExec::new(schema())), sink, None))
    }

    fn csv_sink(url: &str, writes: WriterBuilder, compression_level: Option<u32>) -> Arc<dyn ExecutionPlan> {
        let compression = CompressionTypeVariant::GZIP;
        let options = CsvWriterOptions { writer_options: writes.with_header(true), compression, compression_level };
        written_by(Arc::new(CsvSink::new(config(url), options)))
    }

    fn sink(url: &str) -> Arc<dyn ExecutionPlan> {
        csv_sink(url, WriterBuilder::new(), None)
    }

    fn rows(partitions: usize) -> Arc<dyn ExecutionPlan> {
        Arc::new(EmptyExec::new(schema()).with_partitions(partitions))
    }

    fn to() -> DraftsTo {
        let open_at = vec![WorkerId(3), WorkerId(1 << 60)];
        DraftsTo { operation: OperationId(7), open_at, options: SinkOptions::default() }
    }

    fn node() -> Arc<dyn ExecutionPlan> {
        drafts_of(to(), sink("forebay:///lake/out/"), rows(3), None).unwrap()
    }

    /// A node as it arrives.
    fn arrived(sent: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        let message = PhysicalPlanNode::try_from_physical_plan(Arc::clone(sent), &Codec::default()).unwrap();
        message.try_into_physical_plan(&TaskContext::default(), &Codec::default()).unwrap()
    }

    #[test]
    fn what_writes_files_arrives_as_it_was_sent() {
        let sent = node();
        let got = arrived(&sent);
        let shown = |plan: &Arc<dyn ExecutionPlan>| displayable(plan.as_ref()).indent(true).to_string();
        assert_eq!(shown(&got), shown(&sent));
        let (to, written) = drafts_to_send(&got).unwrap();
        assert_eq!(to, drafts_to_send(&sent).unwrap().0);
        assert_eq!(written.schema(), sink("forebay:///lake/out/").schema());
        assert_eq!(got.properties().partitioning.partition_count(), 3, "each task writes what it has");
        assert!(got.execute(0, Arc::new(TaskContext::default())).is_err(), "nobody is there to write");
    }

    #[test]
    fn what_the_engine_s_message_of_a_sink_leaves_out_arrives_too() {
        let url = "forebay:///lake/out/";
        let formats = WriterBuilder::new().with_date_format("%d.%m.%Y".to_string()).with_timestamp_tz_format("%+".to_string());
        let json = JsonWriterOptions { compression: CompressionTypeVariant::GZIP, compression_level: Some(9) };
        let metadata = [("of".to_string(), Some("a test".to_string())), ("none".to_string(), None)].into();
        let parquet = TableParquetOptions { key_value_metadata: metadata, ..TableParquetOptions::default() };
        for sink in [
            csv_sink(url, WriterBuilder::new(), None),
            csv_sink(url, formats, Some(9)),
            written_by(Arc::new(JsonSink::new(config(url), json))),
            written_by(Arc::new(ParquetSink::new(config(url), parquet))),
        ] {
            let options = SinkOptions::of(&sink);
            let sent = drafts_of(DraftsTo { options: options.clone(), ..to() }, sink, rows(1), None).unwrap();
            let (told, written) = drafts_to_send(&arrived(&sent)).unwrap();
            assert_eq!((&told.options, &SinkOptions::of(&written)), (&options, &options));
        }
    }

    #[test]
    fn a_damaged_message_is_refused() {
        let codec = Codec::default();
        let bytes = to_bytes(&node(), &codec).unwrap().unwrap();
        let read = |bytes: &[u8], inputs: &[Arc<dyn ExecutionPlan>]| {
            codec.try_decode(bytes, inputs, &TaskContext::default(), &DefaultPhysicalProtoConverter {}).is_ok()
        };
        assert!(read(&bytes, &[rows(3)]) && !read(&bytes, &[]) && !read(&bytes, &[rows(1), rows(1)]));
        for length in MARK.len()..bytes.len() {
            assert!(!read(&bytes[..length], &[rows(3)]), "{length} bytes of {}", bytes.len());
        }
        for at in MARK.len()..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            assert!(!read(&flipped, &[rows(3)]), "byte {at} of {}", bytes.len());
        }
    }

    #[test]
    fn nothing_is_written_past_mounts() {
        assert!(drafts_of(to(), sink("file:///tmp/out/"), rows(1), None).is_err());
        assert!(drafts_of(to(), rows(1), rows(1), None).is_err(), "a node that writes nothing");
        assert_eq!(sink("forebay:///lake/out/").name(), "DataSinkExec");
        assert!(ObjectStoreUrl::parse("forebay:///").is_ok());
    }
}
