//! `forebay config`: every setting as it counts.

use serde::Serialize;

use super::Config;
use super::setting::Setting;
use super::sources::Source;
use crate::exit::Outcome;
use crate::output::Output;

#[derive(Serialize)]
struct Line<'a> {
    key: &'a str,
    value: Option<String>,
    source: String,
    /// Of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
}

impl Config {
    /// Prints every key with its effective value, where the value is from and what the key is for: as TOML that can be
    /// kept as a file, or one JSON object a key. Secrets are not shown.
    pub(crate) fn show(&self, output: &mut Output) -> Outcome {
        for (setting, value) in self.settings.shown() {
            let (source, line) = self.source(setting);
            if output.json {
                output.record(&Line { key: setting.key, value, source, line })?;
                continue;
            }
            let place = line.map_or_else(|| source.clone(), |line| format!("{source}:{line}"));
            output.line(&format!("# {} ({place})", setting.about()))?;
            let key = setting.key;
            output.line(&match value {
                // Never the secret itself, and nothing that could be taken for one.
                Some(value) if setting.is_secret => format!("# {key} {value}"),
                Some(value) if setting.is_bare => format!("{key} = {value}"),
                Some(value) => format!("{key} = {value:?}"),
                None => format!("# {key} ="),
            })?;
        }
        Ok(())
    }

    fn source(&self, setting: &Setting) -> (String, Option<usize>) {
        match self.sources.of(setting.key) {
            None => ("default".to_string(), None),
            Some(Source::File { file, line }) => (file.display().to_string(), Some(*line)),
            Some(Source::Variable) => (setting.variable(), None),
            Some(Source::Flag) => (format!("--{}", setting.flag_name()), None),
        }
    }
}
