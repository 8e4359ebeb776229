//! Profiles of AWS's shared files.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use forebay_types::{Error, Mount, Result};

/// Where variables are looked up: in this process, or in a test's own.
#[derive(Clone, Debug, Default)]
pub(super) struct Environment(Option<Arc<HashMap<String, String>>>);

impl Environment {
    /// A variable, unless it is empty.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        if let Some(own) = &self.0 { own.get(name).cloned() } else { env(name) }
    }

    #[cfg(test)]
    pub(super) fn of(variables: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        let owned = variables.into_iter().map(|(name, value)| (name.to_string(), value));
        Self(Some(Arc::new(owned.collect())))
    }
}

/// A profile of AWS's shared files: what `[NAME]` of the credentials file and `[profile NAME]` of the configuration file
/// say.
pub(in crate::s3) struct Profile {
    pub(in crate::s3) name: String,
    values: HashMap<String, String>,
}

/// A variable of the environment, unless it is empty.
pub(in crate::s3) fn env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Profile {
    /// The profile of that name, which must be there; else that of `AWS_PROFILE`; else `default`, if it is there.
    pub(in crate::s3) fn find(name: Option<&str>) -> Result<Option<Self>> {
        Self::find_in(&Environment::default(), name)
    }

    /// The same with the variables of an environment.
    pub(super) fn find_in(env: &Environment, name: Option<&str>) -> Result<Option<Self>> {
        let wanted = name.map(str::to_string).or_else(|| env.get("AWS_PROFILE"));
        let name = wanted.clone().unwrap_or_else(|| "default".into());
        let files = [file(env, "AWS_SHARED_CREDENTIALS_FILE", "credentials"), file(env, "AWS_CONFIG_FILE", "config")];
        let mut values = None;
        for path in files.iter().flatten() {
            let text = match std::fs::read_to_string(path) {
                Ok(text) => text,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => {
                    return Err(Error::denied(format!("the credentials file {} can't be read: {error}", path.display())));
                }
            };
            for (key, value) in section(&text, Section::Profile, &name).into_iter().flatten() {
                // The credentials file comes first and wins.
                values.get_or_insert_with(HashMap::new).entry(key).or_insert(value);
            }
        }
        match (values, wanted) {
            (Some(values), _) => Ok(Some(Self { name, values })),
            (None, None) => Ok(None),
            (None, Some(name)) => {
                let shown: Vec<_> = files.iter().flatten().map(|path| path.display().to_string()).collect();
                Err(Error::denied(format!("there is no profile {name:?} in {}: add it, or name another", shown.join(" or "))))
            }
        }
    }

    /// A setting of the profile.
    pub(in crate::s3) fn get(&self, key: &str) -> Option<String> {
        self.values.get(key).cloned()
    }
}

/// What `[sso-session NAME]` of the configuration file says; none where it has no such section.
pub(super) fn sso_session(env: &Environment, name: &str) -> Option<HashMap<String, String>> {
    let text = std::fs::read_to_string(file(env, "AWS_CONFIG_FILE", "config")?).ok()?;
    section(&text, Section::SsoSession, name).map(|values| values.into_iter().collect())
}

/// Where a shared file is: where the variable says, or in `~/.aws`.
fn file(env: &Environment, variable: &str, name: &str) -> Option<PathBuf> {
    env.get(variable).map(PathBuf::from).or_else(|| Some(PathBuf::from(env.get("HOME")?).join(".aws").join(name)))
}

/// Which kind of section.
#[derive(Clone, Copy, PartialEq)]
enum Section {
    /// `[NAME]` or `[profile NAME]`.
    Profile,
    /// `[sso-session NAME]`.
    SsoSession,
}

/// The settings of a section; none when there is no such one.
fn section(text: &str, kind: Section, name: &str) -> Option<Vec<(String, String)>> {
    let mut found = None;
    let mut inside = false;
    for line in text.lines() {
        // Indented lines belong to nested settings, which hold no credentials.
        let nested = line.starts_with([' ', '\t']);
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(header) = line.strip_prefix('[').and_then(|line| line.split(']').next()) {
            let header = header.trim();
            let of = |word| header.strip_prefix(word).filter(|rest: &&str| rest.starts_with([' ', '\t'])).map(str::trim);
            let shown = match kind {
                Section::Profile if of("sso-session").is_some() => None,
                Section::Profile => of("profile").or(Some(header)),
                Section::SsoSession => of("sso-session"),
            };
            inside = shown.is_some_and(|shown| shown.trim_matches('"') == name);
            if inside {
                found.get_or_insert_with(Vec::new);
            }
        } else if let (true, false, Some((key, value))) = (inside, nested, line.split_once('=')) {
            found.get_or_insert_with(Vec::new).push((key.trim().to_ascii_lowercase(), value.trim().to_string()));
        }
    }
    found
}

/// The mount's region, or the environment's, or the profile's, or `us-east-1`.
pub(in crate::s3) fn region(mount: &Mount, profile: Option<&Profile>) -> String {
    let given = mount.options.region.clone().or_else(|| env("AWS_REGION")).or_else(|| env("AWS_DEFAULT_REGION"));
    given.or_else(|| profile?.get("region")).unwrap_or_else(|| "us-east-1".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_read_as_aws_writes_them() {
        let text = "# mine\n[default]\naws_access_key_id = A\naws_secret_access_key=S=/+\n\n[profile work]\nregion = eu-west-1\n\
                    s3 =\n  addressing_style = path\n; end\n[workshop]\nregion=x\n\
                    [sso-session work]\nsso_region = eu-north-1\n";
        let pair = |key: &str, value: &str| (key.to_string(), value.to_string());
        let default = [pair("aws_access_key_id", "A"), pair("aws_secret_access_key", "S=/+")];
        assert_eq!(section(text, Section::Profile, "default").unwrap(), default);
        assert_eq!(section(text, Section::Profile, "work").unwrap(), [pair("region", "eu-west-1"), pair("s3", "")]);
        assert_eq!(section(text, Section::Profile, "other"), None);
        assert_eq!(section(text, Section::SsoSession, "work").unwrap(), [pair("sso_region", "eu-north-1")]);
        assert_eq!(section(text, Section::SsoSession, "default"), None);
    }
}
