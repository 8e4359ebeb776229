//! Sets up what one attempt at a statement runs in, so that all of it sees one version of each object and one listing.

use std::any::Any;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use datafusion::common::TableReference;
use datafusion::common::config::ConfigOptions;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;
use forebay_client::{Client, SnapshotStore};
use forebay_protocol::TableDefinition;
use forebay_types::{OperationId, Result, Standing};
use object_store::{ObjectMeta, ObjectStore};

use crate::catalog::{QueryTables, catalog_of};
use crate::engine::{Backend, Engine};
use crate::error::from_engine;
use crate::hot::Cells;
use crate::location::Namespace;
use crate::namespace::{Named, QueryNamespace};
use crate::parsed::parsed;
use crate::paths::{Resolver, looks_like_path};
use crate::prefetch::Fetcher;
use crate::steps;
use crate::stores::{QueryStores, Seen};

/// What one attempt at one statement runs in: its own snapshot of the stores, its own listings, its own tables.
pub(crate) struct QuerySession {
    pub(crate) operation: OperationId,
    pub(crate) context: SessionContext,
    pub(crate) seen: Arc<Seen>,
    pub(crate) namespace: Arc<dyn Namespace>,
    pub(crate) resolver: Resolver,
    pub(crate) statement: Statement,
    pub(crate) fetcher: Option<Fetcher>,
    /// What is pinned below mounts; none without a cluster.
    pub(crate) snapshot: Option<SnapshotStore>,
    /// Decoded columns that may be read; none where the hot form is off.
    pub(crate) cells: Option<Cells>,
    pub(crate) grounds: Grounds,
}

/// What a plan goes by beside what is stored: where it is the same, tables and settings are.
pub(crate) struct Grounds {
    /// Epoch and version of the view of the cluster; none without a cluster.
    pub(crate) view: Option<(u64, u64)>,
    pub(crate) options: Arc<ConfigOptions>,
    /// External tables, where the statement may need them.
    pub(crate) definitions: Arc<Vec<TableDefinition>>,
}

/// The operation of one attempt.
pub(crate) fn new_operation() -> OperationId {
    let operation = OperationId(RandomState::new().build_hasher().finish());
    forebay_trace::bind(operation);
    operation
}

impl QuerySession {
    /// Parses the statement and sets its surroundings up. Asks for external tables only when a name may be one.
    pub(crate) async fn open(engine: &Engine, sql: &str) -> Result<Self> {
        let inner = &engine.inner;
        let operation = new_operation();
        // Of before all that is looked at below: what changes meanwhile is taken for later.
        let view = match &inner.backend {
            Backend::Cluster(client) => {
                let view = client.view();
                Some((view.epoch, view.version))
            }
            Backend::Stores(..) => None,
        };
        let seen = Arc::new(Seen::default());
        let Surroundings { namespace, fetcher, snapshot, cells } = surroundings(engine, operation, &seen)?;
        let namespace: Arc<dyn Namespace> = Arc::new(namespace);
        let resolver = Resolver::new(Arc::clone(&namespace));

        let runtime = RuntimeEnvBuilder::from_runtime_env(engine.runtime()?.as_ref())
            .with_cache_manager(inner.caches.of_query(&seen))
            .with_object_store_registry(Arc::new(QueryStores::new(Arc::clone(&namespace), Arc::clone(&seen))))
            .build_arc()
            .map_err(from_engine)?;
        let config = engine.config.lock().clone();

        let dialect = config.options().sql_parser.dialect;
        steps::check(sql, dialect)?;
        let statement = parsed(&inner.template, sql, &dialect).map_err(from_engine)?;
        let references = inner.template.resolve_table_references(&statement).map_err(from_engine)?;
        let (definitions, are_told) = (definitions(engine, &statement, &references).await?, are_told(&statement, &references));
        let grounds = Grounds { view, options: Arc::clone(config.options()), definitions: Arc::clone(&definitions) };
        let (tables, planner) = (Arc::clone(&inner.session), Arc::clone(&inner.template));
        let tables = QueryTables::new(tables, definitions, resolver.clone(), planner, are_told);
        let state = SessionStateBuilder::new_from_existing(inner.template.as_ref().clone())
            .with_config(config)
            .with_runtime_env(runtime)
            .with_catalog_list(catalog_of(Arc::clone(&tables)).map_err(from_engine)?)
            .build();
        let context = SessionContext::new_with_state(state);
        tables.bind(context.state_weak_ref());
        Ok(Self { operation, context, seen, namespace, resolver, statement, fetcher, snapshot, cells, grounds })
    }

    /// Rows of a batch, at most.
    pub(crate) fn batch_rows(&self) -> usize {
        self.context.copied_config().batch_size()
    }

    /// Changes them for this attempt alone, before it is planned.
    pub(crate) fn set_batch_rows(&self, rows: usize) {
        let state = self.context.state_ref();
        let mut state = state.write();
        let config = state.config_mut();
        *config = config.clone().with_batch_size(rows);
    }
}

/// External tables, when the statement may need them: it names something that is neither the session's nor a path, or
/// it is about the tables themselves.
async fn definitions(engine: &Engine, statement: &Statement, references: &[TableReference]) -> Result<Arc<Vec<TableDefinition>>> {
    let unknown = references.iter().any(|reference| {
        let name = reference.table();
        is_of_tables(reference) || (!engine.inner.session.table_exist(name) && !looks_like_path(name))
    });
    let about_tables = match statement {
        Statement::CreateExternalTable(_) => true,
        Statement::Statement(statement) => !matches!(**statement, SqlStatement::Query(_)),
        _ => false,
    };
    if unknown || about_tables { engine.inner.definitions.list().await } else { Ok(Arc::default()) }
}

/// Whether a statement tells of tables, and reads none.
fn are_told(statement: &Statement, references: &[TableReference]) -> bool {
    let shows = matches!(statement, Statement::Statement(shown) if matches!(**shown, SqlStatement::ShowColumns { .. }));
    shows || !references.is_empty() && references.iter().all(is_of_tables)
}

fn is_of_tables(reference: &TableReference) -> bool {
    reference.schema() == Some("information_schema")
}

/// What a query sees of the world outside of the engine.
struct Surroundings {
    namespace: QueryNamespace,
    fetcher: Option<Fetcher>,
    snapshot: Option<SnapshotStore>,
    cells: Option<Cells>,
}

fn surroundings(engine: &Engine, operation: OperationId, seen: &Arc<Seen>) -> Result<Surroundings> {
    let (direct, reach) = (Arc::clone(&engine.inner.direct), engine.inner.settings.reach.clone());
    let datasets = Arc::clone(&engine.inner.datasets);
    match &engine.inner.backend {
        Backend::Stores(routes, names) => {
            let names = names.iter().map(|name| Named { name: name.clone(), url: None, read_only: false }).collect();
            let named: Arc<dyn ObjectStore> = Arc::clone(routes) as _;
            let namespace = QueryNamespace { names, named, direct, reach, pins: None, client: None, datasets };
            Ok(Surroundings { namespace, fetcher: None, snapshot: None, cells: None })
        }
        Backend::Cluster(client) => {
            let view = client.view();
            let names = view.mounts.iter().map(Named::of).collect();
            let snapshot = client.snapshot_of(operation, []);
            let prefetches = engine.inner.settings.prefetch;
            let fetcher = prefetches.then(|| fetcher(client, snapshot.clone(), Client::standing(engine.inner.settings.priority)));
            let (named, pins, asks) = (Arc::new(snapshot.clone()), Some(Arc::clone(seen)), Some(client.clone()));
            let namespace = QueryNamespace { names, named, direct, reach, pins, client: asks, datasets };
            let cells = engine
                .inner
                .settings
                .hot_form
                .then(|| Cells::new(client.clone(), snapshot.clone(), engine.inner.settings.rows_from_afar));
            Ok(Surroundings { namespace, fetcher, snapshot: Some(snapshot), cells })
        }
    }
}

/// Hands ranges to the client, as parts of one plan: those of files that are below a mount.
fn fetcher(client: &Client, snapshot: SnapshotStore, standing: Standing) -> Fetcher {
    let client = client.clone();
    Arc::new(move |ranges| {
        let pinned = |meta: &ObjectMeta| snapshot.pinned_at(&meta.location).map(|info| info.version);
        let plan = ranges.into_iter().filter_map(|(meta, ranges)| Some((pinned(&meta)?, ranges))).collect();
        Box::new(client.prefetch_in_turn(snapshot.operation(), standing, plan)) as Box<dyn Any + Send + Sync>
    })
}
