//! The checkout in memory: its crates with their files, and its pages.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::manifest::{self, Row};
use crate::source::{Source, test_modules};

/// The owner of what is in no crate.
pub(crate) const NOBODY: &str = ".";
/// Hidden folders that are part of the checkout all the same.
const HIDDEN: [&str; 4] = [".cargo", ".ci", ".config", ".github"];
/// What is built or fetched, never checked in.
const BUILT: [&str; 3] = ["target", "node_modules", "__pycache__"];
/// Text that the rules read besides Rust.
const TEXTS: [&str; 8] = ["md", "toml", "py", "sh", "yml", "yaml", "txt", "json"];

/// A file of text that is not Rust.
pub(crate) struct Page {
    pub(crate) owner: String,
    pub(crate) path: String,
    pub(crate) text: String,
}

/// A Rust file.
pub(crate) struct RustFile {
    pub(crate) owner: String,
    pub(crate) path: String,
    pub(crate) source: Source,
    /// Whether it goes into what is built, as against tests and examples.
    pub(crate) is_shipped: bool,
}

impl RustFile {
    /// The files and the folders of the modules that it declares for tests.
    fn test_places(&self) -> Vec<String> {
        let (folder, name) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        let inside = match name {
            "lib.rs" | "main.rs" | "mod.rs" => folder.to_owned(),
            _ => self.path.trim_end_matches(".rs").to_owned(),
        };
        let modules = test_modules(&self.source.code);
        modules.flat_map(|module| [format!("{inside}/{module}.rs"), format!("{inside}/{module}/")]).collect()
    }
}

/// All that the rules look at.
pub(crate) struct Tree {
    pub(crate) root: PathBuf,
    pub(crate) rows: Vec<Row>,
    /// Each row's Cargo.toml by its folder.
    pub(crate) manifests: BTreeMap<String, String>,
    pub(crate) rust: Vec<RustFile>,
    pub(crate) pages: Vec<Page>,
}

impl Tree {
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let rows = manifest::rows(&text(&root.join("Cargo.toml"))?);
        if rows.is_empty() {
            return Err(io::Error::other(format!("{} lists no members", root.join("Cargo.toml").display())));
        }
        let mut manifests = BTreeMap::new();
        for row in &rows {
            manifests.insert(row.folder.clone(), text(&root.join(&row.folder).join("Cargo.toml"))?);
        }
        let mut tree = Self { root: root.to_owned(), rows, manifests, rust: Vec::new(), pages: Vec::new() };
        tree.walk(root)?;
        tree.set_tests_apart();
        Ok(tree)
    }

    fn set_tests_apart(&mut self) {
        let tests: Vec<String> = self.rust.iter().flat_map(RustFile::test_places).collect();
        for file in &mut self.rust {
            let is_source = file.path.starts_with(&format!("{}/src/", file.owner));
            let of_tests = |place: &String| file.path == *place || place.ends_with('/') && file.path.starts_with(place.as_str());
            file.is_shipped = is_source && !tests.iter().any(of_tests);
        }
    }

    fn walk(&mut self, folder: &Path) -> io::Result<()> {
        let mut entries: Vec<PathBuf> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
        entries.sort();
        for path in entries {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let hidden = name.starts_with('.') && !HIDDEN.contains(&name.as_str());
            // A link would be read under two names, or lead outside.
            if hidden || BUILT.contains(&name.as_str()) || path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                self.walk(&path)?;
            } else {
                self.take(&path)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, file: &Path) -> io::Result<()> {
        let path = file.strip_prefix(&self.root).unwrap_or(file).to_string_lossy().replace('\\', "/");
        let extension = file.extension().unwrap_or_default().to_string_lossy().into_owned();
        let owner = self.owner(&path);
        if extension == "rs" {
            self.rust.push(RustFile { owner, path, source: Source::new(text(file)?), is_shipped: false });
        } else if TEXTS.contains(&extension.as_str()) || path.starts_with(".ci/") || path == "Makefile" {
            self.pages.push(Page { owner, path, text: text(file)? });
        }
        Ok(())
    }

    /// The crate that a file is in: of two that hold it, the inner one.
    fn owner(&self, path: &str) -> String {
        let holds = |folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        let holders = self.rows.iter().map(|row| row.folder.as_str()).filter(|folder| holds(folder));
        holders.max_by_key(|folder| folder.len()).unwrap_or(NOBODY).to_owned()
    }
}

/// A file's text; what is not UTF-8 in it says nothing to the rules.
fn text(path: &Path) -> io::Result<String> {
    let bytes = fs::read(path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
