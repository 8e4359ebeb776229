//! What a row of the table of settings says, and the macro that makes fields of rows.

/// One setting. Its key, its variable and its flag are the same word: `data-dir`, `FOREBAY_DATA_DIR`, `--data-dir`.
pub(crate) struct Setting {
    pub(crate) key: &'static str,
    /// The heading that it stands below on the page of settings.
    #[cfg(test)]
    pub(super) section: &'static str,
    /// What it is for, in a line.
    pub(super) about: &'static str,
    /// What else there is to say, a line each.
    pub(super) more: &'static [&'static str],
    /// How its value is written, as in `HOST:PORT`.
    pub(crate) form: &'static str,
    /// Whether a file has it without quotes.
    pub(super) is_bare: bool,
    /// Whether it must never be shown.
    pub(super) is_secret: bool,
    pub(super) default: Default,
    pub(super) off_flag: &'static str,
    pub(super) readers: &'static [Reader],
    pub(crate) flag: Flag,
}

/// What a setting is when nothing is said.
pub(super) enum Default {
    /// This value.
    Value(fn() -> String),
    /// What the machine or other settings make it, or nothing, in words.
    Words(&'static str),
}

/// Who goes by a setting. `forebay up` is all of the roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    Commands,
    Up,
    Coordinator,
    Worker,
    Gateway,
    Scheduler,
    Executor,
}

/// Where a setting has a flag. A switch that is on by default has one to switch it off, as in `--no-in-place`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flag {
    /// Nowhere: a secret would be seen in the list of processes, others are set once in a file.
    None,
    /// With every command.
    Everywhere,
    /// The same, in the long help only.
    EverywhereSeldom,
    /// With what runs a role.
    Roles,
    /// The same, in the long help only.
    RolesSeldom,
}

/// Every process and every command.
pub(super) const ALL: &[Reader] =
    &[Reader::Commands, Reader::Up, Reader::Coordinator, Reader::Worker, Reader::Gateway, Reader::Scheduler, Reader::Executor];
/// Every process that runs until it is told to stop.
pub(super) const ROLES: &[Reader] =
    &[Reader::Up, Reader::Coordinator, Reader::Worker, Reader::Gateway, Reader::Scheduler, Reader::Executor];

impl Reader {
    fn name(self) -> &'static str {
        match self {
            Self::Commands => "commands",
            Self::Up => "up",
            Self::Coordinator => "coordinator",
            Self::Worker => "worker",
            Self::Gateway => "gateway",
            Self::Scheduler => "scheduler",
            Self::Executor => "executor",
        }
    }
}

impl Setting {
    /// What it is for, in a line without a full stop.
    pub(crate) fn about(&self) -> &'static str {
        self.about.trim()
    }

    /// What it is for, and what else there is to say.
    pub(crate) fn about_all(&self) -> String {
        let more = self.more.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
        if more.is_empty() { self.about().to_string() } else { format!("{}. {}", self.about(), more.trim_end_matches('.')) }
    }

    /// Its value when nothing is said, or words for where that comes from.
    pub(crate) fn default(&self) -> String {
        match self.default {
            Default::Value(value) => value(),
            Default::Words(words) => words.to_string(),
        }
    }

    pub(crate) fn variable(&self) -> String {
        format!("{VARIABLES}{}", self.key.to_ascii_uppercase().replace('-', "_"))
    }

    /// Whether it is true or false.
    pub(crate) fn is_switch(&self) -> bool {
        self.form == <bool as super::value::Value>::FORM
    }

    /// Whether its flag switches it off.
    pub(crate) fn is_on_by_default(&self) -> bool {
        self.is_switch() && self.default() == "true"
    }

    /// The name of its flag, where it has one.
    pub(crate) fn flag_name(&self) -> &'static str {
        if self.is_on_by_default() { self.off_flag } else { self.key }
    }

    /// Whether `forebay COMMAND` goes by it.
    pub(crate) fn concerns(&self, command: &str) -> bool {
        match command {
            "up" | "doctor" => true,
            "sql" => self.readers.iter().any(|reader| matches!(reader, Reader::Commands | Reader::Coordinator | Reader::Worker)),
            command => self.readers.iter().any(|reader| reader.name() == command),
        }
    }

    /// Who goes by it, for people.
    #[cfg(test)]
    pub(super) fn readers(&self) -> String {
        match self.readers {
            ALL => "all".to_string(),
            ROLES => "all roles".to_string(),
            readers => readers.iter().map(|reader| reader.name()).collect::<Vec<_>>().join(", "),
        }
    }
}

/// How names of variables begin.
pub(super) const VARIABLES: &str = "FOREBAY_";

/// The name of a field as files have it: `data-dir` of `data_dir`.
pub(super) const fn kebab<const LEN: usize>(field: &str) -> [u8; LEN] {
    let mut key = [0; LEN];
    let mut at = 0;
    while at < LEN {
        let byte = field.as_bytes()[at];
        key[at] = if byte == b'_' { b'-' } else { byte };
        at += 1;
    }
    key
}

/// Makes `Settings`, a struct with a field for each row, and `TABLE`, what there is to say about each. A row is
///
/// ```text
/// /// What it is for, in a line
/// /// What else there is to say.
/// field: Type = default, of READERS, flag FLAG;
/// ```
///
/// where a default that depends on the machine or on rows above it is `"words for it" => expression`.
macro_rules! settings {
    ($($section:literal { $(
        #[doc = $about:literal]
        $(#[doc = $more:literal])*
        $field:ident: $type:ty = $default:expr $(=> $derived:expr)?, of $readers:expr, flag $flag:ident;
    )* })*) => {
        /// The configuration as it is written; [`super::Config`] is what becomes of it.
        pub(crate) struct Settings {
            $($(#[doc = $about] pub(crate) $field: $type,)*)*
        }

        impl Settings {
            /// What the strongest source says of each setting, else its default.
            pub(super) fn read(sources: &Sources) -> Outcome<Self> {
                $($(let $field: $type = match sources.value(settings!(@kebab stringify!($field)))? {
                    Some(value) => value,
                    None => settings!(@value $default $(=> $derived)?),
                };)*)*
                Ok(Self { $($($field,)*)* })
            }

            /// Each setting with its value as text; none where it is not set.
            pub(super) fn shown(&self) -> impl Iterator<Item = (&'static Setting, Option<String>)> {
                TABLE.iter().zip([$($(self.$field.shown(),)*)*])
            }
        }

        /// All settings, in the order in which they are shown.
        pub(crate) const TABLE: &[Setting] = &[$($(Setting {
            key: settings!(@kebab stringify!($field)),
            #[cfg(test)]
            section: $section,
            about: $about,
            more: &[$($more),*],
            form: <$type as Value>::FORM,
            is_bare: <$type as Value>::BARE,
            is_secret: <$type as Value>::SECRET,
            default: settings!(@default $type, $default $(=> $derived)?),
            off_flag: settings!(@kebab concat!("no_", stringify!($field))),
            readers: $readers,
            flag: Flag::$flag,
        },)*)*];
    };
    (@kebab $field:expr) => {{
        const FIELD: &str = $field;
        const KEY: [u8; FIELD.len()] = kebab(FIELD);
        if let Ok(key) = std::str::from_utf8(&KEY) { key } else { FIELD }
    }};
    (@value $default:expr) => { $default.into() };
    (@value $words:expr => $derived:expr) => { $derived };
    (@default $type:ty, $default:expr) => { Default::Value(|| <$type>::from($default).shown().unwrap_or_default()) };
    (@default $type:ty, $words:expr => $derived:expr) => { Default::Words($words) };
}

pub(super) use settings;
