//! The modules of a crate by their files, and which of them a path leads to.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::paths;
use crate::tree::RustFile;

/// A module's path below the crate.
type Module = Vec<String>;

pub(super) struct Modules<'a> {
    code: BTreeMap<Module, &'a str>,
    /// Each module, and each folder above one.
    all: BTreeSet<Module>,
    /// What a module brings in by `use`: name -> path.
    imports: HashMap<Module, HashMap<String, Vec<String>>>,
}

/// Imports of imports are followed so far; a longer way is a circle of `use`.
const STEPS_MAX: usize = 8;

impl<'a> Modules<'a> {
    pub(super) fn new(folder: &str, files: &[&'a RustFile]) -> Self {
        let mut modules = Self { code: BTreeMap::new(), all: BTreeSet::new(), imports: HashMap::new() };
        for file in files {
            let inside = file.path.strip_prefix(&format!("{folder}/src/")).unwrap_or(&file.path);
            let mut module: Module = inside.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
            let root = module.len() == 1 && (module[0] == "lib" || module[0] == "main");
            if root || module.last().is_some_and(|last| last == "mod") {
                module.pop();
            }
            let code = file.source.shipped.as_str();
            for end in 0..=module.len() {
                modules.all.insert(module[..end].to_vec());
            }
            let named = paths::imports(code).into_iter().filter_map(|path| Some((path.last()?.clone(), path)));
            modules.imports.insert(module.clone(), named.collect());
            modules.code.insert(module, code);
        }
        modules
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Module, &str)> {
        self.code.iter().map(|(module, code)| (module, *code))
    }

    /// The module that a path from inside `from` leads to, if it is one of the crate.
    pub(super) fn resolve(&self, from: &Module, path: &[String]) -> Option<Module> {
        self.follow(from, path, STEPS_MAX)
    }

    fn follow(&self, from: &Module, path: &[String], steps: usize) -> Option<Module> {
        let mut module = from.clone();
        let mut names = path.iter().peekable();
        while let Some(name) = names.next_if(|name| ["crate", "self", "super"].contains(&name.as_str())) {
            match name.as_str() {
                "crate" => module.clear(),
                "super" => drop(module.pop()?),
                _ => {}
            }
        }
        for name in names {
            module.push(name.clone());
            if self.all.contains(&module) {
                continue;
            }
            module.pop();
            // An item, or a name that the module has from elsewhere.
            let import = self.imports.get(&module).and_then(|imports| imports.get(name));
            let leads_on = import.filter(|import| steps > 0 && self.begins_here(&module, import));
            return if let Some(import) = leads_on { self.follow(&module, import, steps - 1) } else { Some(module) };
        }
        Some(module)
    }

    /// Whether a path of `use` leads into this crate and not into another.
    fn begins_here(&self, module: &Module, path: &[String]) -> bool {
        let Some(first) = path.first() else { return false };
        let mut child = module.clone();
        child.push(first.clone());
        ["crate", "self", "super"].contains(&first.as_str()) || self.all.contains(&child)
    }
}
