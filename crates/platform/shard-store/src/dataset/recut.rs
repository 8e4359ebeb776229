//! A shard with keys of other ones: a merge whose output is cut differently.

use std::path::Path;

use forebay_shard::Key;
use forebay_types::{Error, Result};

use super::{Packed, pack};
use crate::folder::Manifest;
use crate::store::Store;

/// Makes, in the folder `to`, which is not there yet, a shard of those records of the shards in `from` whose keys `belong` to it; its layers
/// are those of a size, and it has a cold file where all of them have one. They stay as they are, and are read one after the other. An
/// error of `belong` ends it, and leaves nothing. `Invalid` where they have not the same columns, or updates that are not merged: `merge` them first.
pub fn recut(from: &[&Path], to: &Path, size: f64, belong: impl Fn(&Key) -> Result<bool>) -> Result<Packed> {
    let Some(first) = from.first() else { return Err(Error::invalid("a shard is cut out of one at least")) };
    Store::free_for(to, false)?;
    let mut has_cold = true;
    for folder in from {
        has_cold &= Manifest::read(folder)?.cold.is_some();
    }
    let columns = Store::open(first)?.records()?.clone();
    let building = Store::build(to, columns, size)?;
    let mut building = if has_cold { building.with_cold() } else { building };
    for folder in from {
        building.push_from(&Store::open(folder)?, &belong)?;
    }
    building.finish()?;
    pack(to)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use forebay_shard::{KeyMap, Value};

    use super::*;
    use crate::columns::{Column, ColumnKind, Columns};
    use crate::dataset::merge;
    use crate::update::Change;

    const KEYS: u64 = 4000;

    fn columns(names: &[&str]) -> Columns {
        let column =
            |name: &&str| Column { name: name.to_string(), kind: if *name == "k" { ColumnKind::Uint } else { ColumnKind::Text } };
        Columns::new(names.iter().map(column).collect(), "k").unwrap()
    }

    fn text(key: u64, what: &str) -> Vec<Value> {
        vec![Value::Text(format!("{what} {key}"))]
    }

    /// A dataset's shards, with what was changed in each merged into it.
    fn shards(folder: &Path, count: usize) -> Vec<PathBuf> {
        let made = (0..count).map(|shard| {
            let (built, merged) = (folder.join(format!("built{shard}")), folder.join(format!("merged{shard}")));
            let is_here = |key: &u64| KeyMap::Hash(count).shard_of(&Key::U64(*key)) == shard;
            let mut building = Store::build(&built, columns(&["k", "v"]), 0.5).unwrap().with_cold();
            (0..KEYS).filter(is_here).for_each(|key| building.push(Key::U64(key), text(key, "built")).unwrap());
            building.finish().unwrap();
            let put = (0..KEYS + 500).step_by(7).filter(is_here).map(|key| Change::Put(Key::U64(key), text(key, "put")));
            let delete = (0..KEYS).step_by(11).filter(is_here).map(|key| Change::Delete(Key::U64(key)));
            std::fs::create_dir(&merged).unwrap();
            let served = Store::open(&built).unwrap();
            served.add_updates(1, put.chain(delete));
            merge(&served.standing().unwrap(), &merged, 0.3, 16 << 10).unwrap();
            merged
        });
        made.collect()
    }

    #[test]
    fn each_record_is_in_the_shard_that_its_key_says_and_in_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let before = shards(folder.path(), 3);
        let before: Vec<&Path> = before.iter().map(PathBuf::as_path).collect();
        let old: Vec<Store> = before.iter().map(|path| Store::open(path).unwrap()).collect();
        let listed = |path: &Path| {
            let names = std::fs::read_dir(path).unwrap().map(|file| file.unwrap().file_name());
            names.filter(|name| name != "counters").collect::<std::collections::BTreeSet<_>>()
        };
        let files: Vec<_> = before.iter().map(|path| listed(path)).collect();
        let all: u64 = old.iter().map(|store| store.count_all().unwrap()).sum();
        for count in [1, 2, 3, 7] {
            let mut records = 0;
            for shard in 0..count {
                let to = folder.path().join(format!("{count}-{shard}"));
                let packed = recut(&before, &to, 0.01, |key| Ok(KeyMap::Hash(count).shard_of(key) == shard)).unwrap();
                records += packed.shard.records;
                assert!(packed.shard.cold.is_some() && packed.cold_bytes().unwrap().is_some(), "they have one too");
                for (place, file) in packed.shard.files.iter().enumerate() {
                    assert_eq!(packed.bytes(place).unwrap().len() as u64, file.bytes);
                }
                let new = Store::open(&to).unwrap();
                assert_eq!(new.count_all().unwrap(), packed.shard.records);
                for key in (0..KEYS + 600).map(Key::U64) {
                    let is_here = KeyMap::Hash(count).shard_of(&key) == shard;
                    let expected = old[KeyMap::Hash(3).shard_of(&key)].get_json(&key, None).unwrap().filter(|_| is_here);
                    assert_eq!(new.get_json(&key, None).unwrap(), expected, "{key} of {shard} of {count}");
                }
            }
            assert_eq!(records, all, "in {count} shards");
        }
        assert_eq!(
            before.iter().map(|path| listed(path)).collect::<Vec<_>>(),
            files,
            "those that it was cut out of stay as they are"
        );
    }

    #[test]
    fn what_can_t_be_cut_is_refused_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other, to] = ["one", "other", "to"].map(|name| folder.path().join(name));
        for (path, names) in [(&one, ["k", "v"]), (&other, ["k", "w"])] {
            let mut building = Store::build(path, columns(&names), 0.5).unwrap();
            building.push(Key::U64(1), text(1, "x")).unwrap();
            building.finish().unwrap();
        }
        let cut = |from: &[&Path]| recut(from, &to, 0.1, |_| Ok(true)).map(drop).unwrap_err().message().to_string();
        assert!(cut(&[]).contains("at least"));
        let error = cut(&[one.as_path(), other.as_path()]);
        assert!(error.contains("other columns"), "{error}");
        let stop = |_: &Key| -> Result<bool> { Err(Error::closed("nobody waits for it")) };
        let error = recut(&[one.as_path()], &to, 0.1, stop).map(drop).unwrap_err();
        assert!(error.message().contains("nobody waits"), "{error}");
        // To be changed it is opened by one alone.
        Store::open_to_change(&one).unwrap().change(vec![Change::Delete(Key::U64(1))]).unwrap();
        let error = cut(&[one.as_path()]);
        assert!(error.contains("not merged"), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing half made is left");
        // A shard may come out empty.
        let empty = recut(&[other.as_path()], &to, 0.1, |_| Ok(false)).unwrap();
        assert_eq!(empty.shard.records, 0);
        assert!(recut(&[other.as_path()], &to, 0.1, |_| Ok(true)).is_err(), "and is not written over");
    }
}
