//! The little language of conditions on a command line, and messages that point at what was not understood.

use forebay_types::{Error, Result};

use super::{Condition, Test, check_depth};
use crate::literal::{Literal, parse_hex};

/// Tests as they are written; longer ones first where one begins with another.
const TESTS: [&str; 24] = [
    "<=",
    ">=",
    "^=",
    "$=",
    "*=",
    "i^=",
    "i$=",
    "i*=",
    "i=",
    "i~",
    "<",
    ">",
    "=",
    "~",
    "prefix",
    "suffix",
    "contains",
    "regex",
    "iprefix",
    "isuffix",
    "icontains",
    "iregex",
    "between",
    "in",
];

impl Condition {
    /// Reads an expression, as in `o_clerk = Clerk#000000951 and not (o_comment ~ "special.*requests" or o_shippriority in (1, 2))`.
    ///
    /// Tests are `=`, `^=` or `prefix`, `$=` or `suffix`, `*=` or `contains`, `~` or `regex`, each with an `i` before it to ignore case,
    /// `<`, `<=`, `>`, `>=`, `between V and W` and `in (V, ..)`; `not` binds before `and`, and `and` before `or`. A value is bare up to
    /// the next ` and ` or ` or ` (in parentheses up to their end, in a list to the next comma), in single or double quotes (twice for a
    /// quote itself), or bytes in hex as `x'00ff'`. A bare one does not begin with `=`, `<`, `>` or `~`.
    pub fn parse(text: &str) -> Result<Self> {
        let mut reader = Reader { text, at: 0, depth: 0, parentheses: 0, is_list: false };
        let condition = reader.any()?;
        if !reader.at_end() {
            return Err(reader.wrong("`and`, `or` or the end"));
        }
        condition.check()?;
        Ok(condition)
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// Of `not` and parentheses that are being read, and of the latter alone.
    depth: usize,
    parentheses: usize,
    /// Values of a list are being read.
    is_list: bool,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn at_end(&mut self) -> bool {
        self.skip_space();
        self.rest().is_empty()
    }

    fn wrong(&self, expected: &str) -> Error {
        let rest = self.rest();
        let found = if rest.is_empty() { "the end".to_string() } else { format!("{rest:?}") };
        Error::invalid(format!(
            "{:?}: expected {expected}, found {found}; as in: o_clerk = \"Clerk#000000951\" and o_comment ~ \"special.*requests\"",
            self.text
        ))
    }

    /// Conditions joined by `or`, of which each may be several joined by `and`.
    fn any(&mut self) -> Result<Condition> {
        let mut all = vec![self.all()?];
        while self.take_word("or") {
            all.push(self.all()?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Condition::Or(all) })
    }

    fn all(&mut self) -> Result<Condition> {
        let mut all = vec![self.one()?];
        while self.take_word("and") {
            all.push(self.one()?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Condition::And(all) })
    }

    fn one(&mut self) -> Result<Condition> {
        let is_not = self.take_word("not");
        if !is_not && !self.take("(") {
            return self.test();
        }
        self.depth += 1;
        check_depth(self.depth)?;
        let condition = if is_not {
            Condition::Not(Box::new(self.one()?))
        } else {
            self.parentheses += 1;
            let condition = self.any()?;
            self.expect(")")?;
            self.parentheses -= 1;
            condition
        };
        self.depth -= 1;
        Ok(condition)
    }

    fn test(&mut self) -> Result<Condition> {
        let column = self.column()?;
        let operator = self.operator()?;
        let (operator, ignores_case) = match operator.strip_prefix('i') {
            Some(other) if operator != "in" => (other, true),
            _ => (operator, false),
        };
        let test = match operator {
            "=" => Test::Eq(self.literal()?),
            "^=" | "prefix" => Test::Prefix(self.literal()?),
            "$=" | "suffix" => Test::Suffix(self.literal()?),
            "*=" | "contains" => Test::Contains(self.literal()?),
            "~" | "regex" => Test::Regex(self.literal()?),
            "<" => Test::Range(None, Some((self.literal()?, false))),
            "<=" => Test::Range(None, Some((self.literal()?, true))),
            ">" => Test::Range(Some((self.literal()?, false)), None),
            ">=" => Test::Range(Some((self.literal()?, true)), None),
            "in" => Test::In(self.list()?),
            _ => {
                let from = self.literal()?;
                if !self.take_word("and") {
                    return Err(self.wrong("and"));
                }
                Test::Range(Some((from, true)), Some((self.literal()?, true)))
            }
        };
        let test = if ignores_case { Test::IgnoringCase(Box::new(test)) } else { test };
        Ok(Condition::Column { column, test })
    }

    /// Values in parentheses.
    fn list(&mut self) -> Result<Vec<Literal>> {
        self.expect("(")?;
        self.is_list = true;
        let mut all = vec![self.literal()?];
        while self.take(",") {
            all.push(self.literal()?);
        }
        self.expect(")")?;
        self.is_list = false;
        Ok(all)
    }

    fn column(&mut self) -> Result<String> {
        self.skip_space();
        if self.rest().starts_with(['"', '`']) {
            return self.quoted();
        }
        let rest = self.rest();
        let is_end = |(at, c): (usize, char)| {
            let is_suffix = c == '$' && rest[at + 1..].starts_with('=');
            (c.is_whitespace() || "<>=~^*\"'".contains(c) || is_suffix).then_some(at)
        };
        let end = rest.char_indices().find_map(is_end).unwrap_or(rest.len());
        if end == 0 {
            return Err(self.wrong("a column"));
        }
        self.at += end;
        Ok(rest[..end].to_string())
    }

    fn operator(&mut self) -> Result<&'static str> {
        self.skip_space();
        let rest = self.rest();
        let found = TESTS.into_iter().find(|test| {
            let word = test.bytes().all(|byte| byte.is_ascii_alphabetic());
            let ends = |c: char| c.is_whitespace() || c == '"' || c == '\'' || (*test == "in" && c == '(');
            rest.get(..test.len()).is_some_and(|start| start.eq_ignore_ascii_case(test))
                && (!word || rest[test.len()..].starts_with(ends))
        });
        let Some(found) = found else {
            return Err(self.wrong("one of = ^= $= *= ~ < <= > >= i= i^= i$= i*= i~ prefix suffix contains regex in between"));
        };
        self.at += found.len();
        Ok(found)
    }

    fn literal(&mut self) -> Result<Literal> {
        self.skip_space();
        let rest = self.rest();
        if rest.starts_with("x'") || rest.starts_with("X'") {
            self.at += 1;
            let hex = self.quoted()?;
            return parse_hex(&hex).map(Literal::Bytes);
        }
        if rest.starts_with(['"', '\'']) {
            return self.quoted().map(Literal::Text);
        }
        // The rest of a test of another language: `a == b` would look for "= b", and find nothing.
        if rest.starts_with(['=', '<', '>', '~']) {
            return Err(self.wrong("a value, in quotes where it begins with = < > or ~"));
        }
        let bare = rest[..self.bare_end(rest)].trim_end();
        if bare.is_empty() {
            return Err(self.wrong("a value"));
        }
        self.at += bare.len();
        Ok(Literal::Text(bare.to_string()))
    }

    /// Text between two quotes, where the quote itself stands twice.
    fn quoted(&mut self) -> Result<String> {
        let quote = self.rest().chars().next().ok_or_else(|| self.wrong("a quote"))?;
        let mut text = String::new();
        let mut rest = &self.rest()[1..];
        loop {
            let Some(end) = rest.find(quote) else { return Err(self.wrong(&format!("a closing {quote}"))) };
            text.push_str(&rest[..end]);
            rest = &rest[end + 1..];
            if !rest.starts_with(quote) {
                break;
            }
            text.push(quote);
            rest = &rest[1..];
        }
        self.at = self.text.len() - rest.len();
        Ok(text)
    }

    /// Where a bare value ends.
    fn bare_end(&self, rest: &str) -> usize {
        let bytes = rest.as_bytes();
        let is_word = |at: usize, word: &str| is_word(&bytes[at..], word);
        let ends = |at: &usize| match bytes[*at] {
            b',' => self.is_list,
            b')' => self.is_list || self.parentheses > 0,
            byte => byte.is_ascii_whitespace() && !self.is_list && (is_word(*at + 1, "and") || is_word(*at + 1, "or")),
        };
        (0..bytes.len()).find(ends).unwrap_or(bytes.len())
    }

    fn expect(&mut self, sign: &str) -> Result<()> {
        if self.take(sign) { Ok(()) } else { Err(self.wrong(sign)) }
    }

    /// Goes on behind a sign, if it is next.
    fn take(&mut self, sign: &str) -> bool {
        self.skip_space();
        let is_next = self.rest().starts_with(sign);
        self.at += if is_next { sign.len() } else { 0 };
        is_next
    }

    /// Goes on behind a word, if it is next.
    fn take_word(&mut self, word: &str) -> bool {
        self.skip_space();
        let is_next = is_word(self.rest().as_bytes(), word);
        self.at += if is_next { word.len() } else { 0 };
        is_next
    }
}

/// Whether a text begins with a word.
fn is_word(text: &[u8], word: &str) -> bool {
    let is_there = text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()));
    is_there && text.get(word.len()).is_none_or(|next| next.is_ascii_whitespace() || *next == b'(')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Literal {
        Literal::Text(text.into())
    }

    fn one(condition: &str) -> (String, Test) {
        match Condition::parse(condition).unwrap() {
            Condition::Column { column, test } => (column, test),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn tests_are_read() {
        assert_eq!(one("o_clerk = Clerk#000000951"), ("o_clerk".into(), Test::Eq(text("Clerk#000000951"))));
        assert_eq!(one("o_comment ~ \"special.*requests\"").1, Test::Regex(text("special.*requests")));
        assert_eq!(one("a=b").1, Test::Eq(text("b")));
        assert_eq!(one("l_shipmode = REG AIR ").1, Test::Eq(text("REG AIR")));
        assert_eq!(one("a contains 'it''s'").1, Test::Contains(text("it's")));
        assert_eq!(one("a ^= x'00fF'").1, Test::Prefix(Literal::Bytes(vec![0, 255])));
        assert_eq!(one("a >= 5").1, Test::Range(Some((text("5"), true)), None));
        assert_eq!(one("a < 5").1, Test::Range(None, Some((text("5"), false))));
        assert_eq!(one("a between 1 and 9").1, Test::Range(Some((text("1"), true)), Some((text("9"), true))));
        assert_eq!(one("\"odd name\" = ''"), ("odd name".into(), Test::Eq(text(""))));
        assert_eq!(one("a = \"rum and coke\"").1, Test::Eq(text("rum and coke")));
        assert_eq!(one("prefix prefix prefix"), ("prefix".into(), Test::Prefix(text("prefix"))));
        let Condition::And(all) = Condition::parse("a = 1 and b between 2 and 3 AND c *= ü").unwrap() else { panic!() };
        assert_eq!(all.len(), 3);
        assert_eq!(all[2], Condition::Column { column: "c".into(), test: Test::Contains(text("ü")) });
    }

    #[test]
    fn conditions_are_put_together() {
        let parse = |text: &str| Condition::parse(text).unwrap();
        let [a, b, c] = ["a = 1", "b = 2", "c = 3"].map(parse);
        let not = |one: &Condition| Condition::Not(Box::new(one.clone()));
        let or = |all: &[&Condition]| Condition::Or(all.iter().copied().cloned().collect());
        let and = |all: &[&Condition]| Condition::And(all.iter().copied().cloned().collect());
        assert_eq!(parse("a = 1 or b = 2 and c = 3"), or(&[&a, &and(&[&b, &c])]));
        assert_eq!(parse("(a = 1 or b = 2) AND (c = 3)"), and(&[&or(&[&a, &b]), &c]));
        assert_eq!(parse("not a = 1 and not(b = 2 OR c = 3)"), and(&[&not(&a), &not(&or(&[&b, &c]))]));
        assert_eq!(parse("not not ((a=1))"), not(&not(&a)));
        assert_eq!(parse("(a between 1 and 2 or b = 2)"), or(&[&parse("a between 1 and 2"), &b]));
        assert_eq!(one("a $= x y").1, Test::Suffix(text("x y")));
        assert_eq!(one("a$=x").1, Test::Suffix(text("x")));
        assert_eq!(one("a$ = x"), ("a$".into(), Test::Eq(text("x"))));
        assert_eq!(one("a = f(x)").1, Test::Eq(text("f(x)")));
        assert_eq!(one("a = landor").1, Test::Eq(text("landor")));
        assert_eq!(one("a = '= b'").1, Test::Eq(text("= b")));
        assert_eq!(one("a = 'x or'").1, Test::Eq(text("x or")));
        assert_eq!(one("a suffix 'x' ").1, Test::Suffix(text("x")));
        let list = Test::In(vec![text("1"), text("rum and coke"), text(", "), Literal::Bytes(vec![0])]);
        assert_eq!(one("a in(1 , rum and coke, \", \", x'00')").1, list);
        assert_eq!(parse("a in (1) or b = 2"), Condition::Or(vec![parse("a IN (1)"), b.clone()]));
        for (test, plain) in [("i=", "="), ("i^=", "^="), ("i$=", "$="), ("i*=", "*="), ("i~", "~"), ("icontains", "contains")] {
            assert_eq!(one(&format!("a {test} x")).1, Test::IgnoringCase(Box::new(one(&format!("a {plain} x")).1)));
        }
        assert_eq!(one("i = x"), ("i".into(), Test::Eq(text("x"))));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (wrong, word) in [
            ("", "a column"),
            ("a", "one of"),
            ("a =", "a value"),
            ("a = 'x", "closing"),
            ("a = 'x' b", "and"),
            ("a = x'0'", "hex"),
            ("a = x'zz'", "hex"),
            ("a = 1 and ", "a column"),
            ("a between 1", "and"),
            ("a ! 1", "one of"),
            ("a = 1 or ", "a column"),
            ("(a = 1", ")"),
            ("a = 'x')", "the end"),
            ("not", "a column"),
            ("a = 1 and", "a column"),
            ("a *= x OR", "a column"),
            ("a between 1 and", "a value"),
            ("a == 1", "in quotes"),
            ("a =~ x", "in quotes"),
            ("a ~~ x", "in quotes"),
            ("a <> 1", "in quotes"),
            ("a in (=1)", "in quotes"),
            ("a in 1", "("),
            ("a in ()", "a value"),
            ("a in (1", ")"),
            ("a in (1,)", "a value"),
            ("a between 1 or 2", "and"),
        ] {
            let error = Condition::parse(wrong).unwrap_err();
            assert!(error.message().contains(word), "{wrong}: {error}");
        }
    }
}
