//! How many steps deep a statement may be, found before it is parsed, and its plan: each costs the stack of who parses and plans it, and
//! a stack that is used up ends the process with all that it serves.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion, TreeNodeVisitor};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::sqlparser::dialect::Dialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer, Word};
use forebay_types::{Error, Result};

use crate::error::from_engine;

/// Steps of the deepest part of a statement. A thread of [`forebay_runtime::STACK_BYTES`] has room for several times as many.
const STEPS_MAX: usize = 3000;
/// What one more table, UNION or query of WITH costs of them: each is several nodes of a plan.
const TABLE_STEPS: usize = 5;
/// What EXCEPT and INTERSECT cost: they are joins of all columns, and are planned in a time that grows faster than their number.
const JOINED_STEPS: usize = 30;
/// A shorter text has no more steps: the shortest of those that cost most is `,a`.
const SHORT_BYTES: usize = STEPS_MAX / TABLE_STEPS * 2;

/// `Invalid` for a statement that is deeper: a chain of so many operators, tables in a row, or queries that stand on each other. What
/// stands in each other, as parentheses do, the parser bounds by itself.
pub(crate) fn check(sql: &str, dialect: &dyn Dialect) -> Result<()> {
    if sql.len() < SHORT_BYTES {
        return Ok(());
    }
    // What is no SQL the parser says better.
    let Ok(tokens) = Tokenizer::new(dialect, sql).tokenize() else { return Ok(()) };
    let mut depth = Depth::default();
    tokens.iter().for_each(|token| depth.take(token));
    match depth.deepest() <= STEPS_MAX {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "the statement is more than {STEPS_MAX} steps deep (operators, AND and OR in a row, tables and queries that follow each \
             other): write IN (..) for many OR, or several statements"
        ))),
    }
}

/// Steps of a plan: more than a statement has by itself, whose views may stand on each other.
const PLAN_STEPS_MAX: usize = 2 * STEPS_MAX;

/// `Invalid` for a plan that is deeper.
pub(crate) fn check_plan(plan: &LogicalPlan) -> Result<()> {
    let mut depth = PlanDepth::default();
    plan.visit_with_subqueries(&mut depth).map_err(from_engine)?;
    assert!(depth.way.is_empty() && depth.now == 0, "{} nodes were gone down to and not up from", depth.way.len());
    match depth.most <= PLAN_STEPS_MAX {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "the statement is more than {PLAN_STEPS_MAX} steps deep with the views that it reads: write what one of them gives into a file"
        ))),
    }
}

/// The most steps on a way down a plan: its nodes, and the deepest expression of each, as the optimizer may make one of all of them.
#[derive(Default)]
struct PlanDepth {
    way: Vec<usize>,
    now: usize,
    most: usize,
}

impl<'n> TreeNodeVisitor<'n> for PlanDepth {
    type Node = LogicalPlan;

    fn f_down(&mut self, plan: &'n LogicalPlan) -> DataFusionResult<TreeNodeRecursion> {
        let mut deepest = 0;
        plan.apply_expressions(|expr| {
            let mut depth = ExprDepth::default();
            expr.visit(&mut depth)?;
            deepest = deepest.max(depth.most);
            Ok(TreeNodeRecursion::Continue)
        })?;
        self.way.push(deepest + 1);
        self.now += deepest + 1;
        self.most = self.most.max(self.now);
        Ok(TreeNodeRecursion::Continue)
    }

    fn f_up(&mut self, _: &'n LogicalPlan) -> DataFusionResult<TreeNodeRecursion> {
        self.now -= self.way.pop().unwrap_or_default();
        Ok(TreeNodeRecursion::Continue)
    }
}

#[derive(Default)]
struct ExprDepth {
    now: usize,
    most: usize,
}

impl<'n> TreeNodeVisitor<'n> for ExprDepth {
    type Node = Expr;

    fn f_down(&mut self, _: &'n Expr) -> DataFusionResult<TreeNodeRecursion> {
        self.now += 1;
        self.most = self.most.max(self.now);
        Ok(TreeNodeRecursion::Continue)
    }

    fn f_up(&mut self, _: &'n Expr) -> DataFusionResult<TreeNodeRecursion> {
        self.now -= 1;
        Ok(TreeNodeRecursion::Continue)
    }
}

/// How deep the tree of the tokens up to here is at most. A word is taken for an end of what is before it only where it can't be a name:
/// many keywords are names where a value is wanted.
#[derive(Default)]
struct Depth {
    /// What is outside of all parentheses, and what stands in those that are open.
    base: Level,
    open: Vec<Level>,
    /// Whether the token before this one ends a value.
    has_value: bool,
}

/// What stands between two parentheses, or outside of all.
#[derive(Default)]
struct Level {
    /// Of tables, set operations and queries, which a comma does not end.
    tables: usize,
    /// AND and OR since the last comma, and other operators since the last of these.
    logic: usize,
    terms: usize,
    /// The most that it was, with what stands in parentheses within.
    peak: usize,
    /// Whether a query stands in it, and whether those within stand on each other: those of WITH and FROM.
    is_query: bool,
    adds_up: bool,
}

impl Level {
    fn deep(&mut self, within: usize) {
        self.peak = self.peak.max(self.tables + self.logic + self.terms + within);
    }

    /// Whether a word ends a value.
    fn word(&mut self, word: &Word, had_value: bool) -> bool {
        match word.keyword {
            Keyword::NoKeyword | Keyword::NULL | Keyword::TRUE | Keyword::FALSE | Keyword::END => return true,
            Keyword::AND | Keyword::OR | Keyword::XOR => {
                self.logic += 1;
                if had_value {
                    self.terms = 0;
                }
            }
            Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::MINUS => {
                self.tables += if word.keyword == Keyword::UNION { TABLE_STEPS } else { JOINED_STEPS };
                if had_value {
                    (self.logic, self.terms, self.adds_up) = (0, 0, false);
                }
            }
            Keyword::JOIN => self.tables += TABLE_STEPS,
            Keyword::SELECT => {
                self.is_query = true;
                // Behind the queries of WITH.
                self.adds_up &= !had_value;
            }
            Keyword::FROM | Keyword::WITH => (self.is_query, self.adds_up) = (true, true),
            // No operators, wherever they stand.
            Keyword::AS | Keyword::WHERE | Keyword::WHEN | Keyword::THEN | Keyword::ELSE | Keyword::ON | Keyword::BY => {}
            _ => self.terms += 1,
        }
        false
    }
}

impl Depth {
    fn take(&mut self, token: &Token) {
        let had_value = self.has_value;
        let level = self.open.last_mut().unwrap_or(&mut self.base);
        self.has_value = match token {
            Token::Whitespace(_) => had_value,
            Token::Word(word) => level.word(word, had_value),
            Token::Comma => {
                if level.adds_up {
                    level.tables += TABLE_STEPS;
                }
                (level.logic, level.terms) = (0, 0);
                false
            }
            Token::LParen | Token::LBracket | Token::LBrace => {
                // Of a subscript.
                level.terms += usize::from(*token == Token::LBracket);
                level.deep(0);
                self.open.push(Level::default());
                self.has_value = false;
                return;
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                self.close();
                self.has_value = true;
                return;
            }
            Token::Period | Token::EOF => false,
            _ if is_value(token) => true,
            _ => {
                level.terms += 1;
                false
            }
        };
        level.deep(0);
    }

    /// Leaves the innermost parentheses.
    fn close(&mut self) {
        let Some(closed) = self.open.pop() else { return };
        assert!(closed.peak >= closed.tables + closed.logic + closed.terms, "a level was deeper at its end than ever");
        let level = self.open.last_mut().unwrap_or(&mut self.base);
        level.deep(closed.peak);
        level.is_query |= closed.is_query;
        if closed.is_query && level.adds_up {
            level.tables += closed.peak;
            level.deep(0);
        }
    }

    fn deepest(mut self) -> usize {
        while !self.open.is_empty() {
            self.close();
        }
        self.base.peak
    }
}

/// Whether a token is a value by itself.
fn is_value(token: &Token) -> bool {
    matches!(
        token,
        Token::Number(..)
            | Token::Placeholder(_)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::NationalStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::HexStringLiteral(_)
    )
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::LogicalPlanBuilder;
    use datafusion::prelude::lit;
    use datafusion::sql::sqlparser::dialect::GenericDialect;

    use super::*;

    fn steps(sql: &str) -> usize {
        let mut depth = Depth::default();
        Tokenizer::new(&GenericDialect {}, sql).tokenize().unwrap().iter().for_each(|token| depth.take(token));
        depth.deepest()
    }

    fn times(count: usize, text: impl Fn(usize) -> String) -> String {
        (0..count).map(text).collect()
    }

    #[test]
    fn what_is_deep_is_refused_whatever_makes_it_so() {
        let n = STEPS_MAX;
        let chain = |operator: &str| format!("select a{} from t", times(n + 1, |_| format!(" {operator} a")));
        let mut deep: Vec<String> = ["+", "and", "or", "||", "=", "like", "is distinct from"].map(chain).into();
        deep.push(format!("select a{}", "::int".repeat(n + 1)));
        deep.push(format!("select a{}", " is null".repeat(n + 1)));
        deep.push(format!("select a{}", "[1]".repeat(n + 1)));
        deep.push(format!("select 1{}", " union all select 1".repeat(n / 2)));
        deep.push(format!("(select 1){}", " except (select 1)".repeat(n / 20)));
        deep.push(format!("select 1 from t{}", times(n / 2, |i| format!(", t a{i}"))));
        deep.push(format!("select 1 from t{}", times(n / 2, |i| format!(" join t a{i} on true"))));
        deep.push(format!(
            "with c0 as (select 1 a){} select * from c1",
            times(n / 2, |i| format!(", c{} as (select a from c{i})", i + 1))
        ));
        // Queries that stand on each other, of which none is deep: their columns become one.
        let sum = " + a".repeat(n / 4);
        for (open, close) in [("(", ")"), ("((", "))")] {
            let query = |i: usize| format!(", c{} as {open}select a{sum} a from c{i}{close}", i + 1);
            deep.push(format!("with c0 as (select 1 a){} select * from c1", times(8, query)));
        }
        // Keywords that are names here.
        for name in ["and", "or", "union", "having", "select", "from", "group"] {
            deep.push(format!("select {}", times(8, |_| format!("a{sum} + {name} + "))));
            deep.push(format!("select {}", times(8, |_| format!("a{sum} + case {name} when a then a end + "))));
        }
        deep.push(format!("select 1 from {}", times(n / 2, |_| "t as union, ".into())));
        deep.push(format!("select 1 from {}", times(n / 2, |_| "union, ".into())));
        for sql in deep {
            let error = check(&sql, &GenericDialect {}).expect_err(&sql[..60]);
            assert!(error.message().contains("steps deep"), "{error}");
        }
    }

    #[test]
    fn what_is_long_and_not_deep_is_not() {
        let columns = |count: usize| times(count, |i| format!(", a{i} + b{i} as c{i}"));
        for sql in [
            format!("insert into t values (0, 'a'){}", times(20_000, |i| format!(", (-{i}, 'a')"))),
            format!("select * from t where a in (1{})", ", -1".repeat(50_000)),
            format!("select 1{} from t", columns(4000)),
            format!("with c as (select 1) select 1{} from c", columns(4000)),
            format!("select 1{0} from t union all select 1{0} from u union all select 1{0} from v", columns(2000)),
            format!("select * from t where a = 0{}", times(2500, |i| format!(" or a = {i}"))),
            format!("select * from t where a = 0{}", times(1400, |i| format!(" or (a = {i} and b = {i} and c <> 'x')"))),
            format!("select case{} end from t", times(2500, |i| format!(" when a = {i} then 'x'"))),
            format!("select 1{}", " union all select a + b from t where a > 1".repeat(500)),
            format!("select '{}'", "+ and (".repeat(5000)),
            format!("select 1 --{}\n", " + 1".repeat(5000)),
        ] {
            assert!(sql.len() > SHORT_BYTES && check(&sql, &GenericDialect {}).is_ok(), "{}: {}", &sql[..60], steps(&sql));
        }
    }

    #[test]
    fn what_stands_on_each_other_is_as_deep_as_all_of_it() {
        let plan = |queries: usize| {
            let first = LogicalPlanBuilder::empty(true);
            let next = |plan: LogicalPlanBuilder, _| {
                let sum = (0..100).fold(lit(1), |sum, _| sum + lit(1));
                plan.project([sum.alias("a")]).unwrap()
            };
            (0..queries).fold(first, next).build().unwrap()
        };
        check_plan(&plan(50)).unwrap();
        let error = check_plan(&plan(70)).unwrap_err();
        assert!(error.message().contains("views"), "{error}");
    }

    #[test]
    fn a_short_text_has_fewer_steps() {
        for part in [",a", "+a", "::int", " or a", " union select 1", " except from a", ",(from t)"] {
            let sql = format!("from a{}", part.repeat((SHORT_BYTES - 7) / part.len()));
            assert!(sql.len() < SHORT_BYTES && steps(&sql) <= STEPS_MAX + TABLE_STEPS, "{part}: {}", steps(&sql));
        }
    }
}
