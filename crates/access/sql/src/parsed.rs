//! From a statement's text to its tree, in which `is distinct from` takes what stands next to it and no more.
//!
//! The parser takes all that follows for its right side: `a is distinct from b and c` became `a is distinct from (b and c)`. It binds as the
//! other `is` do: tighter than NOT, AND and OR, looser than comparisons, and from the left.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::mem;
use std::ops::ControlFlow;

use datafusion::common::config::Dialect;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value, VisitMut, VisitorMut};

/// The tree of one statement.
pub(crate) fn parsed(state: &SessionState, sql: &str, dialect: &Dialect) -> Result<Statement> {
    let mut statement = state.sql_to_statement(sql, dialect)?;
    bind(&mut statement);
    Ok(statement)
}

fn bind(statement: &mut Statement) {
    let ControlFlow::Continue(()) = match statement {
        Statement::Statement(statement) => statement.visit(&mut Bound),
        Statement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => query.visit(&mut Bound),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        Statement::CreateExternalTable(table) => {
            let ControlFlow::Continue(()) = table.columns.visit(&mut Bound);
            table.order_exprs.visit(&mut Bound)
        }
        Statement::Explain(explain) => return bind(&mut explain.statement),
        Statement::Reset(_) => ControlFlow::Continue(()),
    };
}

struct Bound;

impl VisitorMut for Bound {
    type Break = Infallible;

    /// From the outside: what a right side took may belong to what is around it.
    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if took_too_much(expr) {
            mend(expr);
        }
        ControlFlow::Continue(())
    }
}

/// How tight an expression holds what stands at its end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binds {
    Or,
    And,
    Not,
    Is,
    /// Comparisons, arithmetic and what is tighter than these.
    Tighter,
}

fn binds(expr: &Expr) -> Binds {
    match expr {
        Expr::BinaryOp { op: BinaryOperator::Or, .. } => Binds::Or,
        Expr::BinaryOp { op: BinaryOperator::And, .. } => Binds::And,
        Expr::UnaryOp { op: UnaryOperator::Not, .. } => Binds::Not,
        Expr::IsDistinctFrom(..) | Expr::IsNotDistinctFrom(..) => Binds::Is,
        _ => Binds::Tighter,
    }
}

/// What an expression ends with, where that is an expression outside of parentheses. All that could be taken too far ends there.
fn right_of(expr: &mut Expr) -> Option<&mut Expr> {
    match expr {
        Expr::IsDistinctFrom(_, right)
        | Expr::IsNotDistinctFrom(_, right)
        | Expr::BinaryOp { right, .. }
        | Expr::UnaryOp { expr: right, .. }
        | Expr::Between { high: right, .. }
        | Expr::Like { pattern: right, escape_char: None, .. }
        | Expr::ILike { pattern: right, escape_char: None, .. }
        | Expr::SimilarTo { pattern: right, escape_char: None, .. }
        | Expr::RLike { pattern: right, .. } => Some(right.as_mut()),
        _ => None,
    }
}

/// What an expression begins with, where it is one that can't stand at the right of `is distinct from`: one that binds no tighter.
fn left_of(expr: &mut Expr) -> Option<&mut Expr> {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, .. }
        | Expr::IsDistinctFrom(left, _)
        | Expr::IsNotDistinctFrom(left, _)
        | Expr::IsNull(left)
        | Expr::IsNotNull(left)
        | Expr::IsTrue(left)
        | Expr::IsNotTrue(left)
        | Expr::IsFalse(left)
        | Expr::IsNotFalse(left)
        | Expr::IsUnknown(left)
        | Expr::IsNotUnknown(left)
        | Expr::IsNormalized { expr: left, .. } => Some(left.as_mut()),
        _ => None,
    }
}

/// Whether an expression ends with a comparison that took what it should not have.
fn took_too_much(mut expr: &mut Expr) -> bool {
    loop {
        let is_distinct = binds(expr) == Binds::Is;
        let Some(right) = right_of(expr) else { return false };
        if is_distinct && left_of(right).is_some() {
            return true;
        }
        expr = right;
    }
}

/// Puts what such comparisons took where it belongs. Expressions go from one place to another one by one: a chain may be long.
fn mend(expr: &mut Expr) {
    // Around what it ends with, from the outside; each has lost its end.
    let mut around = Vec::new();
    let mut whole = taken(expr);
    while let Some(right) = right_of(&mut whole) {
        let right = taken(right);
        around.push(mem::replace(&mut whole, right));
    }
    // What stands behind `whole`, from the left; each has lost its beginning, and none binds tighter than the one before it.
    let mut behind: VecDeque<Expr> = VecDeque::new();
    while let Some(mut outer) = around.pop() {
        let holds = binds(&outer);
        while let Some(next) = behind.pop_front_if(|next| tightness(next) > holds) {
            whole = begun(next, whole);
        }
        if holds == Binds::Is {
            while let Some(left) = left_of(&mut whole) {
                let left = taken(left);
                behind.push_front(mem::replace(&mut whole, left));
            }
        }
        *right_of(&mut outer).expect("what was taken from its end goes there") = whole;
        whole = outer;
    }
    while let Some(next) = behind.pop_front() {
        whole = begun(next, whole);
    }
    *expr = whole;
    debug_assert!(!took_too_much(expr), "what was taken too far is where it belongs");
}

/// How tight an expression holds what stands at its beginning: all of [`left_of`] but AND and OR are of `is`.
fn tightness(expr: &Expr) -> Binds {
    binds(expr).min(Binds::Is)
}

/// An expression with a beginning.
fn begun(mut expr: Expr, left: Expr) -> Expr {
    *left_of(&mut expr).expect("what was taken from its beginning goes there") = left;
    expr
}

fn taken(expr: &mut Expr) -> Expr {
    mem::replace(expr, Expr::value(Value::Null))
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::ast::visit_expressions_mut;
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    fn expression(text: &str) -> Expr {
        Parser::new(&GenericDialect {}).try_with_sql(text).unwrap().parse_expr().unwrap()
    }

    /// The tree of a text, without its parentheses.
    fn tree(text: &str) -> Expr {
        let mut expr = expression(text);
        let ControlFlow::Continue(()) = expr.visit(&mut Bound);
        let ControlFlow::Continue(()) = visit_expressions_mut(&mut expr, |expr| {
            if let Expr::Nested(within) = expr {
                *expr = taken(within);
            }
            ControlFlow::<Infallible>::Continue(())
        });
        expr
    }

    #[test]
    fn is_distinct_from_takes_what_is_next_to_it() {
        for (written, meant) in [
            ("a is distinct from b and c", "(a is distinct from b) and c"),
            ("a is not distinct from b or c", "(a is not distinct from b) or c"),
            ("a is distinct from b and c or d and e", "((a is distinct from b) and c) or (d and e)"),
            ("a is distinct from b or c and d", "(a is distinct from b) or (c and d)"),
            ("x and a is distinct from b or c", "(x and (a is distinct from b)) or c"),
            ("x or a is distinct from b and c", "x or ((a is distinct from b) and c)"),
            ("x or a is distinct from b or c", "(x or (a is distinct from b)) or c"),
            ("x or y and a is distinct from b and c or d", "(x or ((y and (a is distinct from b)) and c)) or d"),
            ("not a is distinct from b and c", "(not (a is distinct from b)) and c"),
            ("x = not a is distinct from b and c", "(x = (not (a is distinct from b))) and c"),
            ("x between y and not a is distinct from b or c", "(x between y and (not (a is distinct from b))) or c"),
            ("a is distinct from not b and c", "(a is distinct from (not b)) and c"),
            ("a is distinct from not b = c or d", "(a is distinct from (not (b = c))) or d"),
            ("a is distinct from b = c and d", "(a is distinct from (b = c)) and d"),
            ("a = b is distinct from c + d and e", "((a = b) is distinct from (c + d)) and e"),
            ("a is distinct from b between c and d and e", "(a is distinct from (b between c and d)) and e"),
            ("a is distinct from b is null", "(a is distinct from b) is null"),
            ("a is distinct from b is not true and c", "((a is distinct from b) is not true) and c"),
            ("a is distinct from b is distinct from c", "(a is distinct from b) is distinct from c"),
            ("a is distinct from b and c is distinct from d or e", "((a is distinct from b) and (c is distinct from d)) or e"),
            (
                "a is distinct from b or c is not distinct from d and e is distinct from f and g",
                "(a is distinct from b) or (((c is not distinct from d) and (e is distinct from f)) and g)",
            ),
            ("a is distinct from (b and c)", "a is distinct from (b and c)"),
            ("f(a is distinct from b and c) or d", "f((a is distinct from b) and c) or d"),
            (
                "(a is distinct from b and c) is distinct from d and e",
                "((((a is distinct from b) and c)) is distinct from d) and e",
            ),
            ("case when a is distinct from b and c then d end", "case when (a is distinct from b) and c then d end"),
        ] {
            assert_eq!(tree(written), tree(meant), "{written}");
        }
    }

    #[test]
    fn a_chain_of_any_length_is_mended() {
        const TERMS: usize = 20_000;
        let mut expr = expression(&format!("a is distinct from b{}", " and c".repeat(TERMS)));
        assert!(took_too_much(&mut expr));
        mend(&mut expr);
        assert!(!took_too_much(&mut expr));
        let mut terms = 0;
        while binds(&expr) == Binds::And {
            let left = left_of(&mut expr).map(taken).unwrap();
            expr = left;
            terms += 1;
        }
        assert_eq!((terms, expr), (TERMS, expression("a is distinct from b")));
    }
}
