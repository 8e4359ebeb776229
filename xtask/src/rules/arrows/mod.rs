//! Which module of a crate uses which.
//!
//! At every folder the modules in it are boxes, and a path from inside one into another is an arrow. Arrows between a module and
//! what lies inside it are not counted: that is one thing.

mod modules;
mod paths;

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{RustFile, Tree};
use modules::Modules;

/// Which box has an arrow to which, in one folder.
pub(super) type Arrows = BTreeMap<String, BTreeSet<String>>;

/// The arrows of a crate by the folders that they are in, from its `src` on. Each box is there, without arrows too.
pub(super) fn arrows(tree: &Tree, owner: &str) -> BTreeMap<Vec<String>, Arrows> {
    let files: Vec<&RustFile> = tree.rust.iter().filter(|file| file.owner == owner && file.is_shipped).collect();
    let modules = Modules::new(owner, &files);
    let mut folders: BTreeMap<Vec<String>, Arrows> = BTreeMap::new();
    for (from, code) in modules.iter() {
        if let Some((name, folder)) = from.split_last() {
            folders.entry(folder.to_vec()).or_default().entry(name.clone()).or_default();
        }
        for path in paths::paths(code) {
            let Some(to) = modules.resolve(from, &path) else { continue };
            let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if let (Some(a), Some(b)) = (from.get(shared), to.get(shared)) {
                folders.entry(from[..shared].to_vec()).or_default().entry(a.clone()).or_default().insert(b.clone());
            }
        }
    }
    folders
}
