//! Flags that override the configuration: made of the table of settings.

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use crate::config::{Flag, Setting, TABLE, Written};

/// Flags of every command.
pub(crate) type GlobalFlags = SettingFlags<true>;
/// Flags of what runs a coordinator, a worker or both.
pub(crate) type RoleFlags = SettingFlags<false>;

/// What the command line says of settings, those of every command or those of roles.
pub(crate) struct SettingFlags<const EVERYWHERE: bool>(Vec<(&'static Setting, Written)>);

impl<const EVERYWHERE: bool> SettingFlags<EVERYWHERE> {
    /// The settings that are on the command line, with their values.
    pub(crate) fn said(&self) -> impl Iterator<Item = (&'static Setting, Written)> {
        self.0.iter().cloned()
    }

    fn settings() -> impl Iterator<Item = &'static Setting> {
        TABLE.iter().filter(|setting| match setting.flag {
            Flag::None => false,
            Flag::Everywhere | Flag::EverywhereSeldom => EVERYWHERE,
            Flag::Roles | Flag::RolesSeldom => !EVERYWHERE,
        })
    }
}

impl<const EVERYWHERE: bool> Args for SettingFlags<EVERYWHERE> {
    fn augment_args(mut command: Command) -> Command {
        for setting in Self::settings() {
            let arg = argument(setting);
            let arg = match EVERYWHERE {
                true => arg.global(true).help_heading("Global options"),
                // It is taken, but only the help of who goes by it tells of it.
                false => arg.hide(!setting.concerns(command.get_name())),
            };
            command = command.arg(arg);
        }
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const EVERYWHERE: bool> FromArgMatches for SettingFlags<EVERYWHERE> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        // A flag that is not set must not override the configuration.
        let is_said = |setting: &Setting| matches.value_source(setting.key) == Some(ValueSource::CommandLine);
        let value = |setting: &Setting| match setting.is_switch() {
            true => Written::Switch(matches.get_flag(setting.key)),
            false => Written::Text(matches.get_one::<String>(setting.key).cloned().unwrap_or_default()),
        };
        Ok(Self(Self::settings().filter(|setting| is_said(setting)).map(|setting| (setting, value(setting))).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn argument(setting: &'static Setting) -> Arg {
    let arg = Arg::new(setting.key).hide_short_help(matches!(setting.flag, Flag::EverywhereSeldom | Flag::RolesSeldom));
    let arg = arg.long(setting.flag_name());
    match (setting.is_switch(), setting.is_on_by_default()) {
        (true, false) => arg.action(ArgAction::SetTrue).help(setting.about()),
        (true, true) => arg.action(ArgAction::SetFalse).help(format!("Don't {}", lower(setting.about()))),
        (false, _) => {
            let default = setting.default();
            let default = if default == "none" { String::new() } else { format!(" [default: {default}]") };
            arg.value_name(setting.form)
                .help(format!("{}{default}", setting.about()))
                .long_help(format!("{}{default}", setting.about_all()))
        }
    }
}

fn lower(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Cli;

    fn said(arguments: &[&str]) -> Vec<(&'static str, Written)> {
        let cli = Cli::try_parse_from([&["forebay"], arguments].concat()).unwrap_or_else(|error| panic!("{error}"));
        cli.settings().into_iter().map(|(setting, written)| (setting.key, written)).collect()
    }

    #[test]
    fn only_what_is_typed_overrides_the_configuration() {
        assert_eq!(said(&["up"]), []);
        let expected = [("coordinator", Written::Text("a:1".into())), ("in-place", Written::Switch(false))];
        assert_eq!(said(&["up", "--coordinator", "a:1", "--no-in-place"]), expected);
        assert_eq!(said(&["up", "--metrics-anonymous"]), [("metrics-anonymous", Written::Switch(true))]);
        assert_eq!(said(&["sql", "--dram", "1GiB", "select 1"]), [("dram", Written::Text("1GiB".into()))]);
        assert_eq!(said(&["worker", "drain", "1", "--log", "debug"]), [("log", Written::Text("debug".into()))]);
    }

    #[test]
    fn secrets_have_no_flag() {
        for key in ["--token", "--cluster-secret", "--s3-secret-key"] {
            assert!(Cli::try_parse_from(["forebay", "up", key, "x"]).is_err(), "{key}");
        }
    }
}
