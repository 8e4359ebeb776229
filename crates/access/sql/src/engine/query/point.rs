//! Statements for the record of one key with the key bound to them: planned once, and from then on read without the planner.
//!
//! What such a plan goes by is looked at each time: the session's settings and tables, the table's definition, mounts, the dataset's manifest.
//! Where any of it is another one the statement is planned as all others are, and kept anew.

use std::sync::{Arc, Weak};

use datafusion::common::ParamValues;
use datafusion::common::config::ConfigOptions;
use datafusion::logical_expr::LogicalPlan;
use forebay_client::Client;
use forebay_protocol::TableDefinition;
use forebay_types::Result;
use parking_lot::Mutex;

use super::rows::{Rows, Waiter};
use super::{Asked, Running};
use crate::distribute::stays;
use crate::engine::session::{Grounds, QuerySession, new_operation};
use crate::engine::{Backend, Engine};
use crate::paths::looks_like_path;
use crate::prefetch::Prefetching;
use crate::shards::Point;
use crate::stores::Seen;

/// Statements that are kept, and bytes of one with its table's definition and the columns that it gives above which it is not.
const KEPT_MAX: usize = 64;
const BYTES_MAX: usize = 32 << 10;

/// What EXPLAIN says of such a statement.
pub(super) const TOLD: &str = "once planned with its key bound, it is read by the key without the planner";

/// Statements that were planned.
#[derive(Default)]
pub(crate) struct Points {
    /// The one that was asked for last is the last one.
    kept: Mutex<Vec<Arc<Kept>>>,
}

struct Kept {
    sql: String,
    view: Option<(u64, u64)>,
    /// Which they were: what was `SET` is not kept for as long as this is, and its place is taken by no other.
    options: Weak<ConfigOptions>,
    /// The table's; none where its name is a path.
    definition: Option<TableDefinition>,
    point: Point,
}

impl Points {
    /// Keeps a statement, if it is one of these, by its plan before any value is put into it.
    pub(super) fn keep(&self, engine: &Engine, session: &QuerySession, sql: &str, plan: &LogicalPlan) {
        let Some(point) = point_of(engine, plan) else { return };
        let Grounds { view, options, definitions } = &session.grounds;
        let definition = definitions.iter().find(|table| table.name == point.table()).cloned();
        let declared = definition.as_ref().map_or(0, |table| table.name.len() + table.statement.len());
        if sql.len() + declared + point.bytes() > BYTES_MAX || definition.is_none() && !looks_like_path(point.table()) {
            return;
        }
        let mut kept = self.kept.lock();
        kept.retain(|other| !other.is_of(sql, options));
        let (sql, options) = (sql.to_string(), Arc::downgrade(options));
        if kept.len() >= KEPT_MAX {
            kept.remove(0);
        }
        kept.push(Arc::new(Kept { sql, view: *view, options, definition, point }));
        debug_assert!(kept.len() <= KEPT_MAX, "{} statements are kept", kept.len());
    }

    /// A statement as it was planned with these settings: sessions have their own.
    fn of(&self, sql: &str, options: &Arc<ConfigOptions>) -> Option<Arc<Kept>> {
        let mut kept = self.kept.lock();
        let place = kept.iter().position(|kept| kept.is_of(sql, options))?;
        let found = kept.remove(place);
        kept.push(Arc::clone(&found));
        Some(found)
    }
}

impl Kept {
    fn is_of(&self, sql: &str, options: &Arc<ConfigOptions>) -> bool {
        std::ptr::eq(self.options.as_ptr(), Arc::as_ptr(options)) && self.sql == sql
    }

    /// Whether all else that is known here is as it was when the statement was planned.
    fn holds(&self, engine: &Engine, client: &Client) -> bool {
        let view = client.view();
        let is_hidden = engine.inner.session.table_exist(self.point.table());
        !is_hidden && self.view == Some((view.epoch, view.version))
    }
}

/// Begins a statement by what is kept of it; none where that does not hold, or there is nothing.
pub(super) async fn begin(asked: &Asked) -> Result<Option<Running>> {
    let Asked { engine, sql, parameters: Some(parameters), .. } = asked else { return Ok(None) };
    let inner = &engine.inner;
    let Backend::Cluster(client) = &inner.backend else { return Ok(None) };
    let options = Arc::clone(engine.config.lock().options());
    let Some(kept) = inner.points.of(sql, &options) else { return Ok(None) };
    let Some(value) = kept.point.value(parameters).filter(|_| kept.holds(engine, client)) else { return Ok(None) };
    if let Some(definition) = &kept.definition
        && !inner.definitions.list().await?.contains(definition)
    {
        return Ok(None);
    }
    // What is wrong with the dataset is told by who plans the statement.
    let Ok(shards) = inner.datasets.open_lately(client, kept.point.path()).await else { return Ok(None) };
    let Some((plan, stream)) = kept.point.read(shards, value) else { return Ok(None) };
    debug_assert!(inner.elsewhere.is_none() || stays(&plan).is_some(), "a dataset of shards alone is read by who asks");
    let (operation, seen) = (new_operation(), Arc::new(Seen::default()));
    let rows = Rows::of(stream, Waiter::new(), Arc::clone(&seen), inner.settings.computing.clone());
    Ok(Some(Running {
        operation,
        schema: plan.schema(),
        rows: Some(rows),
        plan: Some(plan),
        seen,
        prefetching: Prefetching::default(),
        elsewhere: None,
        notice: None,
        writes: false,
        session: None,
    }))
}

/// Whether a plan is EXPLAIN of a statement that is read so with these values.
pub(super) fn is_explained(engine: &Engine, plan: &LogicalPlan, parameters: Option<&ParamValues>) -> bool {
    let LogicalPlan::Explain(explain) = plan else { return false };
    let point = parameters.and_then(|values| Some((point_of(engine, &explain.plan)?, values)));
    point.is_some_and(|(point, values)| point.value(values).is_some())
}

/// What a plan asks, if that is one record of a table which is none of the session's.
fn point_of(engine: &Engine, plan: &LogicalPlan) -> Option<Point> {
    Point::of(plan).filter(|point| !engine.inner.session.table_exist(point.table()))
}
