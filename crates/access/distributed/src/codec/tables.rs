//! Scans of table files (`.albis`), whose source the engine has no message for.

use std::sync::Arc;

use datafusion::common::internal_err;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::from_proto::{parse_protobuf_file_scan_config, parse_table_schema_from_proto};
use datafusion_proto::physical_plan::to_proto::serialize_file_scan_config;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalPlanDecodeContext, PhysicalProtoConverterExtension};
use datafusion_proto::protobuf::{FileScanExecConf, PhysicalExprNode};
use forebay_sql::{table_scan, table_source};
use prost::Message;

use super::{of_two, two};

/// First bytes of a scan as it is written. As [`two`], the engine's message of what all scans of files have, and that of what rows have to
/// meet, if they have to. Cut off, the last would be missed by nobody: every row would pass.
const MARK: &[u8] = b"forebay.tables.";

/// A node of this file as it is written; none for any other.
pub(super) fn to_bytes(
    node: &Arc<dyn ExecutionPlan>,
    codec: &dyn PhysicalExtensionCodec,
    converter: &dyn PhysicalProtoConverterExtension,
) -> Result<Option<Vec<u8>>> {
    let Some(scan) = table_scan(node) else { return Ok(None) };
    let files = serialize_file_scan_config(scan.files, codec, converter)?;
    let filter = scan.filter.map(|filter| converter.physical_expr_to_proto(filter, codec)).transpose()?;
    written(&files, filter.as_ref()).map(Some)
}

fn written(files: &FileScanExecConf, filter: Option<&PhysicalExprNode>) -> Result<Vec<u8>> {
    let filter = filter.map(Message::encode_to_vec).unwrap_or_default();
    let Some(written) = two(MARK, &files.encode_to_vec(), &filter) else {
        return internal_err!("a scan of too many files to be sent");
    };
    Ok(written)
}

/// The node that was written; none where the bytes are of another one.
pub(super) fn of_bytes(
    bytes: &[u8],
    context: &TaskContext,
    codec: &dyn PhysicalExtensionCodec,
    converter: &dyn PhysicalProtoConverterExtension,
) -> Option<Result<Arc<dyn ExecutionPlan>>> {
    bytes.strip_prefix(MARK).map(|rest| read(rest, context, codec, converter))
}

fn read(
    written: &[u8],
    context: &TaskContext,
    codec: &dyn PhysicalExtensionCodec,
    converter: &dyn PhysicalProtoConverterExtension,
) -> Result<Arc<dyn ExecutionPlan>> {
    let (files, filter) = parts(written)?;
    let decoding = PhysicalPlanDecodeContext::new(context, codec);
    let schema = parse_table_schema_from_proto(&files)?;
    let columns = schema.table_schema().fields().len();
    let expression = |written: &PhysicalExprNode| -> Result<Arc<dyn PhysicalExpr>> {
        let read = converter.proto_to_physical_expr(written, schema.table_schema(), &decoding)?;
        if is_of(&read, columns) { Ok(read) } else { Err(damaged()) }
    };
    let filter = filter.as_ref().map(expression).transpose()?;
    for projected in files.projection_exprs.iter().flat_map(|all| &all.projections) {
        expression(projected.expr.as_ref().ok_or_else(damaged)?)?;
    }
    let values = schema.table_partition_cols().len();
    if files.file_groups.iter().flat_map(|group| &group.files).any(|file| file.partition_values.len() != values) {
        return Err(damaged());
    }
    let source = table_source(schema.clone(), filter, context)?;
    let scan = parse_protobuf_file_scan_config(&files, &decoding, converter, source)?;
    if !scan.output_ordering.iter().flatten().all(|sorted| is_of(&sorted.expr, columns)) {
        return Err(damaged());
    }
    Ok(DataSourceExec::from_data_source(scan))
}

/// The two messages of a scan, if they are what was written.
fn parts(written: &[u8]) -> Result<(FileScanExecConf, Option<PhysicalExprNode>)> {
    let (files, filter) = of_two(written).ok_or_else(damaged)?;
    let files = FileScanExecConf::decode(files).map_err(|_| damaged())?;
    let filter = (!filter.is_empty()).then(|| PhysicalExprNode::decode(filter).map_err(|_| damaged())).transpose()?;
    Ok((files, filter))
}

/// Whether an expression is of columns that are there.
fn is_of(expression: &Arc<dyn PhysicalExpr>, columns: usize) -> bool {
    collect_columns(expression).iter().all(|column| column.index() < columns)
}

fn damaged() -> DataFusionError {
    DataFusionError::Internal("a scan of table files came damaged".to_string())
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::common::ScalarValue;
    use datafusion::datasource::listing::PartitionedFile;
    use datafusion::datasource::physical_plan::FileScanConfigBuilder;
    use datafusion::datasource::table_schema::TableSchema;
    use datafusion::execution::object_store::ObjectStoreUrl;
    use datafusion::logical_expr::Operator;
    use datafusion::physical_expr::expressions::{BinaryExpr, Column, lit};
    use datafusion::physical_expr::projection::ProjectionExprs;
    use datafusion::physical_plan::displayable;
    use datafusion_proto::physical_plan::{AsExecutionPlan, DefaultPhysicalProtoConverter};
    use datafusion_proto::protobuf::PhysicalPlanNode;

    use super::*;
    use crate::codec::Codec;

    fn column(name: &str, index: usize) -> Arc<dyn PhysicalExpr> {
        Arc::new(Column::new(name, index))
    }

    fn above_five(of: Arc<dyn PhysicalExpr>) -> Arc<dyn PhysicalExpr> {
        Arc::new(BinaryExpr::new(of, Operator::Gt, lit(5i64)))
    }

    /// A part of one file: of its columns `id` and `x` the second one, and the year of its folder.
    fn scan() -> Arc<dyn ExecutionPlan> {
        let schema = Schema::new(vec![Field::new("id", DataType::Int64, true), Field::new("x", DataType::Float64, true)]);
        let year = vec![Arc::new(Field::new("year", DataType::Int64, false))];
        let schema = TableSchema::builder(Arc::new(schema)).with_table_partition_cols(year).build();
        let projection = ProjectionExprs::from_indices(&[1, 2], schema.table_schema());
        let source = table_source(schema, Some(above_five(column("id", 0))), &TaskContext::default()).unwrap();
        let source = source.try_pushdown_projection(&projection).unwrap().unwrap();
        let file = PartitionedFile::new("lake/year=7/a.albis", 1000).with_range(100, 500);
        let file = file.with_partition_values(vec![ScalarValue::Int64(Some(7))]);
        let store = ObjectStoreUrl::parse("forebay://lake").unwrap();
        let config = FileScanConfigBuilder::new(store, source).with_file(file).with_limit(Some(9)).build();
        DataSourceExec::from_data_source(config)
    }

    fn read(bytes: &[u8]) -> Result<Arc<dyn ExecutionPlan>> {
        Codec::default().try_decode(bytes, &[], &TaskContext::default(), &DefaultPhysicalProtoConverter {})
    }

    #[test]
    fn a_scan_arrives_as_it_was_sent() {
        let sent = scan();
        let node = PhysicalPlanNode::try_from_physical_plan(Arc::clone(&sent), &Codec::default()).unwrap();
        let got = node.try_into_physical_plan(&TaskContext::default(), &Codec::default()).unwrap();
        let shown = |plan: &Arc<dyn ExecutionPlan>| displayable(plan.as_ref()).indent(true).to_string();
        assert_eq!(shown(&got), shown(&sent));
        for part in ["a.albis:100..500", "projection=[x, year]", "limit=9", "file_type=albis", "predicate=id@0 > 5"] {
            assert!(shown(&got).contains(part), "{part}: {}", shown(&got));
        }
        assert_eq!(got.schema(), sent.schema());
        let filter = |plan| table_scan(plan).unwrap().filter.map(ToString::to_string);
        assert_eq!(filter(&got), Some("id@0 > 5".to_string()));
        let files = |plan| table_scan(plan).unwrap().files.file_groups.clone();
        let only = |plan| files(plan).remove(0).into_inner().remove(0);
        assert_eq!(only(&got).partition_values, only(&sent).partition_values);
    }

    #[test]
    fn a_damaged_message_is_refused() {
        let codec = Codec::default();
        let bytes = to_bytes(&scan(), &codec, &DefaultPhysicalProtoConverter {}).unwrap().unwrap();
        assert!(read(&bytes).is_ok());
        for length in MARK.len()..bytes.len() {
            assert!(read(&bytes[..length]).is_err(), "{length} bytes of {}", bytes.len());
        }
        for at in MARK.len()..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            assert!(read(&flipped).is_err(), "byte {at} of {}", bytes.len());
        }
    }

    #[test]
    fn what_no_scan_can_be_is_refused_though_it_came_whole() {
        let (codec, converter) = (Codec::default(), DefaultPhysicalProtoConverter {});
        let scan = scan();
        let files = serialize_file_scan_config(table_scan(&scan).unwrap().files, &codec, &converter).unwrap();
        let sent = |expression: &Arc<dyn PhysicalExpr>| converter.physical_expr_to_proto(expression, &codec).unwrap();
        let is_read =
            |files: &FileScanExecConf, filter: Option<&PhysicalExprNode>| read(&written(files, filter).unwrap()).is_ok();
        assert!(is_read(&files, None) && is_read(&files, Some(&sent(&above_five(column("id", 0))))));
        for (filter, why) in [
            (column("id", 0), "no condition"),
            (above_five(column("id", 9)), "a column that is not there"),
            (above_five(column("year", 2)), "no column of the files"),
        ] {
            assert!(!is_read(&files, Some(&sent(&filter))), "{why}");
        }
        let changed = |change: &dyn Fn(&mut FileScanExecConf)| {
            let mut files = files.clone();
            change(&mut files);
            is_read(&files, None)
        };
        assert!(!changed(&|files| files.schema = None));
        assert!(!changed(&|files| files.file_groups[0].files[0].partition_values.clear()));
        let beyond = sent(&column("x", 3));
        assert!(!changed(&|files| files.projection_exprs.as_mut().unwrap().projections[0].expr = Some(beyond.clone())));
    }
}
