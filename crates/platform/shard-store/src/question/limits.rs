//! How much one condition may ask: each test costs a search, one that looks into values a walk for each place where it may be, and an
//! expression the memory that it is compiled to.

use forebay_types::{Error, Result};

use super::{Condition, Test, check_depth};

/// Tests, of which each value of `in` is one.
const TESTS_MAX: usize = 1000;
/// Tests among them that look into values, and not at where these are in the order of all.
const INSIDE_MAX: usize = 32;

impl Condition {
    /// `Invalid` where it is nested too deep, or asks for too much.
    pub fn check(&self) -> Result<()> {
        Asked { tests: 0, inside: 0 }.add(self, 0)
    }
}

struct Asked {
    tests: usize,
    inside: usize,
}

impl Asked {
    fn add(&mut self, condition: &Condition, depth: usize) -> Result<()> {
        check_depth(depth)?;
        match condition {
            Condition::And(all) | Condition::Or(all) => all.iter().try_for_each(|one| self.add(one, depth + 1)),
            Condition::Not(one) => self.add(one, depth + 1),
            Condition::Column { test, .. } => {
                self.tests += if let Test::In(values) = test { values.len().max(1) } else { 1 };
                let is_inside = matches!(test, Test::Suffix(_) | Test::Contains(_) | Test::Regex(_) | Test::IgnoringCase(_));
                self.inside += usize::from(is_inside);
                at_most(self.tests, TESTS_MAX, "tests (each value of `in` is one)")?;
                at_most(self.inside, INSIDE_MAX, "tests by suffix, substring or regular expression, or ignoring case")
            }
        }
    }
}

fn at_most(count: usize, most: usize, what: &str) -> Result<()> {
    match count <= most {
        true => Ok(()),
        false => Err(Error::invalid(format!("a condition has at most {most} {what}: ask for parts of it one by one"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::literal::Literal;

    const DEPTH_MAX: usize = 16;

    fn one() -> Condition {
        Condition::Column { column: "a".into(), test: Test::Eq(Literal::Text("x".into())) }
    }

    fn nested(times: usize) -> Condition {
        (0..times).fold(one(), |inner, _| Condition::Not(Box::new(inner)))
    }

    #[test]
    fn what_is_too_deep_or_too_wide_is_refused() {
        let refused = |condition: &Condition, word: &str| {
            let error = condition.check().unwrap_err();
            assert!(error.message().contains(word) && error.message().contains("one by one"), "{error}");
            assert_eq!(Condition::from_json(&condition.to_json()).unwrap_err().message(), error.message());
        };
        nested(DEPTH_MAX).check().unwrap();
        refused(&nested(DEPTH_MAX + 1), "16 deep");
        let many = |count: usize| Condition::Or(vec![one(); count]);
        many(TESTS_MAX).check().unwrap();
        refused(&many(TESTS_MAX + 1), "1000 tests");
        let of = |count: usize| Condition::Column { column: "a".into(), test: Test::In(vec![Literal::Null; count]) };
        of(TESTS_MAX).check().unwrap();
        refused(&Condition::And(vec![of(TESTS_MAX), one()]), "1000 tests");
        let tests: [fn(Literal) -> Test; 4] =
            [Test::Suffix, Test::Contains, Test::Regex, |value| Test::IgnoringCase(Box::new(Test::Eq(value)))];
        for test in tests {
            let inside = Condition::Column { column: "a".into(), test: test(Literal::Text("x".into())) };
            Condition::Or(vec![inside.clone(); INSIDE_MAX]).check().unwrap();
            refused(&Condition::Or(vec![inside; INSIDE_MAX + 1]), "32 tests by suffix");
        }
        assert!(Condition::from_json(&(0..1000).fold(json!({"attr": "a", "eq": 1}), |inner, _| json!({"not": inner}))).is_err());
    }

    #[test]
    fn text_that_is_too_deep_is_refused_before_it_is_read() {
        for wrong in ["not ".repeat(100_000), "(".repeat(100_000)] {
            assert!(Condition::parse(&wrong).unwrap_err().message().contains("deep"));
        }
        let deep = format!("{}a = 1{}", "(".repeat(DEPTH_MAX), ")".repeat(DEPTH_MAX));
        assert_eq!(Condition::parse(&deep).unwrap(), Condition::parse("a = 1").unwrap());
    }
}
