//! What runs in this process: the runtime for a part of a query that another process planned, with its pins and its operation and this
//! engine's caches, and what every plan has before it runs.

use std::sync::Arc;

use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::physical_plan::ExecutionPlan;
use forebay_runtime::deadline::Waited;
use forebay_types::{Error, HotForm, ObjectInfo, OperationId, Result};

use crate::engine::{Backend, Engine};
use crate::error::from_engine;
use crate::held;
use crate::hot::{Cells, apply_to_part};
use crate::location::Namespace;
use crate::namespace::{Named, QueryNamespace};
use crate::paths::{with_all_members, with_checked_pages};
use crate::repeated;
use crate::stores::{QueryStores, Seen};

impl Engine {
    /// Whether columns of some mount's files may be decoded, and are read so.
    pub fn has_decoded(&self) -> bool {
        let Backend::Cluster(client) = &self.inner.backend else { return false };
        self.inner.settings.hot_form && client.view().mounts.iter().any(|mount| mount.options.hot_form == HotForm::Table)
    }

    /// A part of a query that was planned elsewhere, whose scans of Parquet files check pages before they are decoded. It is to come
    /// before [`with_decoded`](Self::with_decoded).
    pub fn with_checked_pages(&self, plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        with_checked_pages(plan, self.runtime()?.as_ref()).map_err(from_engine)
    }

    /// A plan that is ready to run in this process: its scans of compressed files read all of them, its joins and `unnest` repeat no more of a
    /// row than there is memory for and end when nobody waits any more, where that is known, and its windows hold no more rows. No optimizer
    /// sees it any more, and it is sent to nobody.
    pub fn ready(&self, plan: Arc<dyn ExecutionPlan>, waited: Option<&Waited>) -> Result<Arc<dyn ExecutionPlan>> {
        let whole = with_all_members(plan).map_err(from_engine)?;
        let bounded = repeated::bounded(whole, &self.inner.calls, waited).map_err(from_engine)?;
        held::counted(bounded).map_err(from_engine)
    }

    /// A part of a query that was planned elsewhere, whose scans look for decoded columns first.
    pub fn with_decoded(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        operation: OperationId,
        pins: Vec<ObjectInfo>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Backend::Cluster(client) = &self.inner.backend else { return Ok(plan) };
        let snapshot = client.snapshot_of(operation, pins.clone());
        let cells = Cells::new(client.clone(), snapshot, self.inner.settings.rows_from_afar);
        apply_to_part(plan, &cells, &self.runtime_of(operation, pins)?).map_err(from_engine)
    }

    /// What a part of a query runs in that was planned elsewhere: reads carry its operation and get exactly the versions
    /// that it was planned with. Footers are shared with all other queries of this engine.
    pub fn runtime_of(&self, operation: OperationId, pins: Vec<ObjectInfo>) -> Result<Arc<RuntimeEnv>> {
        let Backend::Cluster(client) = &self.inner.backend else {
            return Err(Error::invalid("only an engine over a cluster runs parts of its queries"));
        };
        let view = client.view();
        let seen = Arc::new(Seen::default());
        let snapshot = client.snapshot_of(operation, pins);
        for meta in snapshot.pinned_meta() {
            seen.note(&meta);
        }
        let names = view.mounts.iter().map(Named::of).collect();
        let (direct, reach) = (Arc::clone(&self.inner.direct), self.inner.settings.reach.clone());
        let namespace = QueryNamespace {
            names,
            named: Arc::new(snapshot),
            direct,
            reach,
            pins: Some(Arc::clone(&seen)),
            client: Some(client.clone()),
            datasets: Arc::clone(&self.inner.datasets),
        };
        let namespace: Arc<dyn Namespace> = Arc::new(namespace);
        RuntimeEnvBuilder::from_runtime_env(self.runtime()?.as_ref())
            .with_cache_manager(self.inner.caches.of_query(&seen))
            .with_object_store_registry(Arc::new(QueryStores::new(namespace, seen)))
            .build_arc()
            .map_err(from_engine)
    }
}
