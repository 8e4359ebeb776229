//! Defects that are put back, one at a time, so that a simulation shows that it would find them.
//!
//! Only a build with the feature `planted` has them, which no crate that is shipped turns on: in all others [`planted`] is `false` for the
//! compiler, and nothing of a defect is left.

/// A defect that can be put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Defect {
    /// A worker that was not heard of for a lease answers from versions that it remembers.
    StaleAfterStop = 1,
    /// A worker answers for temporary names when its lease is over.
    LeaseLapsed,
    /// A write is acknowledged before other workers have heard of it.
    AckBeforeTold,
    /// Which of two writes at a time came last is taken from the order of their answers.
    WritersOrder,
    /// Pages of the disk tier are taken as they are, damaged ones too.
    DamageAdopted,
    /// A write far behind a file's end makes all that is between them.
    SparseGiant,
    /// The bytes of a block that goes are counted as long as who names it says that they are.
    ForgedReference,
    /// A dataset's manifest is stored before its data.
    ManifestFirst,
    /// A container is moved wherever it is asked for, into itself too.
    CircleInRename,
    /// What a client reads in place is not kept for it.
    PinsFreed,
    /// A write that the S3 gateway has passed on is acknowledged, and no worker hears of it.
    UntoldByGateway,
    /// What an executor says of a task and is lost on its way nobody misses.
    LostStatus,
    /// Pages of another worker are taken as they come, damaged ones too.
    ReplicaAdopted,
}

impl Defect {
    /// All of them, with their names.
    pub const ALL: [(&'static str, Self); 13] = [
        ("stale-after-stop", Self::StaleAfterStop),
        ("lease-lapsed", Self::LeaseLapsed),
        ("ack-before-told", Self::AckBeforeTold),
        ("writers-order", Self::WritersOrder),
        ("damage-adopted", Self::DamageAdopted),
        ("sparse-giant", Self::SparseGiant),
        ("forged-reference", Self::ForgedReference),
        ("manifest-first", Self::ManifestFirst),
        ("circle-in-rename", Self::CircleInRename),
        ("pins-freed", Self::PinsFreed),
        ("untold-by-gateway", Self::UntoldByGateway),
        ("lost-status", Self::LostStatus),
        ("replica-adopted", Self::ReplicaAdopted),
    ];
}

#[cfg(feature = "planted")]
static PLANTED: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);

/// Puts a defect back, for all of this process.
#[cfg(feature = "planted")]
pub fn plant(defect: Defect) {
    PLANTED.store(defect as u8, std::sync::atomic::Ordering::Relaxed);
}

/// Whether a defect was put back.
#[cfg(feature = "planted")]
pub fn planted(defect: Defect) -> bool {
    PLANTED.load(std::sync::atomic::Ordering::Relaxed) == defect as u8
}

/// Whether a defect was put back: never, in this build.
#[cfg(not(feature = "planted"))]
pub const fn planted(_: Defect) -> bool {
    false
}
