use std::fmt;

use forebay_types::{ForebayPath, ObjectInfo, OperationId};

use super::versioned::{Store, Versions};
use crate::client::Client;

/// What is current: nothing is pinned, each call is an operation of its own.
#[derive(Clone)]
pub struct Live {
    client: Client,
}

/// A store of what is current under each mount's rule. From [`Client::object_store`].
pub type LiveStore = Store<Live>;

impl Versions for Live {
    fn client(&self) -> &Client {
        &self.client
    }

    fn operation(&self) -> OperationId {
        self.client.operation()
    }

    fn pinned(&self, _: &ForebayPath) -> Option<ObjectInfo> {
        None
    }

    fn seen(&self, _: &ForebayPath, info: ObjectInfo) -> ObjectInfo {
        info
    }

    fn written(&self, _: &ForebayPath, _: Option<&ObjectInfo>) {}
}

impl Client {
    /// This client as a store for any engine: every call sees what is current under the mount's rule.
    pub fn object_store(&self) -> std::sync::Arc<dyn object_store::ObjectStore> {
        std::sync::Arc::new(Store::new(Live { client: self.clone() }))
    }
}

impl fmt::Display for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Forebay")
    }
}
