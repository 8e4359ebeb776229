//! Where settings are written: a file, variables, flags. The later says what counts.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use forebay_data_folder::named_by;
use toml::Spanned;

use super::setting::{Setting, VARIABLES};
use super::value::{Value, Written};
use crate::exit::{Failure, Outcome};

/// Variables that are not settings: `FOREBAY_CONFIG` names the file itself, the others belong to the build and the tests.
const OTHER_VARIABLES: [&str; 5] = ["CONFIG", "CACHE", "VERSITYGW", "CI_", "TEST_"];
/// A key that differs from a known one by more letters isn't a slip of it.
const NEAR_EDITS: usize = 3;

/// What is written of settings, the strongest last.
pub(crate) struct Sources(Vec<Said>);

struct Said {
    setting: &'static Setting,
    written: Written,
    source: Source,
}

/// What is wrong with a password in a flag.
const SEEN_BY_ALL: &str = "all users of this machine see the flags of a process, and this one has a password: write it in the settings \
                           file, in the key's variable, or leave it out and give PostgreSQL's client PGPASSFILE or PGPASSWORD";

fn has_password(written: &Written) -> bool {
    let in_query = |url: &url::Url| url.query_pairs().any(|(key, _)| key == "password");
    written.text().is_ok_and(|text| url::Url::parse(text).is_ok_and(|url| url.password().is_some() || in_query(&url)))
}

/// Where a setting is written.
pub(crate) enum Source {
    File { file: PathBuf, line: usize },
    Variable,
    Flag,
}

/// The settings that there are.
type All = &'static [Setting];

impl Sources {
    /// Reads all sources. Unknown keys are errors that name the key and where it stands.
    pub(crate) fn read(all: All, file: Option<&Path>, flags: Vec<(&'static Setting, Written)>) -> Outcome<Self> {
        let mut said = Vec::new();
        if let Some(file) = file_of(file)? {
            of_file(all, &file, &mut said)?;
        }
        // A variable whose name or value is no text is none of ours.
        of_variables(
            all,
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
            &mut said,
        )?;
        said.extend(flags.into_iter().map(|(setting, written)| Said { setting, written, source: Source::Flag }));
        Ok(Self(said))
    }

    /// What is said of a key; none leaves it to its default. A value without sense is an error that names the key, where it
    /// stands, and what would be right.
    pub(super) fn value<T: Value>(&self, key: &str) -> Outcome<Option<T>> {
        let Some(Said { written, source, .. }) = self.strongest(key) else { return Ok(None) };
        let folder = match source {
            Source::File { file, .. } => file.parent().unwrap_or(Path::new("")),
            Source::Flag if has_password(written) => return Err(self.wrong(key, SEEN_BY_ALL)),
            Source::Variable | Source::Flag => Path::new(""),
        };
        T::read(written, folder).map(Some).map_err(|why| self.wrong(key, &why))
    }

    /// Where the value of a key is from; none for its default.
    pub(super) fn of(&self, key: &str) -> Option<&Source> {
        self.strongest(key).map(|said| &said.source)
    }

    /// What is wrong with the value of a key, and where that stands.
    pub(super) fn wrong(&self, key: &str, why: &str) -> Failure {
        let place = self.strongest(key).map_or(String::new(), |said| format!(" in {}", said.place()));
        Failure::Usage(format!("configuration key {key}{place}: {why}"))
    }

    fn strongest(&self, key: &str) -> Option<&Said> {
        self.0.iter().rfind(|said| said.setting.key == key)
    }
}

impl Said {
    fn place(&self) -> String {
        match &self.source {
            Source::File { file, line } => format!("{}:{line}", file.display()),
            Source::Variable => format!("the variable {}", self.setting.variable()),
            Source::Flag => format!("the flag --{}", self.setting.flag_name()),
        }
    }
}

/// The file that is named, else the first of the usual ones that is there.
fn file_of(named: Option<&Path>) -> Outcome<Option<PathBuf>> {
    let variable = || std::env::var_os("FOREBAY_CONFIG").filter(|file| !file.is_empty()).map(PathBuf::from);
    let named = named.map(PathBuf::from).or_else(variable);
    match named {
        Some(file) if file.is_dir() => Err(wrong_file(&file, "it is a folder: name a file in it")),
        Some(file) if !file.is_file() => Err(wrong_file(&file, "there is no such file")),
        Some(file) => Ok(Some(file)),
        None => {
            let home = named_by("XDG_CONFIG_HOME").or_else(|| named_by("HOME").map(|home| home.join(".config")));
            let usual = [Some(PathBuf::from("forebay.toml")), home.map(|folder| folder.join("forebay/forebay.toml"))];
            Ok(usual.into_iter().flatten().find(|file| file.is_file()))
        }
    }
}

fn of_file(all: All, file: &Path, said: &mut Vec<Said>) -> Outcome {
    let text = fs::read_to_string(file).map_err(|error| wrong_file(file, error))?;
    let line = |at: usize| 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
    let entries: BTreeMap<Spanned<String>, Spanned<toml::Value>> = toml::from_str(&text).map_err(|error| {
        // The line as it stands may hold a secret: only its number is told.
        let place = error.span().map_or(String::new(), |span| format!("line {}: ", line(span.start)));
        let why = error.message().trim().replace('\n', ", ");
        // A size or an address without quotes, most often.
        let remedy = if why.contains("expected") { "; write KEY = \"VALUE\", as in dram = \"4GiB\"" } else { "" };
        wrong_file(file, format!("{place}{why}{remedy}"))
    })?;
    let mut entries = entries.into_iter().collect::<Vec<_>>();
    entries.sort_by_key(|(key, _)| key.span().start);
    for (key, value) in entries {
        let source = Source::File { file: file.to_path_buf(), line: line(key.span().start) };
        let place = || format!("in {}:{}", file.display(), line(key.span().start));
        if value.get_ref().is_table() && !all.iter().any(|setting| setting.key == key.get_ref()) {
            let key = key.get_ref();
            return Err(Failure::Usage(format!(
                "configuration {key:?} {}: there are no sections, all keys stand at the top: take the line out",
                place()
            )));
        }
        let setting = known(all, key.get_ref(), place)?;
        said.push(Said { setting, written: written(value.into_inner()), source });
    }
    Ok(())
}

fn written(value: toml::Value) -> Written {
    match value {
        toml::Value::String(text) => Written::Text(text),
        toml::Value::Integer(number) => Written::Number(number.to_string()),
        toml::Value::Float(number) => Written::Number(number.to_string()),
        toml::Value::Boolean(switch) => Written::Switch(switch),
        toml::Value::Array(list) => {
            let texts = list.into_iter().map(|text| if let toml::Value::String(text) = text { Some(text) } else { None });
            texts.collect::<Option<Vec<_>>>().map_or(Written::Other("a list of other things than texts"), Written::List)
        }
        toml::Value::Datetime(_) => Written::Other("a date"),
        toml::Value::Table(_) => Written::Other("a table"),
    }
}

fn of_variables(all: All, variables: impl Iterator<Item = (String, String)>, said: &mut Vec<Said>) -> Outcome {
    for (variable, value) in variables {
        let Some(rest) = variable.strip_prefix(VARIABLES) else { continue };
        let other = OTHER_VARIABLES.iter().any(|other| rest == *other || (other.ends_with('_') && rest.starts_with(other)));
        if other || is_of_a_service(rest) {
            continue;
        }
        let setting = known(all, &rest.to_ascii_lowercase().replace('_', "-"), || format!("in the variable {variable}"))?;
        if setting.is_secret && value.is_empty() {
            // As scripts and containers write that there is none.
            continue;
        }
        said.push(Said { setting, written: Written::Text(value), source: Source::Variable });
    }
    Ok(())
}

/// Whether it is what Kubernetes tells each pod of a service whose name begins with `forebay`: `FOREBAY_COORDINATOR_SERVICE_HOST`,
/// `FOREBAY_COORDINATOR_PORT_7400_TCP` and more. No setting is called so.
fn is_of_a_service(rest: &str) -> bool {
    let mut words = rest.split('_').peekable();
    while let Some(word) = words.next() {
        let next = words.peek().copied().unwrap_or_default();
        let is_port = word == "PORT" && (next.is_empty() || next.bytes().all(|byte| byte.is_ascii_digit()));
        if is_port || (word == "SERVICE" && ["HOST", "PORT"].contains(&next)) {
            return true;
        }
    }
    false
}

fn wrong_file(file: &Path, why: impl fmt::Display) -> Failure {
    Failure::Usage(format!("configuration {}: {why}", file.display()))
}

fn known(all: All, key: &str, place: impl FnOnce() -> String) -> Outcome<&'static Setting> {
    if let Some(setting) = all.iter().find(|setting| setting.key == key) {
        return Ok(setting);
    }
    let near = all.iter().map(|setting| (distance(key, setting.key), setting.key)).min();
    let remedy = match near {
        Some((edits, near)) if edits <= NEAR_EDITS => format!("did you mean {near}?"),
        _ => "`forebay config` lists the keys that there are".to_string(),
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
    use std::time::Duration;

    use super::*;
    use crate::config::TABLE;
    use crate::config::types::Url;

    fn sources(text: &str, variables: &[(&str, &str)]) -> Result<Sources, String> {
        let folder = tempfile::tempdir().unwrap();
        let (file, mut said) = (folder.path().join("forebay.toml"), Vec::new());
        fs::write(&file, text).unwrap();
        let variables = variables.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        let read = of_file(TABLE, &file, &mut said).and_then(|()| of_variables(TABLE, variables, &mut said));
        read.map(|()| Sources(said)).map_err(message)
    }

    fn message(failure: Failure) -> String {
        match failure {
            Failure::Usage(message) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_wrong_value_names_key_file_line_and_remedy() {
        let read = sources("# ours\nlease = \"5s\"\nwindow = \"5\"\n", &[]).unwrap();
        assert_eq!(read.value("lease").unwrap(), Some(Duration::from_secs(5)));
        let error = message(read.value::<Duration>("window").unwrap_err());
        for part in ["key window", "forebay.toml:3", "\"5\" is no duration", "60s"] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn variables_are_stronger_than_the_file_and_some_are_not_ours() {
        let read = sources("lease = \"5s\"\n", &[("FOREBAY_LEASE", "6s"), ("FOREBAY_TEST_SEED", "1"), ("HOME", "/")]).unwrap();
        assert_eq!(read.value("lease").unwrap(), Some(Duration::from_secs(6)));
        assert!(matches!(read.of("lease"), Some(Source::Variable)) && read.of("window").is_none());
        let of_services =
            ["FOREBAY_COORDINATOR_SERVICE_HOST", "FOREBAY_SERVICE_PORT_HTTP", "FOREBAY_PORT", "FOREBAY_S3_PORT_7490_TCP_ADDR"];
        assert!(sources("", &of_services.map(|name| (name, "10.0.0.1"))).is_ok(), "Kubernetes tells of services");
        assert!(!TABLE.iter().any(|setting| is_of_a_service(&setting.key.to_uppercase().replace('-', "_"))));
        let error = sources("", &[("FOREBAY_LEAS", "6s")]).err().unwrap();
        assert!(error.contains("FOREBAY_LEAS") && error.contains("did you mean lease?"), "{error}");
    }

    #[test]
    fn a_password_in_a_flag_is_refused_and_not_shown() {
        let setting = TABLE.iter().find(|setting| setting.key == "metadata").unwrap();
        let by_flag = |url: &str| {
            Sources(vec![Said { setting, written: Written::Text(url.to_string()), source: Source::Flag }])
                .value::<Url>("metadata")
        };
        for url in ["postgres://forebay:hidden@db/forebay", "postgres://forebay@db/forebay?password=hidden"] {
            let error = message(by_flag(url).unwrap_err());
            assert!(error.contains("--metadata") && error.contains("PGPASSFILE") && !error.contains("hidden"), "{error}");
        }
        assert!(by_flag("postgres://forebay@db/forebay").is_ok() && by_flag("sqlite:metadata.db").is_ok());
        let read = sources("", &[("FOREBAY_METADATA", "postgres://forebay:hidden@db/forebay")]).unwrap();
        assert!(read.value::<Url>("metadata").is_ok());
    }

    #[test]
    fn what_is_no_toml_is_named_by_its_line_and_not_shown() {
        let error = sources("lease = \"5s\"\ntoken = hidden\n", &[]).err().unwrap();
        assert!(error.contains("line 2") && !error.contains("hidden"), "{error}");
        for unquoted in ["dram = 4GiB", "coordinator = 127.0.0.1:7400", "location = rack", "dram: 4GiB"] {
            let error = sources(&format!("{unquoted}\n"), &[]).err().unwrap();
            assert!(error.contains("line 1") && error.contains("as in dram = \"4GiB\""), "{unquoted}: {error}");
        }
        let error = sources("[worker]\nlease = \"5s\"\n", &[]).err().unwrap();
        assert!(error.contains("\"worker\"") && error.contains("forebay.toml:1"), "{error}");
        assert!(error.contains("no sections") && !error.contains("did you mean"), "{error}");
    }

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("dram", "dram"), 0);
        assert_eq!(distance("drm", "dram"), 1);
        assert_eq!(distance("data_dir", "data-dir"), 1);
        assert_eq!(distance("", "http"), 4);
    }
}
