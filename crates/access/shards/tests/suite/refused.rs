//! Datasets that follow objects with records that workers refuse.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use forebay_shard::{Key, Value};
use forebay_shard_store::Columns;
use forebay_shards::{ReadRecords, Records};
use forebay_types::Result;

use crate::bed::path;
use crate::changing::refresh::{Lines, MANY, delete, followed_by, names, refresh, refresh_until, store};

/// Reads lines, of which the one of key 100001 has a name that workers refuse.
struct Large;

impl ReadRecords for Large {
    fn read(&self, file: &Path, columns: &Columns, each: &mut dyn FnMut(Records) -> Result<()>) -> Result<()> {
        Lines(AtomicUsize::new(MANY)).read(file, columns, &mut |mut records: Records| {
            for (key, values) in &mut records {
                if *key == Key::U64(100_001) {
                    values[0] = Value::Text("x".repeat(5 << 20));
                }
            }
            each(records)
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_can_not_be_written_again_has_nothing_read_again_for_ever() {
    let (bed, shards) = followed_by(1).await;
    store(&bed, "a.txt", "100001,a1\n100002,a2").await;
    refresh(&bed).await;
    store(&bed, "b.txt", "100001,b1\n100002,b2").await;
    refresh(&bed).await;
    delete(&bed, "b.txt").await;
    // As of an object that the dataset was made of past the workers.
    let scratch = bed.folder().join("scratch");
    let done = forebay_shards::refresh(&bed.client, &path("orders.shards"), Arc::new(Large), &scratch).await.unwrap();
    assert!(done.errors.len() == 1 && done.errors[0].starts_with("/lake/in/a.txt: "), "{:?}", done.errors);
    assert!(done.errors[0].contains("4 MiB"), "{:?}", done.errors);
    names(&shards, &[Some("b1"), Some("a2")]).await;
    let again = refresh_until(&bed, 0).await.unwrap();
    assert_eq!((again.added, again.replaced, again.gone, again.errors), (0, 0, 0, vec![]), "nothing is read any more");
}
