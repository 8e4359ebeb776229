//! Joins end where nobody waits for them any more. Between two batches they give way; but where few pairs meet a condition they look at all that
//! there are of a batch before they give one, which takes minutes.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{FieldRef, Schema};
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder, SortMergeJoinExec};
use forebay_runtime::deadline::Waited;
use forebay_types::Error;

use crate::error::external;

type Plan = Arc<dyn ExecutionPlan>;

/// The same join, whose condition fails once nobody waits.
pub(super) fn ended(node: Plan, waited: Option<&Waited>) -> Result<Plan> {
    let Some(waited) = waited else { return Ok(node) };
    if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>()
        && let Some(filter) = join.filter()
    {
        let join = NestedLoopJoinExecBuilder::from(join).with_filter(Some(while_waited(filter, waited))).build()?;
        return Ok(Arc::new(join));
    }
    if let Some(join) = node.downcast_ref::<HashJoinExec>()
        && let Some(filter) = join.filter()
    {
        return join.builder().with_filter(Some(while_waited(filter, waited))).build_exec();
    }
    if let Some(join) = node.downcast_ref::<SortMergeJoinExec>()
        && let Some(filter) = join.filter()
    {
        let (mut join, filter) = (join.clone(), while_waited(filter, waited));
        join.filter = Some(filter);
        return Ok(Arc::new(join));
    }
    Ok(node)
}

fn while_waited(filter: &JoinFilter, waited: &Waited) -> JoinFilter {
    let own = Arc::clone(filter.expression());
    let condition = Arc::new(WhileWaited { own, waited: waited.clone() });
    JoinFilter::new(condition, filter.column_indices().to_vec(), Arc::clone(filter.schema()))
}

/// A condition, for as long as somebody waits.
#[derive(Debug)]
struct WhileWaited {
    own: Arc<dyn PhysicalExpr>,
    waited: Waited,
}

impl PartialEq for WhileWaited {
    fn eq(&self, other: &Self) -> bool {
        self.own.eq(&other.own)
    }
}

impl Eq for WhileWaited {}

impl Hash for WhileWaited {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.own.hash(state);
    }
}

forebay_types::shown_as!(WhileWaited: own);

impl PhysicalExpr for WhileWaited {
    forebay_types::handed_on! {
        [own]
        fn return_field(&self, schema: &Schema) -> Result<FieldRef>;
        fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        match self.waited.is_over() {
            true => Err(external(Error::closed("nobody waits for the statement any more"))),
            false => self.own.evaluate(batch),
        }
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.own]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let own = children.into_iter().next().unwrap_or_else(|| Arc::clone(&self.own));
        Ok(Arc::new(Self { own, waited: self.waited.clone() }))
    }
}
