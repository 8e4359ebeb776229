//! Mounts as messages have them: options that a peer of the version before does not know are not told to it.

use std::time::Duration;

use forebay_types::{BitRate, ByteSize, HotForm, Mount, MountId, MountName, MountOptions, Validate, Young};
use serde::{Deserialize, Serialize};

use crate::version::{read_since, write_since};

/// All options, in their order.
#[derive(Serialize, Deserialize)]
#[serde(remote = "MountOptions")]
pub(super) struct Options {
    endpoint: Option<String>,
    region: Option<String>,
    profile: Option<String>,
    anonymous: bool,
    virtual_host: bool,
    read_only: bool,
    validate: Validate,
    bandwidth: Option<BitRate>,
    burst: Option<ByteSize>,
    discover: Option<Duration>,
    eager: bool,
    replicas: Option<u32>,
    hot_form: HotForm,
    #[serde(serialize_with = "write_since::<9, _, _>", deserialize_with = "read_since::<9, _, _>")]
    young: Option<Young>,
}

/// A mount with them.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Mount")]
pub(super) struct Told {
    id: MountId,
    name: MountName,
    url: String,
    #[serde(with = "Options")]
    options: MountOptions,
}

/// Mounts with them.
pub(super) mod all {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Mount, Told};

    #[derive(Serialize, Deserialize)]
    struct One(#[serde(with = "Told")] Mount);

    pub(in super::super) fn serialize<S: Serializer>(mounts: &[Mount], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(mounts.iter().cloned().map(One))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Mount>, D::Error> {
        Ok(Vec::<One>::deserialize(deserializer)?.into_iter().map(|One(mount)| mount).collect())
    }
}
