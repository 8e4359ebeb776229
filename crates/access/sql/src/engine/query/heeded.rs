//! Refuses clauses that the parser reads and the planner passes over, as the answer would be that of a statement without them; and
//! statements of other databases, with what to write here.

use std::ops::ControlFlow;

use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{
    GroupByExpr, OrderByKind, Query, Select, ShowStatementOptions, Statement as SqlStatement, TableFactor, Visit, Visitor,
};
use forebay_types::{Error, Result};

/// `Invalid` for such a statement, or one with such a clause, with what to write for it.
pub(super) fn check(statement: &Statement) -> Result<()> {
    let found = match statement {
        Statement::Statement(statement) => statement.visit(&mut Clauses),
        Statement::CopyTo(copy) => match &copy.source {
            CopyToSource::Query(query) => query.visit(&mut Clauses),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        Statement::Explain(explain) => return check(&explain.statement),
        _ => ControlFlow::Continue(()),
    };
    match found {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(why) => Err(Error::invalid(why)),
    }
}

struct Clauses;

impl Visitor for Clauses {
    type Break = &'static str;

    fn pre_visit_statement(&mut self, statement: &SqlStatement) -> ControlFlow<Self::Break> {
        ControlFlow::Break(match statement {
            SqlStatement::StartTransaction { .. }
            | SqlStatement::Savepoint { .. }
            | SqlStatement::ReleaseSavepoint { .. }
            | SqlStatement::Commit { .. }
            | SqlStatement::Rollback { .. } => "transactions are not supported: each statement is one by itself",
            SqlStatement::Use(_) => "USE is not supported: tables and views are all in `forebay.public`",
            SqlStatement::ShowSchemas { .. } | SqlStatement::ShowDatabases { .. } | SqlStatement::ShowCatalogs { .. } => {
                "SHOW of schemas, databases and catalogs is not supported: select from information_schema.schemata"
            }
            SqlStatement::ShowViews { .. } => "SHOW VIEWS is not supported: select from information_schema.views",
            SqlStatement::ShowTables { show_options, .. } if show_options.filter_position.is_some() => {
                "SHOW TABLES with a condition is not supported: select from information_schema.tables"
            }
            SqlStatement::ShowColumns { show_options, .. } if is_of_path(show_options) => {
                "SHOW COLUMNS of a path is not supported, as it is of tables alone: write DESCRIBE '/MOUNT/..'"
            }
            _ => return ControlFlow::Continue(()),
        })
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        let filled = match query.order_by.as_ref().map(|order| &order.kind) {
            Some(OrderByKind::Expressions(all)) => all.iter().any(|one| one.with_fill.is_some()),
            _ => false,
        };
        refused(filled, "WITH FILL is not supported: join what generate_series gives")
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Self::Break> {
        refused(select.prewhere.is_some(), "PREWHERE is not supported: write WHERE")?;
        let (GroupByExpr::All(more) | GroupByExpr::Expressions(_, more)) = &select.group_by;
        refused(
            !more.is_empty(),
            "WITH ROLLUP, WITH CUBE and the like behind GROUP BY are not supported: write GROUP BY ROLLUP (..)",
        )?;
        refused(!select.connect_by.is_empty(), "CONNECT BY is not supported: write WITH RECURSIVE")?;
        refused(select.exclude.is_some(), "EXCLUDE behind other columns is not supported: write it behind the *")?;
        refused(select.value_table_mode.is_some(), "SELECT AS STRUCT and AS VALUE are not supported: write named_struct(..)")
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<Self::Break> {
        let (sample, ordinality) = match table {
            TableFactor::Table { sample, with_ordinality, version, partitions, json_path, .. } => {
                refused(version.is_some(), "a table as it was is not supported: files are read as they are now")?;
                refused(!partitions.is_empty(), "PARTITION (..) of a table is not supported: write WHERE")?;
                refused(json_path.is_some(), "a path behind a table's name is not supported: write unnest(..)")?;
                (sample.is_some(), *with_ordinality)
            }
            TableFactor::Derived { sample, .. } => (sample.is_some(), false),
            TableFactor::Function { with_ordinality, .. } => (false, *with_ordinality),
            _ => (false, false),
        };
        refused(sample, "TABLESAMPLE is not supported: WHERE random() < 0.1 leaves about a tenth of the rows")?;
        refused(ordinality, "WITH ORDINALITY is not supported: row_number() over () counts rows")
    }
}

/// Whether columns are asked for of what is a path by its name.
fn is_of_path(options: &ShowStatementOptions) -> bool {
    let name = options.show_in.as_ref().and_then(|within| within.parent_name.as_ref());
    name.is_some_and(|name| name.to_string().contains('/'))
}

fn refused(is_there: bool, why: &'static str) -> ControlFlow<&'static str> {
    if is_there { ControlFlow::Break(why) } else { ControlFlow::Continue(()) }
}
