//! A dataset's shard with its changes compressed into it.

use std::path::Path;

use forebay_types::Result;

use super::{Packed, pack};
use crate::store::{Standing, Store, rewrite};

/// Makes a shard of what another one has, with the changes on top, in the empty folder `to`: in parts of about `part_bytes` of input each,
/// with the layers of a size. One part is in memory at a time, in about seven times its bytes; beside the files there is as much on disk for
/// a while as the input takes. The other one stays as it is, whoever tunes it meanwhile.
pub fn merge(standing: &Standing, to: &Path, size: f64, part_bytes: u64) -> Result<Packed> {
    assert!(size > 0.0, "a size is a part of the input");
    rewrite(standing, to, size, part_bytes)?;
    let store = Store::open_to_change(to)?;
    store.tune_with(size, 1)?;
    store.close()?;
    pack(to)
}

#[cfg(test)]
mod tests {
    use forebay_shard::{Key, Value};

    use super::*;
    use crate::columns::{Column, ColumnKind, Columns};
    use crate::update::Change;

    const PART_BYTES: u64 = 64 << 10;

    #[test]
    fn the_merged_shard_answers_as_the_one_with_its_changes_on_top() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        let columns = Columns::new(vec![Column::new("k", ColumnKind::Uint), Column::new("v", ColumnKind::Text)], "k").unwrap();
        let mut building = Store::build(&from, columns, 0.9).unwrap();
        let value = |text: String| vec![Value::Text(text)];
        (0..5000u64).for_each(|key| building.push(Key::U64(key), value(format!("value {key}"))).unwrap());
        building.finish().unwrap();
        let served = Store::open(&from).unwrap();
        let put = (0..2000u64).map(|key| Change::Put(Key::U64(key * 7), value(format!("changed {key}"))));
        served.add_updates(1, put.chain((0..500).map(|key| Change::Delete(Key::U64(key * 3)))));
        let before = std::fs::read_dir(&from).unwrap().count();
        std::fs::create_dir(&to).unwrap();
        let packed = merge(&served.standing().unwrap(), &to, 0.01, PART_BYTES).unwrap();
        assert_eq!(packed.shard.records, served.count_all().unwrap());
        let merged = Store::open(&to).unwrap();
        assert_eq!(merged.inspect().unwrap().updates, 0);
        for key in (0..15_000).map(Key::U64) {
            assert_eq!(merged.get_json(&key, None).unwrap(), served.get_json(&key, None).unwrap(), "{key}");
        }
        assert_eq!(std::fs::read_dir(&from).unwrap().count(), before, "the one that is served stays as it is");
        assert_eq!(Store::open(&from).unwrap().count_all().unwrap(), 5000);
        for (place, file) in packed.shard.files.iter().enumerate() {
            assert_eq!(packed.bytes(place).unwrap().len() as u64, file.bytes);
        }
    }

    #[test]
    fn records_that_are_more_than_is_read_at_once_are_all_there() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        let columns = Columns::new(vec![Column::new("k", ColumnKind::Uint), Column::new("v", ColumnKind::Text)], "k").unwrap();
        let mut building = Store::build(&from, columns, 0.5).unwrap();
        let text = |key: u64| format!("{key} ").repeat(8 << 10);
        (0..150).for_each(|key| building.push(Key::U64(key), vec![Value::Text(text(key))]).unwrap());
        building.finish().unwrap();
        std::fs::create_dir(&to).unwrap();
        let packed = merge(&Store::open(&from).unwrap().standing().unwrap(), &to, 0.01, PART_BYTES).unwrap();
        assert_eq!(packed.shard.records, 150);
        let merged = Store::open(&to).unwrap();
        for key in 0..150 {
            assert_eq!(merged.get(&Key::U64(key), None).unwrap(), Some(vec![Value::Text(text(key))]), "{key}");
        }
    }

    #[test]
    fn all_records_may_go() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        let column = |name: &str| Column { name: name.into(), kind: ColumnKind::Uint };
        let columns = Columns::new(vec![column("k"), column("v")], "k").unwrap();
        let mut building = Store::build(&from, columns, 0.5).unwrap();
        (0..3).for_each(|key| building.push(Key::U64(key), vec![Value::Null]).unwrap());
        building.finish().unwrap();
        std::fs::create_dir(&to).unwrap();
        let served = Store::open(&from).unwrap();
        served.add_updates(1, (0..3).map(|key| Change::Delete(Key::U64(key))));
        let packed = merge(&served.standing().unwrap(), &to, 0.01, PART_BYTES).unwrap();
        assert_eq!(packed.shard.records, 0);
        assert_eq!(Store::open(&to).unwrap().count_all().unwrap(), 0);
    }
}
