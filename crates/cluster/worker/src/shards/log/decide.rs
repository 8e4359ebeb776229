//! Which calls may be made, and which were made before.

use std::collections::HashMap;

use forebay_shard::Key;
use forebay_shard_store::{Change, ChangeIf, WantedChange};
use forebay_types::{Error, Result};

/// How a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::shards) struct Standing {
    pub(in crate::shards) is_there: bool,
    pub(in crate::shards) version: u64,
}

/// What becomes of a call.
#[derive(Debug)]
pub(in crate::shards) enum Verdict {
    /// It goes into the next object.
    Write,
    /// It was made by the object with this number.
    Done(u64),
    /// It can't be made.
    Refused(Error),
}

/// What becomes of calls that are to go into the object with the number `next`, each seeing what those before it change.
/// `known` says which object has a call, and `standing` how a record stands before all of them.
pub(in crate::shards) fn decide(
    calls: &[(u128, &[WantedChange])],
    next: u64,
    known: impl Fn(u128) -> Option<u64>,
    standing: impl Fn(&Key) -> Result<Standing>,
) -> Vec<Verdict> {
    let mut changed: HashMap<&Key, Standing> = HashMap::new();
    let mut writes: HashMap<u128, ()> = HashMap::new();
    let mut verdicts = Vec::with_capacity(calls.len());
    for (id, changes) in calls {
        if let Some(number) = known(*id) {
            verdicts.push(Verdict::Done(number));
            continue;
        }
        if writes.insert(*id, ()).is_some() {
            verdicts.push(Verdict::Refused(Error::retry("the same call is under way: ask again")));
            continue;
        }
        let mut of_call: HashMap<&Key, Standing> = HashMap::new();
        let holds = changes.iter().try_for_each(|wanted| {
            let key = wanted.change.key();
            let now = match of_call.get(key).or_else(|| changed.get(key)) {
                Some(standing) => *standing,
                None if wanted.condition == ChangeIf::Always => Standing { is_there: false, version: 0 },
                None => standing(key)?,
            };
            check(key, wanted.condition, now)?;
            of_call.insert(key, Standing { is_there: matches!(wanted.change, Change::Put(..)), version: next });
            Ok(())
        });
        match holds {
            Ok(()) => {
                changed.extend(of_call);
                verdicts.push(Verdict::Write);
            }
            Err(error) => {
                writes.remove(id);
                verdicts.push(Verdict::Refused(error));
            }
        }
    }
    debug_assert_eq!(verdicts.len(), calls.len(), "each call has its verdict");
    verdicts
}

fn check(key: &Key, condition: ChangeIf, now: Standing) -> Result<()> {
    match condition {
        ChangeIf::Always => Ok(()),
        ChangeIf::Absent if !now.is_there => Ok(()),
        ChangeIf::Absent => Err(Error::conflict(format!("{key}: there is a record already, of version {}", now.version))),
        ChangeIf::Version(version) if version == now.version => Ok(()),
        ChangeIf::Version(version) => {
            Err(Error::conflict(format!("{key}: the record has version {} by now, not {version}: read it again", now.version)))
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::ErrorKind;

    use super::*;

    fn put(key: u64, condition: ChangeIf) -> WantedChange {
        WantedChange { change: Change::Put(Key::U64(key), vec![]), condition }
    }

    fn delete(key: u64, condition: ChangeIf) -> WantedChange {
        WantedChange { change: Change::Delete(Key::U64(key)), condition }
    }

    /// Even keys are there, of version 3; the others never were. Call 99 is in object 4.
    fn verdicts(calls: &[(u128, &[WantedChange])]) -> Vec<&'static str> {
        let standing = |key: &Key| match key {
            Key::U64(key) => Ok(Standing { is_there: key % 2 == 0, version: 3 }),
            Key::Bytes(_) => unreachable!(),
        };
        let verdicts = decide(calls, 5, |call| (call == 99).then_some(4), standing);
        let word = |verdict: &Verdict| match verdict {
            Verdict::Write => "write",
            Verdict::Done(4) => "done",
            Verdict::Refused(error) if error.kind() == ErrorKind::Conflict => "conflict",
            Verdict::Refused(error) if error.kind() == ErrorKind::Retry => "retry",
            other => panic!("{other:?}"),
        };
        verdicts.iter().map(word).collect()
    }

    #[test]
    fn conditions_are_held_against_what_is_there() {
        let absent = ChangeIf::Absent;
        let calls: [(u128, &[WantedChange]); 6] = [
            (1, &[put(1, absent)]),
            (2, &[put(2, absent)]),
            (3, &[put(4, ChangeIf::Version(3))]),
            (4, &[delete(6, ChangeIf::Version(2))]),
            (5, &[put(8, ChangeIf::Always), delete(10, ChangeIf::Always)]),
            (99, &[put(2, absent)]),
        ];
        assert_eq!(verdicts(&calls), ["write", "conflict", "write", "conflict", "write", "done"]);
    }

    #[test]
    fn of_two_who_want_the_same_the_first_one_has_it() {
        let absent = ChangeIf::Absent;
        let calls: [(u128, &[WantedChange]); 5] = [
            (1, &[put(1, absent)]),
            (2, &[put(1, absent)]),
            (3, &[delete(1, ChangeIf::Always)]),
            (4, &[put(1, absent)]),
            (4, &[put(1, absent)]),
        ];
        assert_eq!(verdicts(&calls), ["write", "conflict", "write", "write", "retry"]);
    }

    #[test]
    fn a_call_is_made_whole_or_not_at_all() {
        let calls: [(u128, &[WantedChange]); 2] =
            [(1, &[put(1, ChangeIf::Absent), put(2, ChangeIf::Absent)]), (2, &[put(1, ChangeIf::Absent)])];
        assert_eq!(verdicts(&calls), ["conflict", "write"], "what the first one would have changed is as it was");
        let inside: [(u128, &[WantedChange]); 1] = [(1, &[delete(2, ChangeIf::Version(3)), put(2, ChangeIf::Absent)])];
        assert_eq!(verdicts(&inside), ["write"], "a change sees those before it");
    }
}
