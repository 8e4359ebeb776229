//! Scans of compressed text files. The serialised form of a scan has no word for the compression of its files, so that a
//! scan read back would take compressed bytes for text; a node of our own above the scan carries it.

use std::str::FromStr;
use std::sync::Arc;

use datafusion::common::internal_err;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use forebay_sql::only_child;

/// First bytes of a [`CompressedScan`] as it is written; a byte with the length of the compression's name and the name
/// follow. No message of Ballista's own nodes begins so: it would be field 12 with a type that there is not.
const MARK: &[u8] = b"forebay.compressed.";

/// A plan with its scans of compressed files marked, so that it can be serialised.
pub(crate) fn marked(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        let scan = node.downcast_ref::<DataSourceExec>().and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>());
        Ok(match scan.map(|scan| scan.file_compression_type).filter(FileCompressionType::is_compressed) {
            Some(compression) => Transformed::yes(Arc::new(CompressedScan { scan: node, compression }) as Arc<dyn ExecutionPlan>),
            None => Transformed::no(node),
        })
    })
    .data()
}

/// Above a scan of compressed files. It does nothing of its own: where the plan is cut into tasks the scan below is seen and
/// given each task's files, and where it is read back the scan gets its compression again.
#[derive(Debug)]
struct CompressedScan {
    scan: Arc<dyn ExecutionPlan>,
    compression: FileCompressionType,
}

impl CompressedScan {
    /// As it is written.
    fn to_bytes(&self) -> Vec<u8> {
        let name = self.compression.get_variant().to_string();
        [MARK, &[name.len() as u8], name.as_bytes()].concat()
    }

    /// Over a scan that has lost its compression on the way.
    fn over(scan: &Arc<dyn ExecutionPlan>, compression: FileCompressionType) -> Result<Self> {
        let config = scan.downcast_ref::<DataSourceExec>().and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>());
        let Some(config) = config else { return internal_err!("a scan of compressed files is expected, found {}", scan.name()) };
        let config = FileScanConfigBuilder::from(config.clone()).with_file_compression_type(compression).build();
        Ok(Self { scan: DataSourceExec::from_data_source(config), compression })
    }
}

impl DisplayAs for CompressedScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CompressedScan: {}", self.compression.get_variant())
    }
}

impl ExecutionPlan for CompressedScan {
    fn name(&self) -> &str {
        "CompressedScan"
    }

    forebay_sql::as_its_input!(scan);

    /// It does, but a sort must not be moved between the two.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    /// Nothing is to come between the two.
    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self { scan: only_child(children)?, compression: self.compression }))
    }
}

/// A node of this file as it is written; none for any other.
pub(crate) fn to_bytes(node: &Arc<dyn ExecutionPlan>) -> Option<Vec<u8>> {
    node.downcast_ref::<CompressedScan>().map(CompressedScan::to_bytes)
}

/// The node that was written, over its input; none where the bytes are of another one.
pub(crate) fn of_bytes(bytes: &[u8], inputs: &[Arc<dyn ExecutionPlan>]) -> Option<Result<Arc<dyn ExecutionPlan>>> {
    let (length, rest) = bytes.strip_prefix(MARK).and_then(<[u8]>::split_first)?;
    let read = || {
        let (Some(name), [scan]) = (rest.get(..usize::from(*length)), inputs) else {
            return internal_err!("a scan of compressed files came cut off");
        };
        let compression = FileCompressionType::from_str(&String::from_utf8_lossy(name))?;
        Ok(Arc::new(CompressedScan::over(scan, compression)?) as Arc<dyn ExecutionPlan>)
    };
    Some(read())
}
