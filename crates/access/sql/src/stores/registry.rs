//! Gives DataFusion the stores that a query's URLs name, each watched for that query.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::object_store::ObjectStoreRegistry;
use object_store::ObjectStore;
use parking_lot::Mutex;
use url::{Position, Url};

use crate::error::external;
use crate::location::Namespace;
use crate::stores::{Observed, Seen};

/// The stores of one query, by scheme and host, each made when it is first asked for.
#[derive(Debug)]
pub(crate) struct QueryStores {
    stores: Mutex<HashMap<String, Arc<dyn ObjectStore>>>,
    namespace: Arc<dyn Namespace>,
    seen: Arc<Seen>,
}

impl QueryStores {
    pub(crate) fn new(namespace: Arc<dyn Namespace>, seen: Arc<Seen>) -> Self {
        Self { stores: Mutex::default(), namespace, seen }
    }
}

fn key(url: &Url) -> String {
    url[Position::BeforeScheme..Position::BeforePath].to_string()
}

impl ObjectStoreRegistry for QueryStores {
    fn register_store(&self, url: &Url, store: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        let store = Arc::new(Observed::new(store, Arc::clone(&self.seen)));
        self.stores.lock().insert(key(url), store)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        let mut stores = self.stores.lock();
        if let Some(store) = stores.get(&key(url)) {
            return Ok(Arc::clone(store));
        }
        let store = self.namespace.store(url).map_err(external)?;
        let store: Arc<dyn ObjectStore> = Arc::new(Observed::new(store, Arc::clone(&self.seen)));
        stores.insert(key(url), Arc::clone(&store));
        Ok(store)
    }
}
