//! Parts of shards that mean harm, with checksums that are right: each is opened and asked, or refused, in little time and memory.

use bytes::Bytes;
use forebay_fuzz::{run, shape};
use forebay_shard::{Key, Query, Shard};
use forebay_types::{ErrorKind, Result};

use crate::corrupt::model;

/// Where a part's header ends and its table of sections begins, and the bytes of an entry. docs/specs/shard.md has the layout.
const HEADER: usize = 48;
const ENTRY: usize = 24;

fn load(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).map_or(0, |word| u64::from_le_bytes(word.try_into().unwrap()))
}

/// Makes length and checksums fit.
#[expect(clippy::ptr_arg, reason = "what the fuzzer asks for may change the length as well")]
fn mend(part: &mut Vec<u8>) {
    let count = (load(part, 8) >> 32) as usize;
    let table_end = HEADER + count.min(1000) * ENTRY;
    if part.len() < table_end {
        return;
    }
    for entry in (HEADER..table_end).step_by(ENTRY) {
        let (from, length) = (load(part, entry) as usize, load(part, entry + 8) as usize);
        let sum = part.get(from..from.saturating_add(length)).map_or(0, |section| u64::from(forebay_types::crc32c(section)));
        part[entry + 16..entry + 24].copy_from_slice(&sum.to_le_bytes());
    }
    let total = part.len() as u64;
    part[32..40].copy_from_slice(&total.to_le_bytes());
    part[40..48].fill(0);
    let sum = u64::from(forebay_types::crc32c(&part[..table_end]));
    part[40..48].copy_from_slice(&sum.to_le_bytes());
}

fn ask(shard: &Shard) -> Result<usize> {
    let mut answers = 0;
    for key in [0, 3, 300, 597, u64::MAX] {
        answers += usize::from(shard.get(&Key::U64(key))?.is_some());
        answers += shard.extract(&Key::U64(key), 0, 1, 3)?.map_or(0, |bytes| bytes.len());
    }
    let query = Query::Contains { attribute: 0, bytes: b"e 3".to_vec() };
    answers += shard.search(&query, Some(10), None)?.keys.iter().count();
    answers += shard.count(&query)? as usize;
    let mut rows = 0;
    shard.scan(None, |_, _| {
        rows += 1;
        Ok(rows < 1000)
    })?;
    Ok(answers + rows)
}

fn edge(opened: Result<Shard>) -> String {
    match opened.and_then(|shard| ask(&shard)) {
        Ok(answers) => format!("{} answers", answers / 16),
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Invalid | ErrorKind::Conflict), "{error:?}");
            shape(error.message())
        }
    }
}

#[test]
fn fuzz_a_shard_s_base() {
    let seeds = vec![model().build(0.0).base.to_vec(), model().build(2.0).base.to_vec()];
    run("bases of shards", seeds, mend, |input| edge(Shard::open(Bytes::copy_from_slice(input), [])));
}

#[test]
fn fuzz_a_shard_s_layers() {
    let built = model().build(2.0);
    let seeds = built.layers.iter().map(|(_, part)| part.to_vec()).collect();
    run("layers of shards", seeds, mend, |input| edge(Shard::open(built.base.clone(), [Bytes::copy_from_slice(input)])));
}
