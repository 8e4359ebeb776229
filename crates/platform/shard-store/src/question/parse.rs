//! The little language of conditions on a command line, and messages that point at what was not understood.

use forebay_types::{Error, Result};

use super::{Condition, Test};
use crate::literal::{Literal, parse_hex};

/// Tests as they are written; longer ones first where one begins with another.
const TESTS: [&str; 12] = ["<=", ">=", "^=", "*=", "<", ">", "=", "~", "prefix", "contains", "regex", "between"];

impl Condition {
    /// Reads an expression, as in `o_clerk = Clerk#000000951 and o_comment ~ "special.*requests"`.
    ///
    /// Tests are `=`, `^=` or `prefix`, `*=` or `contains`, `~` or `regex`, `<`, `<=`, `>`, `>=` and `between V and W`. A value
    /// is bare up to the next ` and `, in single or double quotes (twice for a quote itself), or bytes in hex as `x'00ff'`.
    pub fn parse(text: &str) -> Result<Self> {
        let mut reader = Reader { text, at: 0 };
        let mut all = vec![reader.condition()?];
        while !reader.at_end() {
            reader.keyword("and")?;
            all.push(reader.condition()?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Self::And(all) })
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
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

    fn condition(&mut self) -> Result<Condition> {
        let column = self.column()?;
        let test = match self.operator()? {
            "=" => Test::Eq(self.literal()?),
            "^=" | "prefix" => Test::Prefix(self.literal()?),
            "*=" | "contains" => Test::Contains(self.literal()?),
            "~" | "regex" => Test::Regex(self.literal()?),
            "<" => Test::Range(None, Some((self.literal()?, false))),
            "<=" => Test::Range(None, Some((self.literal()?, true))),
            ">" => Test::Range(Some((self.literal()?, false)), None),
            ">=" => Test::Range(Some((self.literal()?, true)), None),
            _ => {
                let from = self.literal()?;
                self.keyword("and")?;
                Test::Range(Some((from, true)), Some((self.literal()?, true)))
            }
        };
        Ok(Condition::Column { column, test })
    }

    fn column(&mut self) -> Result<String> {
        self.skip_space();
        if self.rest().starts_with(['"', '`']) {
            return self.quoted();
        }
        let rest = self.rest();
        let end = rest.find(|c: char| c.is_whitespace() || "<>=~^*\"'".contains(c)).unwrap_or(rest.len());
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
            let word = test.starts_with(|c: char| c.is_ascii_alphabetic());
            rest.get(..test.len()).is_some_and(|start| start.eq_ignore_ascii_case(test))
                && (!word || rest[test.len()..].starts_with(|c: char| c.is_whitespace() || c == '"' || c == '\''))
        });
        let Some(found) = found else {
            return Err(self.wrong("one of = ^= *= ~ < <= > >= prefix contains regex between"));
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
        let end = next_and(rest).unwrap_or(rest.len());
        let bare = rest[..end].trim_end();
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
            let Some(end) = rest.find(quote) else {
                return Err(self.wrong(&format!("a closing {quote}")));
            };
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

    fn keyword(&mut self, word: &str) -> Result<()> {
        self.skip_space();
        let rest = self.rest();
        let there = rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
            && rest[word.len()..].starts_with(char::is_whitespace);
        if !there {
            return Err(self.wrong(word));
        }
        self.at += word.len();
        Ok(())
    }
}

/// Where a bare value ends: before the word `and` between spaces.
fn next_and(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let word = |at: usize| bytes[at].is_ascii_whitespace() && bytes[at + 4].is_ascii_whitespace();
    (0..bytes.len().saturating_sub(4)).find(|&at| word(at) && bytes[at + 1..at + 4].eq_ignore_ascii_case(b"and"))
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
            Condition::And(all) => panic!("{all:?}"),
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
        ] {
            let error = Condition::parse(wrong).unwrap_err();
            assert!(error.message().contains(word), "{wrong}: {error}");
        }
    }
}
