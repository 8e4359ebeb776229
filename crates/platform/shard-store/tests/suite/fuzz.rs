//! Manifests and logs that mean harm, with checksums that are right: the shard opens or says what is wrong, and reads nothing outside
//! of its folder.

use forebay_fuzz::{run, shape};
use forebay_shard::{Key, KeyType, Schema, Value, ValueType};
use forebay_shard_store::{
    Change, ClaimFile, ClaimedLog, DatasetSource, LogClaim, LogObject, LogPlace, LoggedCall, Store, decode_keys, decode_sources,
    encode_keys, encode_sources, keys_name,
};
use forebay_types::{Error, ErrorKind, WorkerId};

use crate::support::*;

/// Makes the checksum in a manifest's first line fit what follows.
fn mend(manifest: &mut Vec<u8>) {
    let Some(end) = manifest.iter().position(|&byte| byte == b'\n') else { return };
    let Some(version) = String::from_utf8_lossy(&manifest[..end]).split(' ').nth(1).map(str::to_string) else { return };
    let sum = forebay_types::crc32c_append(forebay_types::crc32c(version.as_bytes()), &manifest[end + 1..]);
    let head = format!("forebay-shard {version} {sum:08x}");
    manifest.splice(..end, head.into_bytes());
}

/// Makes the checksum at the end of a head of 16 bytes fit what follows.
#[expect(clippy::ptr_arg, reason = "what the fuzzer asks for may change the length as well")]
fn mend_head(bytes: &mut Vec<u8>) {
    if bytes.len() >= 16 {
        let sum = forebay_types::crc32c(&bytes[16..]);
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
    }
}

/// The shape of an error of what is damaged, or can't be.
fn refused(error: &Error) -> String {
    assert!([ErrorKind::Corrupt, ErrorKind::Invalid].contains(&error.kind()), "{error:?}");
    shape(error.message())
}

/// Whether a manifest names a file that is not its folder's.
fn leads_outside(manifest: &[u8]) -> bool {
    fn walk(value: &serde_json::Value) -> bool {
        match value {
            serde_json::Value::Object(fields) => fields.iter().any(|(name, value)| match value.as_str() {
                Some(text) => name == "file" && text.contains("outside"),
                None => walk(value),
            }),
            serde_json::Value::Array(values) => values.iter().any(walk),
            _ => false,
        }
    }
    let body = manifest.splitn(2, |&byte| byte == b'\n').nth(1).unwrap_or_default();
    let read: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    read.is_some_and(|read| read.get("shards").is_some_and(walk))
}

#[test]
fn fuzz_a_manifest() {
    let (folder, path, _) = built(1, 100, 2.5);
    let manifest = path.join("manifest");
    let good = std::fs::read_to_string(&manifest).unwrap();
    // A file beside the folder, as large as one of the shard's, and a name that leads to it.
    let base = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let base = base.filter(|file| file.file_name().unwrap().to_string_lossy().starts_with("base")).max().unwrap();
    let name = base.file_name().unwrap().to_str().unwrap();
    std::fs::copy(&base, folder.path().join("outside")).unwrap();
    let seeds =
        [good.clone(), good.replace(name, "../outside"), good.replace(name, folder.path().join("outside").to_str().unwrap())];
    run("manifests", seeds.map(String::into_bytes).to_vec(), mend, |input| {
        std::fs::write(&manifest, input).unwrap();
        match Store::open(&path) {
            Ok(_) => {
                assert!(!leads_outside(input), "a file outside of the folder was read");
                "opened".into()
            }
            Err(error) => {
                let kinds = [ErrorKind::Corrupt, ErrorKind::Invalid, ErrorKind::NotFound, ErrorKind::Conflict];
                assert!(kinds.contains(&error.kind()), "{error:?}");
                shape(error.message())
            }
        }
    });
    std::fs::write(&manifest, &good).unwrap();
    Store::open(&path).unwrap();
}

#[test]
fn fuzz_keys_of_a_source() {
    let numbers = encode_keys(&[1, 2, 300, u64::MAX].map(Key::U64));
    let texts = encode_keys(&["", "a", "ab", "b"].map(Key::from));
    run("keys of a source", vec![numbers, texts], mend_head, |input| {
        let count = input.get(20..28).map_or(0, |count| u64::from_le_bytes(count.try_into().unwrap()));
        let read = [KeyType::U64, KeyType::Bytes].map(|key_type| decode_keys(input, key_type, count, "keys"));
        let shapes = read.map(|read| match read {
            Ok(keys) => {
                assert!(keys.is_sorted_by(|a, b| a < b));
                format!("{} keys", keys.len().min(16))
            }
            Err(error) => refused(&error),
        });
        shapes.join(" ")
    });
}

#[test]
fn fuzz_sources_of_a_dataset() {
    let source = |path: &str, tag: &str| {
        let keys = keys_name(7, b"keys");
        DatasetSource { path: path.into(), tag: tag.into(), bytes: 3, records: 2, keys }
    };
    let seeds = [vec![], vec![source("/lake/in/a.csv", "1"), source("/lake/in/a.csv", ""), source("/lake/in/b", "2")]];
    let seeds = seeds.iter().map(|sources| encode_sources(sources).unwrap()).collect();
    let mend = |bytes: &mut Vec<u8>| {
        if let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            let head = format!("forebay-sources 1 {:08x}", forebay_types::crc32c(&bytes[end + 1..]));
            bytes.splice(..end, head.into_bytes());
        }
    };
    run("sources of a dataset", seeds, mend, |input| match decode_sources(input, "sources") {
        Ok(sources) => {
            assert!(sources.iter().all(|source| source.keys.len() == 32), "no name leads out of the folder");
            format!("{} sources", sources.len().min(4))
        }
        Err(error) => refused(&error),
    });
}

/// The claim of the object with the number 4.
fn claim() -> LogClaim {
    LogClaim { id: 7, writer: WorkerId(1), second: WorkerId(2), number: 4 }
}

/// All that an object of a log may say, as the one with the number 9.
fn objects() -> Vec<LogObject> {
    let put = Change::Put(Key::U64(1), vec![Value::Text("one".into()), Value::Int(-3)]);
    let calls =
        vec![LoggedCall { id: 7, changes: vec![put, Change::Delete(Key::U64(2))] }, LoggedCall { id: 8, changes: vec![] }];
    let claimed = LogObject::Claim(LogClaim { number: 9, ..claim() });
    let kept = LogObject::Kept(claim(), calls.clone());
    vec![LogObject::Calls(calls), LogObject::Sealed, LogObject::Moved, claimed, kept, LogObject::Over]
}

#[test]
fn fuzz_an_object_of_a_log() {
    let schema = Schema::new("id", KeyType::U64).with("name", ValueType::Text).with("size", ValueType::Int);
    let seeds = objects().iter().map(|object| object.encode(9)).collect();
    run("objects of logs", seeds, mend_head, |input| {
        let keys = LogObject::keys_in(input, 9, "log");
        match LogObject::decode(input, 9, &schema, "log") {
            Ok(object) => {
                assert_eq!(LogObject::claim_in(input, 9, "log").unwrap(), object.claim());
                let calls = object.clone().into_calls().unwrap_or_default();
                assert_eq!(keys.unwrap().len(), calls.iter().map(|call| call.changes.len()).sum::<usize>());
                assert_eq!(LogObject::decode(&object.encode(9), 9, &schema, "log").unwrap().claim(), object.claim());
                format!("{} calls, claim {}", calls.len().min(4), object.claim().is_some())
            }
            Err(error) => format!("{} keys {}", refused(&error), keys.is_ok()),
        }
    });
}

#[test]
fn fuzz_a_file_of_a_claim() {
    let folder = tempfile::tempdir().unwrap();
    let place = LogPlace { folder: "a/b".into(), log: "0123456789abcdef".into(), shard: 7 };
    let mut file = ClaimFile::create(folder.path(), "second", ClaimedLog { mount: 3, place, claim: claim() }).unwrap();
    let path = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let empty = std::fs::read(&path).unwrap();
    objects().iter().for_each(|object| file.append(&object.encode(9)).unwrap());
    let whole = std::fs::read(&path).unwrap();
    let torn = whole[..whole.len() - 5].to_vec();
    // Behind the file's name and version are parts, each with its length and checksum before it.
    let mend = |bytes: &mut Vec<u8>| {
        let mut at = 12;
        while let Some(head) = bytes.get(at..at + 8) {
            let part = at + 8..at.saturating_add(8 + u32::from_le_bytes(head[..4].try_into().unwrap()) as usize);
            let Some(sum) = bytes.get(part.clone()).map(forebay_types::crc32c) else { return };
            bytes[at + 4..at + 8].copy_from_slice(&sum.to_le_bytes());
            at = part.end;
        }
    };
    run("files of claims", vec![empty, whole, torn], mend, |input| {
        std::fs::write(&path, input).unwrap();
        match ClaimFile::left(folder.path()) {
            Ok(left) => match left.first() {
                Some(file) => {
                    let objects = file.read(file.first(), usize::MAX).unwrap();
                    assert_eq!(objects.len() as u64, file.end() - file.first());
                    format!("{} objects", objects.len().min(8))
                }
                None => format!("none, and it is there: {}", path.exists()),
            },
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
                shape(error.message())
            }
        }
    });
}
