//! Refuses clauses that the parser reads and the planner passes over: the answer would be that of a statement without them.

use std::ops::ControlFlow;

use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{Select, TableFactor, Visit, Visitor};
use forebay_types::{Error, Result};

/// `Invalid` for a statement with such a clause, with what to write for it.
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

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Self::Break> {
        if select.prewhere.is_some() {
            return ControlFlow::Break("PREWHERE is not supported: write WHERE");
        }
        if !select.connect_by.is_empty() {
            return ControlFlow::Break("CONNECT BY is not supported: write WITH RECURSIVE");
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<Self::Break> {
        match table {
            TableFactor::Table { sample: Some(_), .. } | TableFactor::Derived { sample: Some(_), .. } => {
                ControlFlow::Break("TABLESAMPLE is not supported: WHERE random() < 0.1 leaves about a tenth of the rows")
            }
            _ => ControlFlow::Continue(()),
        }
    }
}
