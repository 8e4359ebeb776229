//! Layers in memory and in the folder are the same ones, whatever fails on the way.

use std::collections::BTreeSet;
use std::path::Path;

use forebay_shard::LayerId;
use forebay_shard_store::Store;

use crate::support::{Records, build, check, random, records};

/// While a folder has the name of the next manifest, no manifest can be written; parts can.
struct NoManifest<'p>(&'p Path);

impl<'p> NoManifest<'p> {
    fn new(path: &'p Path) -> Self {
        std::fs::create_dir(path.join("manifest.tmp")).unwrap();
        Self(path)
    }
}

impl Drop for NoManifest<'_> {
    fn drop(&mut self) {
        std::fs::remove_dir(self.0.join("manifest.tmp")).unwrap();
    }
}

fn shard(path: &Path, size: f64) -> (Store, Records) {
    let all = records(&mut random(5), 300);
    build(path, &all, size);
    (Store::open_to_change(path).unwrap(), all)
}

fn ids(store: &Store) -> Vec<LayerId> {
    store.layers().iter().map(|layer| layer.id).collect()
}

/// What answers questions is what the folder has, each layer once.
#[track_caller]
fn memory_is_as_the_folder(store: &Store) {
    let opened = Store::open(store.path()).unwrap();
    assert_eq!(ids(store), ids(&opened));
    let parts = store.inspect().unwrap().parts;
    let names: BTreeSet<&String> = parts.iter().map(|part| &part.part).collect();
    assert_eq!(names.len(), parts.len(), "a layer is there twice: {parts:?}");
    let files = std::fs::read_dir(store.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files = files.filter(|name| name.starts_with("base-") || name.starts_with("layer-"));
    assert_eq!(files.count(), parts.len(), "parts were left that nothing names");
}

#[test]
fn layers_that_could_not_be_published_are_built_the_next_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.shard");
    let (store, all) = shard(&path, 0.5);
    for size in [3.0, 0.6, 2.0] {
        {
            let _no_manifest = NoManifest::new(&path);
            store.tune_with(size, 1).unwrap_err();
            memory_is_as_the_folder(&store);
            check(&store, &all, 1);
        }
        store.tune_with(size, 1).unwrap();
        memory_is_as_the_folder(&store);
        check(&store, &all, 2);
    }
    assert!(!ids(&store).is_empty());
}

#[test]
fn layers_are_only_dropped_together_with_their_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.shard");
    let (store, all) = shard(&path, 2.0);
    let some: Vec<LayerId> = ids(&store).into_iter().step_by(2).collect();
    {
        let _no_manifest = NoManifest::new(&path);
        store.drop_layers(&some).unwrap_err();
        memory_is_as_the_folder(&store);
    }
    store.drop_layers(&some).unwrap();
    memory_is_as_the_folder(&store);
    assert!(ids(&store).iter().all(|id| !some.contains(id)));
    check(&store, &all, 1);
}
