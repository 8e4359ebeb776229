//! Scans of datasets on their way to other processes.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use forebay_client::{Client, DatasetId};
use forebay_shard_store::{Condition, Dataset, Literal};
use forebay_shards::Shards;
use forebay_trace::TraceContext;
use forebay_types::{Error, ForebayPath, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::conditions::Asked;
use super::records::schema_of;
use super::scan::ShardScan;

/// The manifest goes along: all tasks read the same records, whatever is written meanwhile.
#[derive(Serialize, Deserialize)]
struct Written {
    path: ForebayPath,
    id: DatasetId,
    dataset: Dataset,
    keys: Option<Vec<Json>>,
    conditions: Vec<Json>,
    /// Places of the columns.
    columns: Vec<usize>,
    limit: Option<usize>,
    /// The shards that are asked; none where keys say it.
    #[serde(default)]
    places: Option<Vec<usize>>,
}

/// A scan of a dataset as bytes; none for any other node.
pub fn shard_scan_to_bytes(node: &Arc<dyn ExecutionPlan>) -> Result<Option<Vec<u8>>> {
    let Some(scan) = node.downcast_ref::<ShardScan>() else { return Ok(None) };
    let (shards, asked) = (&scan.shards, &scan.asked);
    let columns = shards.columns();
    let written = Written {
        path: shards.path().clone(),
        id: shards.id().clone(),
        dataset: shards.dataset().clone(),
        keys: asked.keys.as_ref().map(|keys| keys.iter().map(|key| columns.key_json(key)).collect()),
        conditions: asked.conditions.iter().map(Condition::to_json).collect(),
        columns: scan.schema.fields().iter().map(|field| columns.place(field.name())).collect::<Result<_>>()?,
        limit: scan.limit,
        places: asked.keys.is_none().then(|| scan.places.to_vec()),
    };
    serde_json::to_vec(&written).map(Some).map_err(|error| Error::internal(error.to_string()))
}

/// The scan again, which asks by `client`, of a query that is there in a trace.
pub fn shard_scan_of(bytes: &[u8], client: &Client, trace: Option<TraceContext>) -> Result<Arc<dyn ExecutionPlan>> {
    let written: Written =
        serde_json::from_slice(bytes).map_err(|error| Error::corrupt(format!("a scan of shards can't be read: {error}")))?;
    // Who sends it may be anyone of the cluster.
    Dataset::check_shape(written.dataset.shards.len(), &written.dataset.replicas)?;
    written.dataset.map().check(written.dataset.shards.len(), written.dataset.columns.key_type())?;
    let shards = Shards::at(client, written.path, written.id, written.dataset);
    let columns = shards.columns();
    let key = |key: &Json| columns.key_of(&Literal::from_json(key)?);
    let asked = Asked {
        keys: written.keys.map(|keys| keys.iter().map(key).collect::<Result<_>>()).transpose()?,
        conditions: written.conditions.iter().map(Condition::from_json).collect::<Result<_>>()?,
        ranges: None,
    };
    let schema = schema_of(columns).project(&written.columns).map_err(|error| Error::corrupt(error.to_string()))?;
    let scan = match written.places {
        None => ShardScan::new(shards, asked, Arc::new(schema), written.limit),
        Some(places) => {
            let count = shards.dataset().shards.len();
            if places.is_empty() || !places.is_sorted_by(|one, next| one < next) || places.iter().any(|place| *place >= count) {
                return Err(Error::corrupt("a scan of shards names shards that there are none of"));
            }
            ShardScan::at(shards, asked, places.into(), Arc::new(schema), written.limit)
        }
    };
    Ok(Arc::new(scan.in_one_partition().in_trace(trace)))
}

/// Whether a node is a scan of a dataset.
pub(crate) fn is_shard_scan(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.is::<ShardScan>()
}
