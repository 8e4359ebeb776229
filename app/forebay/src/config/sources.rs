use std::path::{Path, PathBuf};

use figment::providers::{Format, Serialized, Toml};
use figment::{Figment, Provider};

use super::settings::{Defaults, KEYS, Settings};
use super::variables::Variables;
use crate::exit::{Failure, Outcome};

/// Where the configuration comes from.
pub(crate) struct Sources {
    figment: Figment,
    file: Option<PathBuf>,
}

impl Sources {
    /// Reads all sources. Unknown keys are errors that name the key and where it stands.
    pub(crate) fn read(file: Option<&Path>, flags: &impl serde::Serialize) -> Outcome<Self> {
        let file = match file.map(PathBuf::from).or_else(|| std::env::var_os("FOREBAY_CONFIG").map(PathBuf::from)) {
            Some(file) if !file.is_file() => {
                return Err(Failure::Usage(format!("configuration {}: there is no such file", file.display())));
            }
            Some(file) => Some(file),
            None => usual_places().into_iter().find(|file| file.is_file()),
        };
        let mut figment = Figment::from(Serialized::defaults(Defaults::default()));
        if let Some(file) = &file {
            let toml = Toml::file_exact(file);
            let data =
                toml.data().map_err(|error| Failure::Usage(format!("configuration {}: {}", file.display(), error.kind)))?;
            for key in data.values().flat_map(|dict| dict.keys()) {
                known(key, || format!("in {}", file.display()))?;
            }
            figment = figment.merge(toml);
        }
        let variables = Variables::of_process();
        for (key, variable, _) in variables.entries() {
            known(&key, || format!("in the variable {variable}"))?;
        }
        let figment = figment.merge(variables).merge(Serialized::defaults(flags));
        Ok(Self { figment, file })
    }

    /// The settings. Values that can't be read are errors that name the key, its source and what is allowed.
    pub(crate) fn settings(&self) -> Outcome<Settings> {
        self.figment.extract().map_err(|error| {
            let key = error.path.last().cloned().unwrap_or_default();
            let place = match self.of(&key) {
                Source::Default => String::new(),
                Source::File(file) => format!(" in {}", file.display()),
                Source::Variable => format!(" in the variable FOREBAY_{}", key.to_ascii_uppercase().replace('-', "_")),
                Source::Flag => format!(" in the flag --{key}"),
            };
            Failure::Usage(format!("configuration key {key}{place}: {}", error.kind))
        })
    }

    /// Which source a key's value is from.
    pub(crate) fn of(&self, key: &str) -> Source {
        match self.figment.find_metadata(key) {
            Some(metadata) if metadata.name == "variable" => Source::Variable,
            Some(metadata) if metadata.name.contains("TOML") => Source::File(self.file.clone().unwrap_or_default()),
            Some(metadata) if metadata.name.contains("Defaults") => Source::Default,
            Some(_) => Source::Flag,
            None => Source::Default,
        }
    }
}

/// A source of configuration.
pub(crate) enum Source {
    Default,
    File(PathBuf),
    Variable,
    Flag,
}

fn usual_places() -> Vec<PathBuf> {
    let home = std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config")));
    [Some(PathBuf::from("forebay.toml")), home.map(|folder| folder.join("forebay/forebay.toml"))].into_iter().flatten().collect()
}

fn known(key: &str, place: impl FnOnce() -> String) -> Outcome {
    if KEYS.iter().any(|(known, _)| *known == key) {
        return Ok(());
    }
    let near =
        KEYS.iter().map(|(known, _)| *known).min_by_key(|known| distance(key, known)).filter(|near| distance(key, near) <= 3);
    let remedy = match near {
        Some(near) => format!("did you mean {near}?"),
        None => "`forebay config` lists the keys that there are".to_string(),
    };
    Err(Failure::Usage(format!("unknown configuration key {key:?} {}: {remedy}", place())))
}

/// Edits between two words (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("dram", "dram"), 0);
        assert_eq!(distance("drm", "dram"), 1);
        assert_eq!(distance("data_dir", "data-dir"), 1);
        assert_eq!(distance("", "http"), 4);
    }
}
