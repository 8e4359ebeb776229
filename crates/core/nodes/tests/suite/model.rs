//! Against a model: a map from whole paths to what is there, and rules that say nothing of containers' insides.

use std::collections::BTreeMap;

use forebay_nodes::{CreateOptions, NodeErrorKind, NodeType};
use proptest::prelude::*;

use crate::store::Store;

type Model = BTreeMap<String, (NodeType, bool, Vec<u8>)>;

#[derive(Clone, Debug)]
enum Step {
    Create(String, NodeType, bool),
    Put(String, Vec<u8>),
    Append(String, Vec<u8>),
    Write(String, u64, Vec<u8>),
    Rename(String, String),
    Delete(String, bool),
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 1..4).prop_map(|names| format!("/tmp/{}", names.join("/")))
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    (prop::sample::select(vec![0, 1, 5, 16 << 10, (16 << 10) + 1, 70_000]), any::<u8>())
        .prop_map(|(len, first)| (0..len).map(|at| first.wrapping_add((at % 251) as u8)).collect())
}

fn step() -> impl Strategy<Value = Step> {
    let kind = prop::sample::select(vec![
        NodeType::File,
        NodeType::KeyValue,
        NodeType::Table,
        NodeType::Directory,
        NodeType::Directory,
        NodeType::Bag,
    ]);
    prop_oneof![
        4 => (path(), kind, any::<bool>()).prop_map(|(path, kind, shown)| Step::Create(path, kind, shown)),
        2 => (path(), bytes()).prop_map(|(path, bytes)| Step::Put(path, bytes)),
        2 => (path(), bytes()).prop_map(|(path, bytes)| Step::Append(path, bytes)),
        2 => (path(), 0u64..80_000, bytes()).prop_map(|(path, offset, bytes)| Step::Write(path, offset, bytes)),
        3 => (path(), path()).prop_map(|(path, to)| Step::Rename(path, to)),
        1 => (path(), any::<bool>()).prop_map(|(path, recursive)| Step::Delete(path, recursive)),
    ]
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').unwrap().0
}

/// Whether the path's container can hold such a node.
fn admits(model: &Model, path: &str, kind: NodeType) -> Result<(), NodeErrorKind> {
    if parent(path) == "/tmp" {
        return Ok(());
    }
    reach(model, path)?;
    if model[parent(path)].0.holds(kind) { Ok(()) } else { Err(NodeErrorKind::WrongType) }
}

/// Whether all containers on the way are there.
fn reach(model: &Model, path: &str) -> Result<(), NodeErrorKind> {
    let ends = path.match_indices('/').map(|(at, _)| at).skip(2);
    for end in ends {
        match model.get(&path[..end]) {
            None => return Err(NodeErrorKind::NotFound),
            Some((kind, ..)) if !kind.is_container() => return Err(NodeErrorKind::NotContainer),
            Some(_) => {}
        }
    }
    Ok(())
}

fn apply(model: &mut Model, step: &Step) -> Result<(), NodeErrorKind> {
    use NodeErrorKind::*;
    match step {
        Step::Create(path, kind, shown) => {
            admits(model, path, *kind)?;
            match model.get(path) {
                Some((NodeType::KeyValue, ..)) if *kind == NodeType::KeyValue => {}
                Some(_) => return Err(Exists),
                None => {}
            }
            model.insert(path.clone(), (*kind, *shown, Vec::new()));
        }
        Step::Put(path, bytes) => {
            reach(model, path)?;
            match model.get_mut(path) {
                Some((NodeType::KeyValue, _, value)) => *value = bytes.clone(),
                Some(_) => return Err(WrongType),
                None => {
                    admits(model, path, NodeType::KeyValue)?;
                    model.insert(path.clone(), (NodeType::KeyValue, true, bytes.clone()));
                }
            }
        }
        Step::Append(path, bytes) => {
            reach(model, path)?;
            match model.get_mut(path) {
                Some((NodeType::File, _, file)) => file.extend_from_slice(bytes),
                Some(_) => return Err(WrongType),
                None => return Err(NotFound),
            }
        }
        Step::Write(path, offset, bytes) => {
            reach(model, path)?;
            match model.get_mut(path) {
                Some((NodeType::File, _, file)) => {
                    let offset = *offset as usize;
                    if offset > file.len() {
                        return Err(Invalid);
                    }
                    let end = file.len().max(offset + bytes.len());
                    file.resize(end, 0);
                    file[offset..offset + bytes.len()].copy_from_slice(bytes);
                }
                Some(_) => return Err(WrongType),
                None => return Err(NotFound),
            }
        }
        Step::Rename(path, to) => {
            reach(model, path)?;
            let Some((kind, ..)) = model.get(path).cloned() else { return Err(NotFound) };
            if kind.is_container() && (to == path || to.starts_with(&format!("{path}/"))) {
                return Err(Invalid);
            }
            reach(model, to)?;
            if to == path {
                return Ok(());
            }
            let to = match model.get(to) {
                Some((into, ..)) if into.is_container() => format!("{to}/{}", path.rsplit('/').next().unwrap()),
                _ => to.clone(),
            };
            if to == *path {
                return Ok(());
            }
            admits(model, &to, kind)?;
            match model.get(&to) {
                Some((NodeType::KeyValue, ..)) if kind == NodeType::KeyValue => {}
                Some(_) => return Err(Exists),
                None => {}
            }
            let inside = format!("{path}/");
            let moved: Vec<String> = model.keys().filter(|key| *key == path || key.starts_with(&inside)).cloned().collect();
            for key in moved {
                let node = model.remove(&key).unwrap();
                model.insert(format!("{to}{}", &key[path.len()..]), node);
            }
        }
        Step::Delete(path, recursive) => {
            reach(model, path)?;
            if !model.contains_key(path) {
                return Err(NotFound);
            }
            let inside = format!("{path}/");
            if !recursive && model.keys().any(|key| key.starts_with(&inside)) {
                return Err(NotEmpty);
            }
            model.retain(|key, _| key != path && !key.starts_with(&inside));
        }
    }
    Ok(())
}

fn run(store: &mut Store, step: &Step) -> Result<(), NodeErrorKind> {
    let done = match step {
        Step::Create(path, kind, enumerable) => {
            store.create(path, CreateOptions { enumerable: *enumerable, ..CreateOptions::new(*kind) })
        }
        Step::Put(path, bytes) => store.put(path, bytes).map(drop),
        Step::Append(path, bytes) => store.append(path, bytes).map(drop),
        Step::Write(path, offset, bytes) => store.write(path, *offset, bytes).map(drop),
        Step::Rename(path, to) => store.rename(path, to),
        Step::Delete(path, recursive) => store.delete(path, *recursive),
    };
    done.map_err(|error| error.kind)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]
    #[test]
    fn it_does_what_the_model_does(steps in prop::collection::vec(step(), 1..60)) {
        let (mut store, mut model) = (Store::new(1 << 30), Model::new());
        for step in &steps {
            prop_assert_eq!(run(&mut store, step), apply(&mut model, step), "{:?}", step);
            for (path, (kind, shown, bytes)) in &model {
                let stat = store.stat(path).unwrap().unwrap();
                prop_assert_eq!((stat.kind, stat.bytes, stat.enumerable), (*kind, bytes.len() as u64, *shown));
                match kind {
                    NodeType::File => prop_assert!(store.read(path, 0, u64::MAX >> 1).unwrap() == *bytes),
                    NodeType::KeyValue => prop_assert!(store.get(path).unwrap() == *bytes),
                    _ => {
                        let inside = model.iter().filter(|(key, (_, shown, _))| parent(key) == path && *shown);
                        let names: Vec<&str> = inside.map(|(key, _)| key.rsplit('/').next().unwrap()).collect();
                        prop_assert_eq!(store.list(path).unwrap(), names);
                    }
                }
            }
            prop_assert_eq!(store.names.nodes(), model.len() as u64);
        }
        for top in ["/tmp/a", "/tmp/b", "/tmp/c"] {
            let _ = store.delete(top, true);
        }
        prop_assert_eq!((store.names.nodes(), store.names.bytes(), store.blocks.len()), (0, 0, 0), "nothing is left behind");
    }
}
