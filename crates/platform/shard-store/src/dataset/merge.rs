//! A dataset's shard with its changes compressed into it.

use std::path::Path;

use forebay_types::{Result, ResultExt};

use super::{Packed, pack};
use crate::folder::Manifest;
use crate::store::Store;
use crate::update::Change;

/// Changes that go into the copy's log at once.
const TOGETHER: usize = 4096;

/// Makes a shard of the one in the folder `from` and of changes that came since, in the empty folder `to` of the same file system;
/// its layers are those of a size. The one that it is made of stays as it is; nobody may tune it meanwhile.
pub fn merge(from: &Path, to: &Path, size: f64, changes: Vec<Change>) -> Result<Packed> {
    assert!(size > 0.0, "a size is a part of the input");
    let manifest = Manifest::read(from)?;
    // Files never change: the copy has them too, until the merge lets them go. Layers make it faster.
    for entry in manifest.files() {
        let (file, copy) = (from.join(&entry.file), to.join(&entry.file));
        std::fs::hard_link(&file, &copy).context(|| copy.display())?;
    }
    Manifest { size, ..manifest }.write(to)?;
    let store = Store::open_to_change(to)?;
    let mut changes = changes.into_iter();
    loop {
        let together: Vec<Change> = changes.by_ref().take(TOGETHER).collect();
        if together.is_empty() {
            break;
        }
        store.change(together)?;
    }
    store.merge()?;
    store.tune_with(size, 1)?;
    store.close()?;
    pack(to)
}

#[cfg(test)]
mod tests {
    use forebay_shard::{Key, Value};

    use super::*;
    use crate::columns::{Column, ColumnKind, Columns};

    #[test]
    fn the_merged_shard_answers_as_the_one_with_its_changes_on_top() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        let column = |name: &str, kind| Column { name: name.into(), kind };
        let columns = Columns::new(vec![column("k", ColumnKind::Uint), column("v", ColumnKind::Text)], "k").unwrap();
        let mut building = Store::build(&from, columns, 0.9).unwrap();
        let value = |text: String| vec![Value::Text(text)];
        (0..5000u64).for_each(|key| building.push(Key::U64(key), value(format!("value {key}"))).unwrap());
        building.finish().unwrap();
        let served = Store::open(&from).unwrap();
        let put = (0..2000u64).map(|key| Change::Put(Key::U64(key * 7), value(format!("changed {key}"))));
        served.add_updates(1, put.chain((0..500).map(|key| Change::Delete(Key::U64(key * 3)))));
        let before = std::fs::read_dir(&from).unwrap().count();
        std::fs::create_dir(&to).unwrap();
        let packed = merge(&from, &to, 0.01, served.updates()).unwrap();
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
    fn all_records_may_go() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        let column = |name: &str| Column { name: name.into(), kind: ColumnKind::Uint };
        let columns = Columns::new(vec![column("k"), column("v")], "k").unwrap();
        let mut building = Store::build(&from, columns, 0.5).unwrap();
        (0..3).for_each(|key| building.push(Key::U64(key), vec![Value::Null]).unwrap());
        building.finish().unwrap();
        std::fs::create_dir(&to).unwrap();
        let packed = merge(&from, &to, 0.01, (0..3).map(|key| Change::Delete(Key::U64(key))).collect()).unwrap();
        assert_eq!(packed.shard.records, 0);
        assert_eq!(Store::open(&to).unwrap().count_all().unwrap(), 0);
    }
}
