//! How many steps deep a statement may be, found before it is parsed, and its plan: each costs the stack of who parses and plans it, and
//! a stack that is used up ends the process with all that it serves.

use datafusion::common::config::Dialect;
use datafusion::sql::sqlparser::dialect::dialect_from_str;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer, Word};
use forebay_types::{Error, Result};

mod plan;

pub(crate) use plan::{check_plan, is_large};

/// Steps of the deepest part of a statement. Of 16 MiB of stack AND and OR take 1.2 KiB each, other operators up to 1.7 KiB: the main
/// thread of a command, with 8 MiB, bears this too.
const STEPS_MAX: usize = 6000;
/// What an operator costs of them, but AND and OR, of which programs write the longest chains.
const OPERATOR_STEPS: usize = 2;
/// What one more table, UNION or query of WITH costs: each is several nodes of a plan.
const TABLE_STEPS: usize = 10;
/// What EXCEPT and INTERSECT cost: they are joins of all columns, and are planned in a time that grows faster than their number.
const JOINED_STEPS: usize = 60;
/// A shorter text has no more steps: the shortest of those that cost most is `,a`.
const SHORT_BYTES: usize = STEPS_MAX / TABLE_STEPS * 2;

/// `Invalid` for a statement that is deeper: a chain of so many operators, tables in a row, or queries that stand on each other. What
/// stands in each other, as parentheses do, the parser bounds by itself.
pub(crate) fn check(sql: &str, dialect: Dialect) -> Result<()> {
    if sql.len() < SHORT_BYTES {
        return Ok(());
    }
    // What is no SQL the parser says better.
    let Some(spoken) = dialect_from_str(dialect) else { return Ok(()) };
    let Ok(tokens) = Tokenizer::new(spoken.as_ref(), sql).tokenize() else { return Ok(()) };
    let mut depth = Depth::default();
    tokens.iter().for_each(|token| depth.take(token));
    match depth.deepest() <= STEPS_MAX {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "the statement is more than {STEPS_MAX} steps deep (AND and OR in a row; another operator is {OPERATOR_STEPS} of them, a \
             table, UNION or query of WITH {TABLE_STEPS}, EXCEPT {JOINED_STEPS}): write IN (..) for many OR, or several statements"
        ))),
    }
}

/// How deep the tree of the tokens up to here is at most. A word is taken for an end of what is before it only where it can't be a name:
/// many keywords are names where a value is wanted. What queries that stand on each other come to is found in the plan.
#[derive(Default)]
struct Depth {
    /// What is outside of all parentheses, and what stands in those that are open.
    base: Level,
    open: Vec<Level>,
    /// Whether the token before this one ends a value.
    has_value: bool,
    /// Whether a name is all that stands behind it: of a column, or a type.
    names: bool,
}

/// What stands between two parentheses or in a CASE, or outside of all.
#[derive(Default)]
struct Level {
    /// Of tables, set operations and queries, which a comma does not end.
    tables: usize,
    /// AND and OR since the last comma, and other operators since the last of these.
    logic: usize,
    terms: usize,
    /// The most that it was, with what stands within.
    peak: usize,
    /// Whether a comma is followed by one more table, or query of WITH.
    lists_tables: bool,
    is_case: bool,
}

impl Level {
    fn deep(&mut self, within: usize) {
        self.peak = self.peak.max(self.tables + self.logic + self.terms + within);
    }

    fn operator(&mut self) {
        self.terms += OPERATOR_STEPS;
    }

    fn comma(&mut self) {
        if self.lists_tables {
            self.tables += TABLE_STEPS;
        }
        self.next_expression();
    }

    /// The expression before has ended.
    fn next_expression(&mut self) {
        (self.logic, self.terms) = (0, 0);
    }

    /// Whether a word ends a value.
    fn word(&mut self, keyword: Keyword, had_value: bool) -> bool {
        match keyword {
            Keyword::AND | Keyword::OR | Keyword::XOR => {
                self.logic += 1;
                if had_value {
                    self.terms = 0;
                }
            }
            Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::MINUS => {
                self.tables += if keyword == Keyword::UNION { TABLE_STEPS } else { JOINED_STEPS };
                if had_value {
                    self.next_expression();
                    self.lists_tables = false;
                }
            }
            // Commas behind these are between columns.
            Keyword::WHERE | Keyword::GROUP | Keyword::HAVING | Keyword::ORDER if had_value => {
                self.next_expression();
                self.lists_tables = false;
            }
            Keyword::WHEN | Keyword::THEN | Keyword::ELSE if had_value && self.is_case => self.next_expression(),
            Keyword::JOIN => self.tables += TABLE_STEPS,
            // Behind the queries of WITH.
            Keyword::SELECT => self.lists_tables &= !had_value,
            Keyword::FROM | Keyword::WITH => self.lists_tables = true,
            // No operators, wherever they stand.
            Keyword::AS | Keyword::WHERE | Keyword::WHEN | Keyword::THEN | Keyword::ELSE | Keyword::ON | Keyword::BY => {}
            _ if is_name(keyword) => return true,
            _ => self.operator(),
        }
        false
    }
}

impl Depth {
    fn level(&mut self) -> &mut Level {
        self.open.last_mut().unwrap_or(&mut self.base)
    }

    fn take(&mut self, token: &Token) {
        if matches!(token, Token::Whitespace(_)) {
            return;
        }
        let (had_value, is_named) = (self.has_value, self.names);
        self.names = matches!(token, Token::Period | Token::DoubleColon);
        self.has_value = match token {
            Token::Word(word) => is_named || self.word(word, had_value),
            Token::Comma => {
                self.no_case();
                self.level().comma();
                false
            }
            Token::LParen | Token::LBracket | Token::LBrace => {
                if *token == Token::LBracket {
                    // Of a subscript.
                    self.level().operator();
                    self.level().deep(0);
                }
                self.open.push(Level::default());
                false
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                self.no_case();
                self.close();
                true
            }
            Token::Period | Token::EOF => false,
            _ if is_value(token) => true,
            _ => {
                self.level().operator();
                false
            }
        };
        self.level().deep(0);
    }

    /// Whether a word ends a value. What a CASE has between its words stands side by side, as in parentheses.
    fn word(&mut self, word: &Word, had_value: bool) -> bool {
        match word.keyword {
            Keyword::CASE if !had_value => {
                self.open.push(Level { is_case: true, ..Level::default() });
                false
            }
            Keyword::END if had_value && self.level().is_case => {
                self.close();
                true
            }
            keyword => {
                if is_of_query(keyword) {
                    self.no_case();
                }
                self.level().word(keyword, had_value)
            }
        }
    }

    /// What was taken for a CASE has a name for it: in none stands a comma, or a word of queries, and each has an END.
    fn no_case(&mut self) {
        while self.level().is_case {
            let Some(case) = self.open.pop() else { return };
            let level = self.level();
            level.deep(case.peak);
            level.logic += case.logic;
            level.terms += case.terms;
            debug_assert!(level.peak >= level.tables + level.logic + level.terms, "what is undone was counted before");
        }
    }

    /// Leaves the innermost parentheses, or CASE.
    fn close(&mut self) {
        let Some(closed) = self.open.pop() else { return };
        assert!(closed.peak >= closed.tables + closed.logic + closed.terms, "a level was deeper at its end than ever");
        self.level().deep(closed.peak);
    }

    fn deepest(mut self) -> usize {
        while !self.open.is_empty() {
            self.close();
        }
        let Level { tables, logic, terms, peak, .. } = self.base;
        debug_assert!(peak >= tables + logic + terms, "a statement is deeper at its end than ever");
        peak
    }
}

fn is_of_query(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::EXCEPT
            | Keyword::FROM
            | Keyword::GROUP
            | Keyword::HAVING
            | Keyword::INTERSECT
            | Keyword::JOIN
            | Keyword::MINUS
            | Keyword::ORDER
            | Keyword::SELECT
            | Keyword::UNION
            | Keyword::WHERE
            | Keyword::WITH
    )
}

/// Whether a word is a name or a value wherever it stands: no operator that has one behind it.
fn is_name(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::NoKeyword
            | Keyword::NULL
            | Keyword::TRUE
            | Keyword::FALSE
            | Keyword::END
            | Keyword::DATA
            | Keyword::DATE
            | Keyword::DAY
            | Keyword::HOUR
            | Keyword::ID
            | Keyword::KEY
            | Keyword::MONTH
            | Keyword::NAME
            | Keyword::REGION
            | Keyword::SOURCE
            | Keyword::STATUS
            | Keyword::TIME
            | Keyword::TIMESTAMP
            | Keyword::TYPE
            | Keyword::VALUE
            | Keyword::YEAR
    )
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
        let n = STEPS_MAX / OPERATOR_STEPS;
        let chain = |operator: &str, count: usize| format!("select a{} from t", times(count + 1, |_| format!(" {operator} a")));
        let mut deep: Vec<String> = ["+", "||", "=", "like", "is distinct from"].map(|operator| chain(operator, n)).into();
        deep.extend(["and", "or"].map(|operator| chain(operator, STEPS_MAX)));
        deep.push(format!("select a{}", "::int".repeat(n + 1)));
        deep.push(format!("select a{}", " is null".repeat(n + 1)));
        deep.push(format!("select a{}", "[1]".repeat(n + 1)));
        deep.push(format!("select 1{}", " union all select 1".repeat(n / 2)));
        deep.push(format!("(select 1){}", " except (select 1)".repeat(n / 20)));
        deep.push(format!("select 1 from t{}", times(n / 2, |i| format!(", t a{i}"))));
        deep.push(format!("select 1 from t{}", times(n / 2, |i| format!(" join t a{i} on true"))));
        deep.push(format!("select 1 from t where a > 1{}", " union select a from t, u where a > 1 group by a".repeat(n / 2)));
        deep.push(format!(
            "with c0 as (select 1 a){} select * from c1",
            times(n / 2, |i| format!(", c{} as (select a from c{i})", i + 1))
        ));
        // Keywords that are names here.
        let sum = " + a".repeat(n / 4);
        for name in ["and", "or", "union", "having", "select", "from", "group", "where", "when", "then", "case", "order"] {
            deep.push(format!("select {}", times(8, |_| format!("a{sum} + {name} + "))));
            deep.push(format!("select {}", times(8, |_| format!("a{sum} + t.{name} + "))));
            deep.push(format!("select {}", times(8, |_| format!("a{sum} + case {name} when a then a end + "))));
            deep.push(format!("select {}", times(8, |_| format!("a{sum} + case when {name} then {name} else {name} end + "))));
            deep.push(format!("select case when a then {name}{}", format!("{sum} + {name}").repeat(8)));
            deep.push(format!("select 1 from {}", times(n / 2, |_| format!("{name}, "))));
            deep.push(format!("select 1 from {}", times(n / 2, |_| format!("t as {name}, "))));
            deep.push(format!("select 1 from {}", times(n / 2, |_| format!("t.{name}, "))));
        }
        for sql in deep {
            let error = check(&sql, Dialect::Generic).expect_err(&sql[..60]);
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
            format!("select 1{0} from data where a > 1 group by 1{0} having b > 1 order by 1{0}", columns(2000)),
            format!("with c as (select a from t group by a{}) select * from c", times(2000, |i| format!(", a{i}"))),
            format!("select * from t where a = 0{}", times(5000, |i| format!(" or a = {i}"))),
            format!("select * from t where a = 0{}", times(2800, |i| format!(" or t.date = t.year and type = {i}"))),
            format!("select * from t where a = 0{}", times(5000, |i| format!(" or (a = {i} and b = {i} and c <> 'x')"))),
            format!("select case{} end from t", times(2500, |i| format!(" when a = {i} and b + c > d * 2 then 'x' || e"))),
            format!("select a{} from t", " || a".repeat(1000)),
            format!(
                "with c0 as (select 1 a){} select * from c1",
                times(200, |i| format!(
                    ", c{} as (select a + 1 a from c{i} join t on t.a = c{i}.a and b > 1 where c like 'x' and d in (select 1 from u) \
                     group by a having count(*) > 1)",
                    i + 1
                ))
            ),
            format!("select 1{}", " union all select a + b from t where a > 1".repeat(500)),
            format!("select '{}'", "+ and (".repeat(5000)),
            format!("select 1 --{}\n", " + 1".repeat(5000)),
        ] {
            assert!(sql.len() > SHORT_BYTES && check(&sql, Dialect::Generic).is_ok(), "{}: {}", &sql[..60], steps(&sql));
        }
    }

    #[test]
    fn a_short_text_has_fewer_steps() {
        for part in [",a", "+a", "::int", " or a", " union select 1", " except from a", ",(from t)"] {
            let sql = format!("from a{}", part.repeat((SHORT_BYTES - 7) / part.len()));
            assert!(sql.len() < SHORT_BYTES && steps(&sql) <= STEPS_MAX + TABLE_STEPS, "{part}: {}", steps(&sql));
        }
    }
}
