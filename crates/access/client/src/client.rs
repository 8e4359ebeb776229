use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use forebay_protocol::{ClusterView, ControlCall, ControlReply, RangeSpec};
use forebay_types::{ForebayPath, Mount, MountName, ObjectInfo, ObjectVersion, OperationId, Result};

use crate::core::Core;
use crate::counters::ClientCounters;
use crate::settings::ClientSettings;

/// A program's way into a cluster. Cheap to clone; clones share connections, pins and the view. When the last one is
/// dropped its tasks end; bytes that were read stay readable.
#[derive(Clone)]
pub struct Client {
    pub(crate) core: Arc<Core>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("counters", &self.counters()).finish_non_exhaustive()
    }
}

impl Client {
    /// Connects to the coordinator. Workers are connected to at first use. `Retry` when the coordinator does not
    /// answer, `Denied` when it does not accept the token.
    pub async fn connect(settings: ClientSettings) -> Result<Self> {
        Ok(Self { core: Arc::new(Core::connect(settings).await?) })
    }

    /// The cluster as this client knows it, at most the poll's period old while the coordinator answers.
    pub fn view(&self) -> Arc<ClusterView> {
        Arc::clone(&self.core.view.known().view)
    }

    /// Asks the coordinator for its view now.
    pub async fn refresh_view(&self) -> Result<Arc<ClusterView>> {
        self.core.view.poll().await?;
        Ok(self.view())
    }

    /// The mount of a name. `NotFound` only after asking the coordinator.
    pub async fn mount(&self, name: &MountName) -> Result<Arc<Mount>> {
        self.core.view.mount(name).await
    }

    /// Asks the coordinator. A reply of [`ControlReply::Failed`] comes back as the error. What changes mounts or pins
    /// is in this client's view when this returns.
    pub async fn control(&self, request: impl Into<ControlCall>) -> Result<ControlReply> {
        let request = request.into();
        let reply = self.core.control.ask(&request, self.core.settings.control_deadline).await?;
        if matches!(request, ControlCall::Administer(_)) {
            // It is done; a view that comes later is no failure of it.
            if let Err(error) = self.core.view.poll().await {
                tracing::debug!(%error, "view not refreshed");
            }
        }
        Ok(reply)
    }

    /// A new operation, for one job, query or call: reads carry it, and popularity counts a segment once in it.
    pub fn operation(&self) -> OperationId {
        OperationId(rand::random())
    }

    /// Exactly these bytes of this version, or an error: never part of them, never of another version. Zero copy when
    /// the range lies in one segment. `Conflict` when the object has another version now and these bytes are not
    /// held; `Retry` when neither a worker nor shared storage could be read.
    pub async fn read(&self, operation: OperationId, version: &ObjectVersion, range: Range<u64>) -> Result<Bytes> {
        self.core.read(operation, version, range).await
    }

    /// Bytes of whatever version is current under the mount's rule, and which they are: the version, the range, the
    /// bytes, cut off at the object's end. One request to shared storage for an object that nobody has read.
    pub async fn read_latest(
        &self,
        operation: OperationId,
        path: &ForebayPath,
        range: RangeSpec,
    ) -> Result<(ObjectInfo, Range<u64>, Bytes)> {
        self.core.read_latest(operation, path, range).await
    }

    /// What this client has read, by the way it came.
    pub fn counters(&self) -> ClientCounters {
        self.core.counters.snapshot()
    }
}
