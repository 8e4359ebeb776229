use figment::value::{Dict, Map, Value};
use figment::{Metadata, Profile, Provider};

use super::settings::SWITCHES;

/// The `FOREBAY_*` variables as a source of configuration. Values stay text, so that a token of digits is still a token.
pub(crate) struct Variables(Vec<(String, String)>);

impl Variables {
    const PREFIX: &str = "FOREBAY_";
    /// `FOREBAY_CONFIG` names the file itself; the others belong to the build and the tests.
    const OTHERS: [&str; 5] = ["CONFIG", "CACHE", "VERSITYGW", "CI_", "TEST_"];

    /// The variables of this process.
    pub(crate) fn of_process() -> Self {
        Self(
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect(),
        )
    }

    /// (key, variable, value) of all that configure something.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (String, &str, &str)> {
        self.0.iter().filter_map(|(name, value)| {
            let rest = name.strip_prefix(Self::PREFIX)?;
            let other = Self::OTHERS.iter().any(|other| rest == *other || (other.ends_with('_') && rest.starts_with(other)));
            (!other).then(|| (rest.to_ascii_lowercase().replace('_', "-"), name.as_str(), value.as_str()))
        })
    }
}

impl Provider for Variables {
    fn metadata(&self) -> Metadata {
        Metadata::named("variable").interpolater(|_, keys| {
            let name = keys.last().map_or(String::new(), |key| key.to_ascii_uppercase().replace('-', "_"));
            format!("{}{name}", Self::PREFIX)
        })
    }

    fn data(&self) -> figment::Result<Map<Profile, Dict>> {
        let dict = self
            .entries()
            .map(|(key, _, value)| {
                let value = match value {
                    "true" | "1" | "yes" if SWITCHES.contains(&key.as_str()) => Value::from(true),
                    "false" | "0" | "no" if SWITCHES.contains(&key.as_str()) => Value::from(false),
                    _ => Value::from(value),
                };
                (key, value)
            })
            .collect();
        Ok(Profile::Default.collect(dict))
    }
}
