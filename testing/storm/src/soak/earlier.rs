//! What rounds before have written that may be there in the next one.

use forebay_oracle::history::{Call, What};

/// Of each object what was acknowledged last, and all that may have been written or not: as written before anything else was done.
#[derive(Debug, Default)]
pub(super) struct Earlier(Vec<Call>);

impl Earlier {
    /// A round is over, with these calls by the times that they were made.
    pub(super) fn add(&mut self, calls: &[Call]) {
        for call in calls {
            let What::Write { key, .. } = call.what else { continue };
            match &call.error {
                None => self.0.retain(|before| before.error.is_some() || !is_write_of(before, key)),
                Some(failure) if failure.no_effect => continue,
                Some(_) => {}
            }
            self.0.push(Call { begin_us: 0, end_us: 0, ..call.clone() });
        }
    }

    /// A round's history, with what was before it.
    pub(super) fn before(&self, calls: &[Call]) -> Vec<Call> {
        self.0.iter().chain(calls).cloned().collect()
    }
}

fn is_write_of(call: &Call, key: u32) -> bool {
    matches!(call.what, What::Write { key: written, .. } if written == key)
}

#[cfg(test)]
mod tests {
    use forebay_oracle::contents::Seen;
    use forebay_oracle::history::{Door, Failure};
    use forebay_oracle::{Losses, Promise, Rule, judge};

    use super::*;

    fn write(version: u32, begin_us: u64, failed: Option<bool>) -> Call {
        let error = failed.map(|no_effect| Failure { kind: "503".to_owned(), message: String::new(), no_effect });
        let what = What::Write { key: 3, version, etag: Some(format!("tag-{version}")).filter(|_| error.is_none()) };
        Call { begin_us, end_us: begin_us + 5, door: Door::Gateway, what, error }
    }

    fn read(version: u32, begin_us: u64) -> Call {
        let seen = Some((Seen::Version(version), format!("tag-{version}")));
        let what = What::Read { key: 3, start: 0, seen };
        Call { begin_us, end_us: begin_us + 5, door: Door::Gateway, what, error: None }
    }

    fn rules(earlier: &Earlier, calls: &[Call]) -> Vec<Rule> {
        let violations = judge(&earlier.before(calls), |_| Promise::InOrder, &Losses::default());
        violations.iter().map(|violation| violation.rule).collect()
    }

    #[test]
    fn a_round_may_see_what_the_last_one_left_and_nothing_older() {
        let mut earlier = Earlier::default();
        earlier.add(&[write(1, 10, None), write(2, 20, None), write(3, 30, Some(false)), write(4, 40, Some(true))]);
        let next = write(100_001, 50, None);
        assert!(rules(&earlier, &[read(2, 10), next.clone(), read(100_001, 70)]).is_empty());
        assert!(rules(&earlier, &[next.clone(), read(3, 70)]).is_empty(), "it may come late");
        assert!(rules(&earlier, &[read(1, 10), next.clone()]).contains(&Rule::Written), "it was written over");
        assert!(rules(&earlier, &[read(4, 10), next.clone()]).contains(&Rule::Written), "it was refused");
        assert!(rules(&earlier, &[next, read(2, 70)]).contains(&Rule::NotStale));
    }
}
