use std::collections::HashMap;
use std::path::PathBuf;

use forebay_types::{Error, Mount, Result};

/// A profile of AWS's shared files: what `[NAME]` of the credentials file and `[profile NAME]` of the configuration file
/// say.
pub(super) struct Profile {
    pub(super) name: String,
    values: HashMap<String, String>,
}

/// A variable of the environment, unless it is empty.
pub(super) fn env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Profile {
    /// The profile of that name, which must be there; else that of `AWS_PROFILE`; else `default`, if it is there.
    pub(super) fn find(name: Option<&str>) -> Result<Option<Self>> {
        let wanted = name.map(str::to_string).or_else(|| env("AWS_PROFILE"));
        let name = wanted.clone().unwrap_or_else(|| "default".into());
        let files = [file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), file("AWS_CONFIG_FILE", "config")];
        let mut values = None;
        for path in files.iter().flatten() {
            let text = match std::fs::read_to_string(path) {
                Ok(text) => text,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => {
                    return Err(Error::denied(format!("the credentials file {} can't be read: {error}", path.display())));
                }
            };
            for (key, value) in section(&text, &name).into_iter().flatten() {
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
    pub(super) fn get(&self, key: &str) -> Option<String> {
        self.values.get(key).cloned()
    }
}

/// Where a shared file is: where the variable says, or in `~/.aws`.
fn file(variable: &str, name: &str) -> Option<PathBuf> {
    env(variable).map(PathBuf::from).or_else(|| Some(PathBuf::from(env("HOME")?).join(".aws").join(name)))
}

/// The settings of `[name]` or `[profile name]`; none when there is no such section.
fn section(text: &str, name: &str) -> Option<Vec<(String, String)>> {
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
            let shown = header.strip_prefix("profile").filter(|rest| rest.starts_with([' ', '\t'])).map_or(header, str::trim);
            inside = shown.trim_matches('"') == name;
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
pub(super) fn region(mount: &Mount, profile: Option<&Profile>) -> String {
    let given = mount.options.region.clone().or_else(|| env("AWS_REGION")).or_else(|| env("AWS_DEFAULT_REGION"));
    given.or_else(|| profile?.get("region")).unwrap_or_else(|| "us-east-1".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_read_as_aws_writes_them() {
        let text = "# mine\n[default]\naws_access_key_id = A\naws_secret_access_key=S=/+\n\n[profile work]\nregion = eu-west-1\n\
                    s3 =\n  addressing_style = path\n; end\n[workshop]\nregion=x\n";
        let pair = |key: &str, value: &str| (key.to_string(), value.to_string());
        let default = [pair("aws_access_key_id", "A"), pair("aws_secret_access_key", "S=/+")];
        assert_eq!(section(text, "default").unwrap(), default);
        assert_eq!(section(text, "work").unwrap(), [pair("region", "eu-west-1"), pair("s3", "")]);
        assert_eq!(section(text, "other"), None);
    }
}
