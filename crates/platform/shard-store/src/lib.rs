//! Shards as files: mapping, layers on disk, the log of updates.

mod claims;
mod columns;
mod dataset;
mod exact;
mod folder;
mod literal;
mod log;
mod question;
mod store;
mod update;
mod waited;

pub use claims::{ClaimFile, ClaimedLog};
pub use columns::{Column, ColumnKind, Columns, JsonKinds, JsonRecords, key_of_value};
pub use dataset::{
    Acknowledged, Dataset, DatasetBounds, DatasetCold, DatasetFile, DatasetFollowing, DatasetOrders, DatasetPin, DatasetShard,
    DatasetSource, GARBAGE_AFTER, KEY_BYTES_MAX, KEYS_MAX, LogClaim, LogObject, LogPlace, LoggedCall, NextShards, Packed,
    SOURCES_BYTES_MAX, SOURCES_MAX, Stored, Tail, data_key, decode_keys, decode_sources, encode_keys, encode_sources, garbage,
    has_keys, keys_name, manifest_key, manifest_number, manifest_tag, merge, moved_call, needed, pack, recut, too_many_sources,
};
pub use exact::exact_json;
pub use folder::AskedShares;
pub use literal::Literal;
pub use log::LocalLog;
pub use question::{Condition, Test};
pub use store::{
    Answered, Batch, Building, FarAnswer, FarQuestion, Inspection, PartInspection, SentRecord, Standing, Store, UpdateLimits,
    Updates, Wanted, read_keys, read_records, write_keys,
};
pub use update::{Change, ChangeIf, Filter, WantedChange};
pub use waited::while_waited;
