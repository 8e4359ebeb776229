//! The engine: the public way in to SQL, over Forebay, over a cluster of executors or over plain object stores. In its room, from the
//! ground up: `session` (what one attempt at a statement runs in), `ddl` (external tables), `query` (the life of a statement), and what
//! an engine does beside running queries. What an engine is made of, nothing outside sees.

mod convert;
mod ddl;
mod describe;
mod inspect;
mod query;
mod session;

use std::sync::Arc;

use datafusion::catalog::{MemorySchemaProvider, SchemaProvider};
use datafusion::datasource::file_format::FileFormatFactory;
use datafusion::execution::SessionState;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::prelude::SessionConfig;
use forebay_client::Client;
use forebay_runtime::deadline::Waiting;
use forebay_shards::OpenShards;
use forebay_types::Result;
use object_store::ObjectStore;
use parking_lot::Mutex;
use tokio_util::task::AbortOnDropHandle;
use url::Url;

use crate::albis::TableFormatFactory;
use crate::caches::FileCaches;
use crate::catalog::{CATALOG, Definitions, SCHEMA, TableName};
use crate::distribute::Distribute;
use crate::engine::query::Points;
use crate::error::ended_early;
use crate::functions::{self, CallMemory, LateConstants};
use crate::location::SCHEME;
use crate::namespace::DirectStores;
use crate::paths::ArrowFormatFactory;
use crate::rules;
use crate::settings::EngineSettings;
use crate::statement::split;
use crate::stores::Routes;

pub use convert::{Conversion, ConversionProgress};
pub use describe::Description;
pub use inspect::TableFile;
pub use query::Query;

/// SQL over mounts. Cheap to clone; clones share the session: its views, its settings, its caches.
///
/// ```
/// use forebay_client::{Client, ClientSettings};
/// use forebay_sql::arrow::array::AsArray;
/// use forebay_sql::arrow::datatypes::Int64Type;
/// use forebay_sql::{Engine, EngineSettings};
///
/// # #[tokio::main]
/// # async fn main() -> forebay_types::Result<()> {
/// # let cluster = forebay_testbed::TestCluster::start(1).await;
/// # cluster.store("rain.csv", b"station,mm\nAlm,3\nRied,4\n");
/// # let coordinator = cluster.node.coordinator_at().clone();
/// let client = Client::connect(ClientSettings::new(coordinator)).await?;
/// let engine = Engine::over_client(client, EngineSettings::default());
/// let mut query = engine.execute("SELECT sum(mm) FROM '/lake/rain.csv'").await?;
/// let batches = query.collect().await?;
/// assert_eq!(batches[0].column(0).as_primitive::<Int64Type>().value(0), 7);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
    /// The session's configuration; `SET` changes it.
    config: Arc<Mutex<SessionConfig>>,
}

/// The settings of a session, which last longer than its engine where somebody has them.
#[derive(Clone)]
pub struct SessionSettings(Arc<Mutex<SessionConfig>>);

/// What the queries of an engine share.
struct Inner {
    backend: Backend,
    settings: EngineSettings,
    /// What functions make, and what joins repeat.
    calls: CallMemory,
    /// Memory and temporary files; made at the first query, since making it can fail.
    runtime: Mutex<Option<Arc<RuntimeEnv>>>,
    /// All that a session's state has but for its configuration, catalog and stores: built once, since its functions
    /// and rules take a millisecond.
    template: Arc<SessionState>,
    caches: FileCaches,
    definitions: Definitions,
    /// Datasets of shards that statements have opened.
    datasets: Arc<OpenShards>,
    /// Statements for one record of these.
    points: Points,
    /// Views and tables in memory.
    session: Arc<dyn SchemaProvider>,
    direct: Arc<DirectStores>,
    /// Where plans run that can travel; none for here.
    elsewhere: Option<Arc<dyn Distribute>>,
}

/// Where `/NAME/...` goes.
enum Backend {
    /// Through Forebay.
    Cluster(Client),
    /// To object stores.
    Stores(Arc<Routes>, Vec<String>),
}

impl Engine {
    /// An engine whose paths `/MOUNT/KEY` go through Forebay. `s3://BUCKET/KEY` does too where a mount covers it, and
    /// is read directly with the environment's credentials elsewhere. Local files are `file:///...` or plain paths.
    pub fn over_client(client: Client, settings: EngineSettings) -> Self {
        let definitions = Definitions::of_cluster(client.clone());
        Self::new(Backend::Cluster(client), definitions, settings, DirectStores::default(), None)
    }

    /// `Denied` when who this engine reads for is let into its cluster no more.
    pub async fn check_caller(&self) -> Result<()> {
        match &self.inner.backend {
            Backend::Cluster(client) => client.who_am_i().await.map(drop),
            _ => Ok(()),
        }
    }

    /// The same, with queries over mounts run by many machines. What only this process can do (writes, views, files of its
    /// own) is done here.
    pub fn over_cluster(client: Client, settings: EngineSettings, elsewhere: Arc<dyn Distribute>) -> Self {
        let definitions = Definitions::of_cluster(client.clone());
        Self::new(Backend::Cluster(client), definitions, settings, DirectStores::default(), Some(elsewhere))
    }

    /// The same engine with the same settings over object stores, without Forebay. A store whose URL is
    /// `forebay:///NAME` is what `/NAME/...` means, its paths being what follows; any other is found by its scheme and
    /// host, as in `s3://BUCKET`.
    pub fn over_object_store(stores: Vec<(Url, Arc<dyn ObjectStore>)>, settings: EngineSettings) -> Self {
        let (mut routes, mut names) = (Routes::default(), Vec::new());
        let direct = DirectStores::default();
        for (url, store) in stores {
            if url.scheme() == SCHEME {
                let name = url.path().trim_matches('/').to_string();
                routes.add(&name, store);
                names.push(name);
            } else {
                direct.add(&url, store);
            }
        }
        Self::new(Backend::Stores(Arc::new(routes), names), Definitions::own(), settings, direct, None)
    }

    fn new(
        backend: Backend,
        definitions: Definitions,
        settings: EngineSettings,
        direct: DirectStores,
        elsewhere: Option<Arc<dyn Distribute>>,
    ) -> Self {
        let config = settings.session_config().with_default_catalog_and_schema(CATALOG, SCHEMA);
        let template = match &elsewhere {
            Some(elsewhere) => elsewhere.prepare(config),
            None => SessionStateBuilder::new().with_config(config).with_default_features(),
        };
        let template = template.build();
        let (mut logical, physical) = (rules::logical(template.optimizers()), rules::physical(template.physical_optimizers()));
        let calls = settings.call_memory();
        logical.push(Arc::new(LateConstants(calls.clone())));
        let (analyzing, planners) = (rules::analyzing(&template.analyzer().rules), rules::planners(template.expr_planners()));
        let relations = rules::relations(template.relation_planners());
        let template =
            SessionStateBuilder::new_from_existing(template).with_analyzer_rules(analyzing).with_optimizer_rules(logical);
        let template = template.with_physical_optimizer_rules(physical).with_expr_planners(planners);
        let mut template = template.with_relation_planners(relations).build();
        let formats: [Arc<dyn FileFormatFactory>; 2] = [Arc::new(TableFormatFactory), Arc::new(ArrowFormatFactory)];
        for format in formats {
            template.register_file_format(format, true).expect("a format that may be there already is never refused");
        }
        functions::mend(&mut template, &calls).expect("functions that are there already are never refused");
        let config = template.config().clone();
        let inner = Inner {
            backend,
            settings,
            calls,
            runtime: Mutex::new(None),
            template: Arc::new(template),
            caches: FileCaches::new(),
            definitions,
            datasets: Arc::default(),
            points: Points::default(),
            session: Arc::new(MemorySchemaProvider::new()),
            direct: Arc::new(direct),
            elsewhere,
        };
        Self { inner: Arc::new(inner), config: Arc::new(Mutex::new(config)) }
    }

    /// A session beside this one: it has the same tables, views and memory, and its own settings, which begin as this engine's did.
    pub fn session(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), config: Arc::new(Mutex::new(self.inner.template.config().clone())) }
    }

    /// What is `SET` in this session, and will be.
    pub fn session_settings(&self) -> SessionSettings {
        SessionSettings(Arc::clone(&self.config))
    }

    /// This engine with the settings of a session: what is `SET` in one of them holds in the other.
    pub fn with_session_settings(&self, settings: &SessionSettings) -> Self {
        Self { inner: Arc::clone(&self.inner), config: Arc::clone(&settings.0) }
    }

    /// Has work for a statement done by the threads that are there for it. Whoever waits here no longer waits for it when this is dropped:
    /// it ends where it waits, and between two steps of planning.
    async fn compute<F>(&self, work: F) -> Result<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        match &self.inner.settings.computing {
            Some(computing) => {
                let waiting = Waiting::begin();
                let done = computing.spawn(waiting.waited().scope(work));
                AbortOnDropHandle::new(done).await.map_err(|_| ended_early())
            }
            None => Ok(work.await),
        }
    }

    /// Waits until what was given up of statements has been told to whoever runs it elsewhere.
    pub async fn settle(&self) {
        if let Some(elsewhere) = &self.inner.elsewhere {
            elsewhere.settle().await;
        }
    }

    /// Asks the coordinator whether there are other mounts than this engine knows: what is not found may be below one that
    /// someone has just added.
    async fn mounts_changed(&self) -> bool {
        let Backend::Cluster(client) = &self.inner.backend else { return false };
        let known = client.view();
        client.refresh_view().await.is_ok_and(|view| view.mounts != known.mounts)
    }

    /// The names of all tables and views that a query can use beside paths, with their kinds.
    pub async fn tables(&self) -> Result<Vec<TableName>> {
        crate::catalog::all(&self.inner.session, &self.inner.definitions).await
    }

    /// Splits a script into its statements.
    pub async fn statements(&self, script: &str) -> Result<Vec<String>> {
        Ok(split(script))
    }

    fn runtime(&self) -> Result<Arc<RuntimeEnv>> {
        let mut runtime = self.inner.runtime.lock();
        if let Some(runtime) = &*runtime {
            return Ok(Arc::clone(runtime));
        }
        let made = self.inner.settings.runtime()?;
        *runtime = Some(Arc::clone(&made));
        Ok(made)
    }
}

forebay_types::shown!(SessionSettings);

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("settings", &self.inner.settings).finish_non_exhaustive()
    }
}
