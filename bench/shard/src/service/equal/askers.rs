//! Who asks for records, of shards and of a Redis in front of a store; both read each field of what they get, and make nothing of it.

use std::collections::BTreeMap;
use std::fmt;
use std::hint::black_box;
use std::ops::Range;

use bytes::Bytes;
use forebay_shard::{Key, Schema};
use forebay_shards::Shards;
use forebay_shared_storage::{Class, Get, GetRange, Storage};
use forebay_types::{Error, ObjectVersion, Result};
use zstd::bulk::{Compressor, Decompressor};

use crate::service::data::Data;
use crate::service::redis::Connection;
use crate::service::rig::Rig;

/// The level of who compresses what is small and asked for often.
const LEVEL: i32 = 1;
/// Bytes of a record at most.
const RECORD_BYTES_MAX: usize = 8 << 10;

/// Who asks for one record after the other.
pub(super) trait Asker {
    /// Gets the record of a row; true where it had to come from the store.
    async fn get(&mut self, row: usize) -> Result<bool>;
}

/// A client of shards.
pub(super) struct Ours<'a> {
    shards: &'a Shards,
    schema: Schema,
    keys: &'a [u64],
}

impl<'a> Ours<'a> {
    pub(super) fn new(shards: &'a Shards, keys: &'a [u64]) -> Self {
        Self { shards, schema: shards.dataset().columns.schema(), keys }
    }
}

impl Asker for Ours<'_> {
    async fn get(&mut self, row: usize) -> Result<bool> {
        let key = self.keys[row];
        let record = self.shards.record(&Key::U64(key), None).await?;
        let record = record.ok_or_else(|| Error::internal(format!("{key} has no record")))?;
        black_box(record.values(&self.schema, None)?);
        Ok(false)
    }
}

/// How records are in Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As JSON.
    Plain,
    /// As JSON that its client has compressed, each by itself.
    Packed,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "JSON, misses from the store",
            Self::Packed => "JSON by zstd, misses from the store",
        })
    }
}

/// A client of Redis that goes to the store for what is not there.
pub(super) struct Theirs<'a> {
    lake: &'a Lake,
    connection: Connection,
    packing: Option<(Compressor<'static>, Decompressor<'static>)>,
}

impl<'a> Theirs<'a> {
    pub(super) fn new(lake: &'a Lake, form: Form, connection: Connection) -> Result<Self> {
        let packing = match form {
            Form::Plain => None,
            Form::Packed => Some((Compressor::new(LEVEL)?, Decompressor::new()?)),
        };
        Ok(Self { lake, connection, packing })
    }
}

impl Asker for Theirs<'_> {
    async fn get(&mut self, row: usize) -> Result<bool> {
        if let Some(value) = self.connection.get(row).await? {
            match &mut self.packing {
                None => read(&value)?,
                Some((_, unpack)) => read(&unpack.decompress(&value, RECORD_BYTES_MAX)?)?,
            }
            return Ok(false);
        }
        let record = self.lake.read(row).await?;
        read(&record)?;
        // It is there for the next one.
        match &mut self.packing {
            None => self.connection.set(row, &record).await?,
            Some((pack, _)) => self.connection.set(row, &pack.compress(&record)?).await?,
        }
        Ok(true)
    }
}

/// Each field of a record, none copied: as a program does that knows its fields.
fn read(record: &[u8]) -> Result<()> {
    let fields: BTreeMap<&str, &str> =
        serde_json::from_slice(record).map_err(|error| Error::internal(format!("a record can't be read: {error}")))?;
    black_box(fields);
    Ok(())
}

/// The records as one object.
pub(super) struct Lake {
    storage: Storage,
    version: ObjectVersion,
    bytes: Bytes,
    records: Vec<Range<u64>>,
}

impl Lake {
    pub(super) async fn store(rig: &mut Rig, data: &Data) -> Result<Self> {
        let (mut bytes, mut records) = (Vec::new(), Vec::new());
        for row in 0..data.records.len() {
            let from = bytes.len() as u64;
            bytes.extend(data.value(row).into_bytes());
            records.push(from..bytes.len() as u64);
        }
        let bytes = Bytes::from(bytes);
        let info = rig.s3.put("equal.jsonl", bytes.clone()).await?;
        Ok(Self { storage: rig.s3.storage()?, version: info.version, bytes, records })
    }

    pub(super) fn records(&self) -> usize {
        self.records.len()
    }

    /// The records as Redis is to keep them.
    pub(super) fn values(&self, form: Form) -> Result<impl Iterator<Item = Vec<u8>>> {
        let mut pack = Compressor::new(LEVEL)?;
        Ok(self.records.iter().map(move |at| {
            let record = &self.bytes[at.start as usize..at.end as usize];
            match form {
                Form::Plain => record.to_vec(),
                Form::Packed => pack.compress(record).expect("a record has room in memory"),
            }
        }))
    }

    async fn read(&self, row: usize) -> Result<Vec<u8>> {
        let range = GetRange::Bounded(self.records[row].clone());
        let get = Get { key: &self.version.key, range, if_match: Some(&self.version.tag), class: Class::Demand };
        let mut body = self.storage.get(get).await?;
        let mut record = Vec::new();
        while let Some(bytes) = body.next().await {
            record.extend_from_slice(&bytes?);
        }
        Ok(record)
    }
}
