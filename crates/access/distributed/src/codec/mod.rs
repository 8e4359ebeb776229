//! Nodes of plans that only Forebay knows, on their way between processes.

use std::sync::Arc;

use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::common::internal_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{AsExecutionPlan, PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use datafusion_proto::protobuf::PhysicalPlanNode;
use forebay_client::Client;
use forebay_sql::{bare_scan, guarded_scan, shard_scan_of, shard_scan_to_bytes};
use forebay_trace::TraceContext;
use forebay_types::WorkerId;

use crate::{compressed, travel};

mod drafts;
mod tables;

/// First bytes of a scan of shards as it is written, as [`compressed`] has its own.
const SHARDS: &[u8] = b"forebay.shards.";

/// First bytes of a scan of files that are read under guard; the engine's own scan follows.
const GUARDED: &[u8] = b"forebay.guarded.";

/// Ballista's own with Forebay's nodes beside.
#[derive(Default)]
pub(crate) struct Codec {
    ballista: BallistaPhysicalExtensionCodec,
    /// Who asks in scans that are read; none where nodes are only written.
    client: Option<Client>,
    /// The worker beside, which gets what is written.
    near: Option<WorkerId>,
}

impl Codec {
    /// One that reads nodes too.
    pub(crate) fn of(client: Client) -> Self {
        Self { client: Some(client), ..Self::default() }
    }

    /// The same of who runs them, beside a worker.
    pub(crate) fn beside(client: Client, near: Option<WorkerId>) -> Self {
        Self { near, ..Self::of(client) }
    }
}

impl std::fmt::Debug for Codec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Codec")
    }
}

impl PhysicalExtensionCodec for Codec {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if let Some(scan) = bytes.strip_prefix(SHARDS) {
            let Some(client) = &self.client else { return internal_err!("a scan of shards came to who reads none") };
            return shard_scan_of(scan, client, trace_of(context)).map_err(external);
        }
        if let Some(scan) = bytes.strip_prefix(GUARDED) {
            let scan = PhysicalPlanNode::try_decode(scan)?.try_into_physical_plan(context, self)?;
            return Ok(guarded_scan(scan, context));
        }
        let runs = self.client.clone().map(|client| (client, self.near));
        if let Some(writes) = drafts::of_bytes(bytes, inputs, context, self, runs) {
            return writes;
        }
        if let Some(scan) = tables::of_bytes(bytes, context, self, converter) {
            return scan;
        }
        let ballistas = || self.ballista.try_decode(bytes, inputs, context, converter);
        compressed::of_bytes(bytes, inputs).unwrap_or_else(ballistas)
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        bytes: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        if let Some(scan) = shard_scan_to_bytes(&node).map_err(external)? {
            bytes.extend_from_slice(SHARDS);
            bytes.extend_from_slice(&scan);
            return Ok(());
        }
        if let Some(scan) = bare_scan(&node) {
            bytes.extend_from_slice(GUARDED);
            return PhysicalPlanNode::try_from_physical_plan(scan, self)?.try_encode(bytes);
        }
        if let Some(scan) = tables::to_bytes(&node, self, converter)? {
            bytes.extend_from_slice(&scan);
            return Ok(());
        }
        if let Some(writes) = drafts::to_bytes(&node, self)? {
            bytes.extend_from_slice(&writes);
            return Ok(());
        }
        match compressed::to_bytes(&node) {
            Some(written) => {
                bytes.extend_from_slice(&written);
                Ok(())
            }
            None => self.ballista.try_encode(node, bytes, converter),
        }
    }
}

/// Where in a trace the query of a task is.
fn trace_of(context: &TaskContext) -> Option<TraceContext> {
    if !forebay_trace::is_on() {
        return None;
    }
    travel::ticket(context.session_config()).ok().flatten()?.trace
}

fn external(error: forebay_types::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Two messages, as a node is written: its first bytes; little-endian, a CRC-32C of all that comes then, and the length of the one message;
/// that one, and the other. None where it is too long.
fn two(mark: &[u8], one: &[u8], other: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(one.len()).ok()?;
    let told = [length.to_le_bytes().as_slice(), one, other].concat();
    let written = [mark, forebay_types::crc32c(&told).to_le_bytes().as_slice(), told.as_slice()].concat();
    debug_assert!(of_two(&written[mark.len()..]) == Some((one, other)), "what is written is read as it was");
    Some(written)
}

/// The two, of what comes after the first bytes, if they are what was written.
fn of_two(written: &[u8]) -> Option<(&[u8], &[u8])> {
    let (sum, told) = written.split_first_chunk::<4>()?;
    let (length, messages) = told.split_first_chunk::<4>()?;
    let is_whole = forebay_types::crc32c(told) == u32::from_le_bytes(*sum);
    messages.split_at_checked(u32::from_le_bytes(*length) as usize).filter(|_| is_whole)
}
