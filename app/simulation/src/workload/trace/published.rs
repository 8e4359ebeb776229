//! The formats in which others publish their traces, line by line.

use forebay_types::{Error, Result};

use super::{Access, AccessKind};

/// Windows counts time in steps of 100 ns from the year 1601; so many of them were there in 1970.
const FILETIME_OF_1970: u64 = 116_444_736_000_000_000;

/// Whose trace it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// Twitter's cache traces (2020): timestamp in seconds, key, key size, value size, client, operation, TTL.
    Twitter,
    /// Meta's traces of key-value caches, as CacheLib reads them: columns by a line of titles, `key,op,size,op_count,key_size` or
    /// `op_time,key,key_size,op,op_count,size,..`.
    CacheLib,
    /// Alibaba's block traces (2020): device, R or W, offset, length, microseconds since 1970.
    Alibaba,
    /// SNIA's block traces of MSR Cambridge (2007): Windows time, host, disk, Read or Write, offset, size, response time.
    Snia,
}

forebay_types::named! {
    Published, Error: Twitter = "twitter", CacheLib = "cachelib", Alibaba = "alibaba", Snia = "snia";
    |text| Error::invalid(format!("{text:?} is no format: write twitter, cachelib, alibaba or snia"))
}

/// Reads lines of one trace, in their order.
pub(super) struct Parser {
    format: Published,
    columns: Columns,
    per_second: f64,
    /// Accesses so far of a trace that has no times.
    untimed: u64,
}

impl Parser {
    /// Accesses of a trace without times come `per_second`.
    pub(super) fn new(format: Published, per_second: f64) -> Self {
        Self { format, columns: Columns::default(), per_second, untimed: 0 }
    }

    /// The access that a line tells; none of a line of titles.
    pub(super) fn access(&mut self, number: u64, line: &str) -> Result<Option<Access>> {
        let access = match self.format {
            Published::CacheLib => match Columns::of_titles(line) {
                Some(columns) => {
                    self.columns = columns?;
                    return Ok(None);
                }
                None => self.cache_lib(line)?,
            },
            // Some copies have a line of titles.
            _ if number == 1 && line.starts_with(|c: char| c.is_ascii_alphabetic()) => return Ok(None),
            Published::Twitter => twitter(line)?,
            Published::Alibaba => alibaba(line)?,
            Published::Snia => snia(line)?,
        };
        access.check()?;
        Ok(Some(access))
    }

    fn cache_lib(&mut self, line: &str) -> Result<Access> {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let field = |column: usize, what: &str| {
            let found = fields.get(column).copied().filter(|field| !field.is_empty());
            found.ok_or_else(|| Error::invalid(format!("it has no {what}")))
        };
        let columns = self.columns;
        let op = match field(columns.op, "op")? {
            "GET" | "GET_LEASE" => AccessKind::Read,
            "SET" | "SET_LEASE" => AccessKind::Write,
            "DELETE" => AccessKind::Delete,
            other => return Err(Error::invalid(format!("{other:?} is no op: GET, SET, DELETE and leases are"))),
        };
        let times = number("op_count", field(columns.op_count, "op_count")?)?;
        let times = u32::try_from(times).map_err(|_| Error::invalid(format!("an op_count of {times} is too large")))?;
        let at_us = match columns.op_time {
            Some(column) => micros("op_time", field(column, "op_time")?)?,
            None => (self.untimed as f64 * 1e6 / self.per_second) as u64,
        };
        let bytes = number("size", field(columns.size, "size")?)?;
        let access = Access { op, times, ..Access::new(at_us, field(columns.key, "key")?, bytes) };
        self.untimed += u64::from(times);
        Ok(access)
    }
}

/// Where the columns of a CacheLib trace are.
#[derive(Clone, Copy)]
struct Columns {
    key: usize,
    op: usize,
    size: usize,
    op_count: usize,
    op_time: Option<usize>,
}

impl Default for Columns {
    /// `key,op,size,op_count,key_size`, as CacheLib takes a trace without titles.
    fn default() -> Self {
        Self { key: 0, op: 1, size: 2, op_count: 3, op_time: None }
    }
}

impl Columns {
    /// None where a line is none of titles; `Invalid` when titles lack what is needed.
    fn of_titles(line: &str) -> Option<Result<Self>> {
        let titles: Vec<&str> = line.split(',').map(str::trim).collect();
        if !titles.contains(&"op") || !titles.contains(&"key") {
            return None;
        }
        let place = |title: &str| titles.iter().position(|it| *it == title);
        let needed = |title: &str| place(title).ok_or_else(|| Error::invalid(format!("there is no column {title:?}")));
        let columns = || -> Result<Self> {
            let (key, op, size, op_count) = (needed("key")?, needed("op")?, needed("size")?, needed("op_count")?);
            Ok(Self { key, op, size, op_count, op_time: place("op_time") })
        };
        Some(columns())
    }
}

/// Keys may have commas in them, and nothing else may.
fn twitter(line: &str) -> Result<Access> {
    let too_few = || Error::invalid("it has too few fields: timestamp,key,key size,value size,client,operation,TTL are needed");
    let (time, rest) = line.split_once(',').ok_or_else(too_few)?;
    let mut fields = rest.rsplitn(6, ',');
    let [_ttl, op, _client, bytes, key_bytes, key] = std::array::from_fn(|_| fields.next());
    let (Some(op), Some(bytes), Some(key_bytes), Some(key)) = (op, bytes, key_bytes, key) else { return Err(too_few()) };
    number("key size", key_bytes)?;
    let op = match op.trim() {
        "get" | "gets" => AccessKind::Read,
        "set" | "add" | "replace" | "cas" | "append" | "prepend" | "incr" | "decr" => AccessKind::Write,
        "delete" => AccessKind::Delete,
        other => return Err(Error::invalid(format!("{other:?} is no operation of a cache"))),
    };
    Ok(Access { op, ..Access::new(micros("timestamp", time)?, key.trim(), number("value size", bytes)?) })
}

fn alibaba(line: &str) -> Result<Access> {
    let [device, op, offset, length, time] = fields(line, "device_id,opcode,offset,length,timestamp")?;
    let op = match op {
        "R" => AccessKind::Read,
        "W" => AccessKind::Write,
        other => return Err(Error::invalid(format!("{other:?} is no opcode: R and W are"))),
    };
    let path = format!("device/{}", number("device_id", device)?);
    let (start, bytes, at_us) = (number("offset", offset)?, number("length", length)?, number("timestamp", time)?);
    Ok(Access { op, start, ..Access::new(at_us, path, bytes) })
}

fn snia(line: &str) -> Result<Access> {
    let [time, host, disk, op, offset, size, _response] =
        fields(line, "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime")?;
    let op = match op {
        "Read" => AccessKind::Read,
        "Write" => AccessKind::Write,
        other => return Err(Error::invalid(format!("{other:?} is no type: Read and Write are"))),
    };
    let time = number("Timestamp", time)?;
    let since_1970 = time.checked_sub(FILETIME_OF_1970).ok_or_else(|| {
        Error::invalid(format!("{time} is no Timestamp: Windows counts steps of 100 ns since 1601, and this is before 1970"))
    })?;
    let path = format!("{host}/{}", number("DiskNumber", disk)?);
    let (start, bytes) = (number("Offset", offset)?, number("Size", size)?);
    Ok(Access { op, start, ..Access::new(since_1970 / 10, path, bytes) })
}

/// All fields of a line that has as many as these titles.
fn fields<'a, const COUNT: usize>(line: &'a str, titles: &str) -> Result<[&'a str; COUNT]> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let count = fields.len();
    fields.try_into().map_err(|_| Error::invalid(format!("it has {count} fields, and {titles} are {COUNT}")))
}

fn number(what: &str, text: &str) -> Result<u64> {
    text.trim().parse().map_err(|_| Error::invalid(format!("{text:?} is no {what}: a whole number from 0 is")))
}

/// Whole seconds.
fn micros(what: &str, text: &str) -> Result<u64> {
    let secs = number(what, text)?;
    secs.checked_mul(1_000_000).ok_or_else(|| Error::invalid(format!("a {what} of {secs} s is too large")))
}
