//! The versions of the protocol, and how messages are written for a peer of the one before.

use std::cell::Cell;
use std::fmt;

use bytes::Bytes;
use forebay_types::{Error, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::codec::{decode, encode};

/// The version of this build. The first change of a message after a release makes it one more.
pub const PROTOCOL_VERSION: u16 = 9;
/// The oldest version that this build speaks as well: the one before, so that a cluster is upgraded process by process.
pub const PROTOCOL_VERSION_OLDEST: u16 = PROTOCOL_VERSION - 1;
/// Since when a peer is told where in a trace it is asked: builds of the version before took it for no message.
pub const TRACED_SINCE: u16 = 9;

/// Since when a worker keeps what is ordered of a dataset's replicas where it writes a manifest.
pub const ORDERS_SINCE: u16 = 9;

/// Since when a worker knows that a dataset may be about to have other shards.
pub const RESHARD_SINCE: u16 = 9;

/// Since when a worker may be the second one of a claim, and reads logs that have some.
pub const CLAIMS_SINCE: u16 = 9;

/// Since when a worker hears what an object of a log is with the word that it is there.
pub const CAME_SINCE: u16 = 9;

/// Since when a worker selects rows of decoded columns.
pub const ROWS_SINCE: u16 = 9;

/// Since when a mount may have a rule of age.
pub const YOUNG_SINCE: u16 = 9;

/// Since when a request may say how long its answer is waited for.
pub const LEFT_SINCE: u16 = 9;

/// Since when a call about a temporary node may have a number, by which it takes effect once.
pub const ONCE_SINCE: u16 = 9;

/// Since when a peer is told of temporary data, too, that it may not.
pub(crate) const DENIED_SINCE: u16 = 9;

/// No version is so high: from here on it is what another program says, as HTTP and SSH do, in letters.
const LETTERS: u16 = 0x2020;

/// The versions that one side of a connection speaks, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spoken {
    /// The oldest.
    pub oldest: u16,
    /// The newest.
    pub newest: u16,
}

impl Spoken {
    /// What this build speaks, up to `newest`.
    pub fn up_to(newest: u16) -> Self {
        Self { oldest: newest.min(PROTOCOL_VERSION_OLDEST), newest: newest.min(PROTOCOL_VERSION) }
    }

    /// What the header of a connection's first frame says: its version is the oldest, and its tag the newest, where builds that speak
    /// one version have 0.
    pub fn of_first(version: u16, tag: u64) -> Self {
        Self { oldest: version, newest: u16::try_from(tag).unwrap_or(u16::MAX).max(version) }
    }

    /// The tag of the first frame.
    pub fn tag(self) -> u64 {
        if self.newest > self.oldest { self.newest.into() } else { 0 }
    }

    /// The newest version that both sides speak. `Invalid` when there is none.
    pub fn agree(self, theirs: Self) -> Result<u16> {
        let version = self.newest.min(theirs.newest);
        if version >= self.oldest && version >= theirs.oldest { Ok(version) } else { Err(self.differs(theirs)) }
    }

    /// The error for a peer that speaks no version of this side's.
    pub(crate) fn differs(self, theirs: Self) -> Error {
        if theirs.oldest >= LETTERS {
            return Error::invalid("the peer does not keep to the handshake: is it a forebay of this version?");
        }
        let older = if theirs.newest < self.oldest { "the peer" } else { "this process" };
        Error::invalid(format!(
            "peer speaks protocol {theirs}, this is {self}: upgrade {older}, for a release speaks to the one before it and no older one"
        ))
    }
}

impl fmt::Display for Spoken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.oldest == self.newest { write!(f, "{}", self.newest) } else { write!(f, "{} to {}", self.oldest, self.newest) }
    }
}

thread_local!(static SPEAKING: Cell<u16> = const { Cell::new(PROTOCOL_VERSION) });

/// Does `work`, in which messages are written and read as those of `version`: an argument for which serde has no place. Not to be
/// held over an await, which it can't be.
pub fn speaking<T>(version: u16, work: impl FnOnce() -> T) -> T {
    struct Before(u16);
    impl Drop for Before {
        fn drop(&mut self) {
            SPEAKING.set(self.0);
        }
    }
    let _before = Before(SPEAKING.replace(version));
    work()
}

/// A message's bytes for a peer of `version`.
pub fn encode_for<T: Serialize>(version: u16, message: &T) -> Bytes {
    speaking(version, || encode(message))
}

/// The message in `bytes` of a peer of `version`; what that one does not say yet is as its type's default. Fails as [`decode`].
pub fn decode_from<T: DeserializeOwned>(version: u16, bytes: &[u8]) -> Result<T> {
    speaking(version, || decode(bytes))
}

/// Writes a field that its type has since `SINCE`: nothing for a peer of a version before. For `serialize_with`, together with
/// [`read_since`] for `deserialize_with`; for fields at the end of their type only.
pub fn write_since<const SINCE: u16, T: Serialize, S: Serializer>(field: &T, serializer: S) -> Result<S::Ok, S::Error> {
    match SPEAKING.get() >= SINCE {
        true => field.serialize(serializer),
        // Which has no bytes.
        false => serializer.serialize_unit(),
    }
}

/// Reads a field that its type has since `SINCE`: its default from a peer of a version before.
pub fn read_since<'de, const SINCE: u16, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Deserialize<'de> + Default,
    D: Deserializer<'de>,
{
    if SPEAKING.get() >= SINCE { T::deserialize(deserializer) } else { Ok(T::default()) }
}

/// A field that its type has since version 9, for `with`.
pub(crate) mod since_9 {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<T: Serialize, S: Serializer>(field: &T, serializer: S) -> Result<S::Ok, S::Error> {
        super::write_since::<9, T, S>(field, serializer)
    }

    pub(crate) fn deserialize<'de, T: Deserialize<'de> + Default, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        super::read_since::<9, T, D>(deserializer)
    }
}

/// A kind of message, which a peer knows or not.
pub trait Kind {
    /// The first version of the protocol that has it.
    fn since(&self) -> u16;
}

/// `Retry` when a peer of `version` does not know such a request, which is named `name`: it is not sent then, and may be answered by
/// another peer, or by this one once it is upgraded.
pub fn check_known(request: &impl Kind, name: &str, version: u16) -> Result<()> {
    let since = request.since();
    assert!(since <= PROTOCOL_VERSION, "{name} came with protocol {since}, which this build does not speak");
    match since <= version {
        true => Ok(()),
        false => Err(Error::retry(format!(
            "unsupported: it speaks protocol {version}, and {name:?} came with {since}: upgrade that process"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Grown {
        old: u8,
        #[serde(serialize_with = "write_since::<9, _, _>", deserialize_with = "read_since::<9, _, _>")]
        new: u16,
    }

    struct New;

    impl Kind for New {
        fn since(&self) -> u16 {
            9
        }
    }

    #[test]
    fn a_peer_of_the_version_before_sees_no_field_that_came_later() {
        let list = vec![Grown { old: 1, new: 300 }, Grown { old: 2, new: 7 }];
        assert_eq!(&encode(&list)[..], [2, 1, 0xac, 2, 2, 7]);
        assert_eq!(&encode_for(8, &list)[..], [2, 1, 2], "in the midst of a message too");
        assert_eq!(decode::<Vec<Grown>>(&encode(&list)).unwrap(), list);
        assert_eq!(decode_from::<Vec<Grown>>(8, &[2, 1, 2]).unwrap(), [Grown { old: 1, new: 0 }, Grown { old: 2, new: 0 }]);
        assert!(decode::<Vec<Grown>>(&[2, 1, 2]).is_err(), "what was said of another version ends with it");
    }

    #[test]
    fn two_sides_speak_the_newest_version_that_both_know() {
        let of = |oldest, newest| Spoken { oldest, newest };
        assert_eq!(of(8, 9).agree(of(8, 9)).unwrap(), 9);
        assert_eq!(of(8, 9).agree(of(8, 8)).unwrap(), 8);
        assert_eq!(of(8, 9).agree(of(9, 10)).unwrap(), 9);
        let old = of(8, 9).agree(of(7, 7)).unwrap_err();
        assert!(old.message().contains("peer speaks protocol 7, this is 8 to 9: upgrade the peer"), "{old}");
        let new = of(8, 9).agree(of(10, 11)).unwrap_err();
        assert!(new.message().contains("peer speaks protocol 10 to 11, this is 8 to 9: upgrade this process"), "{new}");
        let stranger = of(8, 9).agree(Spoken::of_first(u16::from_le_bytes(*b"ba"), 0)).unwrap_err();
        assert!(stranger.message().contains("is it a forebay"), "{stranger}");
    }

    #[test]
    fn what_a_peer_does_not_know_is_named_with_both_versions() {
        assert!(check_known(&New, "fold", 9).is_ok());
        let error = check_known(&New, "fold", 8).unwrap_err();
        assert!(error.message().contains("speaks protocol 8") && error.message().contains("\"fold\" came with 9"), "{error}");
    }
}
