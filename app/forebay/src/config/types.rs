//! The types of settings that nothing but the configuration has.

use std::path::{Path, PathBuf};

use forebay_client::StorageClass;
use forebay_s3::Anonymous;
use forebay_scheduling::Policy as JobOrder;

use super::value::{Value, Written};

/// `host:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address(pub(crate) String);

impl From<&str> for Address {
    fn from(text: &str) -> Self {
        Self(text.to_string())
    }
}

impl Value for Address {
    const FORM: &'static str = "HOST:PORT";

    fn read(written: &Written, _: &Path) -> Result<Self, String> {
        let text = written.text()?;
        let parts = text.rsplit_once(':').filter(|(host, _)| !host.is_empty() && !host.contains(['/', '@', ' ']));
        let Some((_, port)) = parts else {
            return Err(format!("{text:?} is no address: write it as HOST:PORT, as in 127.0.0.1:7400"));
        };
        match port.parse::<u16>() {
            Ok(_) => Ok(Self(text.to_string())),
            Err(_) => Err(format!("{text:?} is no address: the port must be a number from 0 to 65535")),
        }
    }

    fn shown(&self) -> Option<String> {
        Some(self.0.clone())
    }
}

/// One or several `host:port`, with commas between: places of one service, which is at one of them at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Addresses(pub(crate) String);

impl Addresses {
    /// Each by itself.
    pub(crate) fn each(&self) -> impl Iterator<Item = &str> {
        self.0.split(',')
    }

    pub(crate) fn first(&self) -> Address {
        Address(self.each().next().unwrap_or_default().to_string())
    }
}

impl From<&str> for Addresses {
    fn from(text: &str) -> Self {
        Self(text.to_string())
    }
}

impl Value for Addresses {
    const FORM: &'static str = "HOST:PORT,..";

    fn read(written: &Written, folder: &Path) -> Result<Self, String> {
        let places = written.text()?.split(',').map(|place| Address::read(&Written::Text(place.trim().to_string()), folder));
        let places: Vec<String> = places.map(|place| place.map(|place| place.0)).collect::<Result<_, _>>()?;
        Ok(Self(places.join(",")))
    }

    fn shown(&self) -> Option<String> {
        Some(self.0.clone())
    }
}

/// What can be switched off by the word for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OrOff<T> {
    Off,
    On(T),
}

impl<T> OrOff<T> {
    /// What it is when it isn't off.
    pub(crate) fn on(&self) -> Option<&T> {
        if let Self::On(value) = self { Some(value) } else { None }
    }
}

impl<T: Value> Value for OrOff<T> {
    const FORM: &'static str = T::FORM;

    fn read(written: &Written, folder: &Path) -> Result<Self, String> {
        match written.text()? {
            "off" => Ok(Self::Off),
            _ => T::read(written, folder).map(Self::On).map_err(|error| format!("{error}, or off")),
        }
    }

    fn shown(&self) -> Option<String> {
        self.on().map_or_else(|| Some("off".to_string()), T::shown)
    }
}

/// Where `/metrics` is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Http {
    /// At the port of the role.
    Auto,
    Said(OrOff<Address>),
}

impl Value for Http {
    const FORM: &'static str = Address::FORM;

    fn read(written: &Written, folder: &Path) -> Result<Self, String> {
        match written.text()? {
            "auto" => Ok(Self::Auto),
            _ => OrOff::read(written, folder).map(Self::Said),
        }
    }

    fn shown(&self) -> Option<String> {
        match self {
            Self::Auto => Some("auto".to_string()),
            Self::Said(said) => said.shown(),
        }
    }
}

/// A URL, which is shown without its password.
#[derive(Clone, Debug)]
pub(crate) struct Url(pub(crate) String);

impl Value for Url {
    const FORM: &'static str = "URL";

    fn read(written: &Written, _: &Path) -> Result<Self, String> {
        written.text().map(|url| Self(url.to_string()))
    }

    fn shown(&self) -> Option<String> {
        Some(match url::Url::parse(&self.0) {
            Ok(mut parsed) if parsed.password().is_some() => {
                // Only URLs without a host refuse a password, and those have none.
                let _ = parsed.set_password(Some("***"));
                parsed.to_string()
            }
            _ => self.0.clone(),
        })
    }
}

/// A text that is never shown.
#[derive(Clone)]
pub(crate) struct Secret(pub(crate) String);

impl Value for Secret {
    const FORM: &'static str = "TEXT";
    const SECRET: bool = true;

    fn read(written: &Written, _: &Path) -> Result<Self, String> {
        written.text().map(|text| Self(text.to_string()))
    }

    fn shown(&self) -> Option<String> {
        Some("(set)".to_string())
    }
}

/// A share of 1, written as in `5%`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Share(pub(crate) f64);

impl Value for Share {
    const FORM: &'static str = "SHARE";

    fn read(written: &Written, _: &Path) -> Result<Self, String> {
        let text = written.text()?;
        let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
        percent.map(|percent| Self(percent / 100.0)).ok_or_else(|| format!("{text:?} is no share: write it as in 5%"))
    }

    fn shown(&self) -> Option<String> {
        // What multiplying by 100 adds in the last places is not a part of what was written.
        Some(format!("{}%", (self.0 * 1e8).round() / 1e6))
    }
}

/// A multiple of what is there without it, as in `1.5`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Times(pub(crate) f64);

impl Value for Times {
    const FORM: &'static str = "TIMES";

    fn read(written: &Written, _: &Path) -> Result<Self, String> {
        let text = written.number()?;
        let number = text.parse().ok().filter(|number| (1.0..=1e6).contains(number));
        number.map(Self).ok_or_else(|| format!("{text:?} is no multiple from 1: write it as in 1.5"))
    }

    fn shown(&self) -> Option<String> {
        Some(self.0.to_string())
    }
}

/// Tasks that an executor runs at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slots(pub(crate) u16);

impl Value for Slots {
    const FORM: &'static str = "COUNT";
    const BARE: bool = true;

    fn read(written: &Written, _: &Path) -> Result<Self, String> {
        let text = written.number()?;
        let number = text.parse().ok().filter(|number| (1..=1024).contains(number));
        number.map(Self).ok_or_else(|| format!("{text:?} is no number from 1 to 1024"))
    }

    fn shown(&self) -> Option<String> {
        Some(self.0.to_string())
    }
}

/// The label of where a worker is.
#[derive(Clone, Debug)]
pub(crate) struct Label(pub(crate) String);

impl Value for Label {
    const FORM: &'static str = "LABEL";

    fn read(written: &Written, _: &Path) -> Result<Self, String> {
        let text = written.text()?;
        match text.parse::<forebay_client::Location>() {
            Ok(location) if location.is_anywhere() => Err(format!("{text} is no place: name the worker's host or rack")),
            Ok(_) => Ok(Self(text.to_string())),
            Err(error) => Err(error.to_string()),
        }
    }

    fn shown(&self) -> Option<String> {
        Some(self.0.clone())
    }
}

/// Folders, separated by commas; in a file a list too.
#[derive(Clone, Debug)]
pub(crate) struct Folders(pub(crate) Vec<PathBuf>);

impl Value for Folders {
    const FORM: &'static str = "PATHS";

    fn read(written: &Written, _: &Path) -> Result<Self, String> {
        let folders = written.list()?.map(PathBuf::from).collect::<Vec<_>>();
        match folders.iter().find(|folder| !folder.is_absolute()) {
            Some(folder) => Err(format!("{folder:?} is no whole path: write it as in /srv/data")),
            None => Ok(Self(folders)),
        }
    }

    fn shown(&self) -> Option<String> {
        Some(self.0.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(","))
    }
}

/// Where what passes between the stages of a job lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShufflePlace {
    Nodes,
    Files,
}

/// How lines of the log are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// Settings that are one of a few words.
macro_rules! choices {
    ($($name:ty { $first:ident = $first_word:literal $(, $choice:ident = $word:literal)* })*) => {
        $(impl Value for $name {
            const FORM: &'static str = concat!($first_word $(, "|", $word)*);

            fn read(written: &Written, _: &Path) -> Result<Self, String> {
                let words = [$first_word $(, $word)*].join(", ");
                match written.text().map_err(|why| format!("{why}, one of {words}"))? {
                    $first_word => Ok(Self::$first),
                    $($word => Ok(Self::$choice),)*
                    text => Err(format!("{text:?} is none of {words}")),
                }
            }

            fn shown(&self) -> Option<String> {
                let word = match self {
                    Self::$first => $first_word,
                    $(Self::$choice => $word,)*
                };
                Some(word.to_string())
            }
        })*
    };
}

choices! {
    JobOrder { Fifo = "fifo", Fair = "fair" }
    ShufflePlace { Nodes = "nodes", Files = "files" }
    StorageClass { Dram = "dram", Disk = "disk" }
    Anonymous { Off = "off", Read = "read", Write = "write" }
    LogFormat { Text = "text", Json = "json" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: Value>(text: &str) -> Result<T, String> {
        T::read(&Written::Text(text.to_string()), Path::new(""))
    }

    #[test]
    fn an_address_is_a_host_and_a_port() {
        assert_eq!(read::<Address>("[::1]:7400"), Ok("[::1]:7400".into()));
        assert!(read::<Address>("here").unwrap_err().contains("HOST:PORT"));
        assert!(read::<Address>("here:port").unwrap_err().contains("65535"));
        for wrong in [":7400", "http://here:7400", "me@here:7400", ""] {
            assert!(read::<Address>(wrong).unwrap_err().contains("HOST:PORT"), "{wrong}");
        }
        assert_eq!(read::<Addresses>("a:7400, [::1]:7401"), Ok("a:7400,[::1]:7401".into()));
        assert!(read::<Addresses>("a:7400,b").unwrap_err().contains("\"b\" is no address"));
        assert_eq!(read::<OrOff<Address>>("off"), Ok(OrOff::Off));
        assert_eq!(read::<Http>("auto"), Ok(Http::Auto));
        assert!(read::<Http>("on").unwrap_err().ends_with(", or off"));
    }

    #[test]
    fn numbers_have_bounds() {
        assert_eq!((read::<Share>("5%"), read::<Share>("100 %")), (Ok(Share(0.05)), Ok(Share(1.0))));
        assert_eq!(Share(0.07).shown().unwrap(), "7%");
        assert!(read::<Share>("5").is_err() && read::<Share>("101%").is_err());
        assert_eq!(read::<Times>("1.5"), Ok(Times(1.5)));
        assert!(read::<Times>("0.5").is_err());
        assert!(read::<Slots>("1024").is_ok() && read::<Slots>("0").is_err() && read::<Slots>("1025").is_err());
    }

    #[test]
    fn a_choice_names_the_others() {
        assert_eq!(read::<JobOrder>("fair"), Ok(JobOrder::Fair));
        assert_eq!(read::<Anonymous>("all").unwrap_err(), "\"all\" is none of off, read, write");
        let bare = Anonymous::read(&Written::Switch(true), Path::new("")).unwrap_err();
        assert_eq!(bare, "it is true or false: write a text in quotes, one of off, read, write");
    }

    #[test]
    fn passwords_and_secrets_are_not_shown() {
        let shown = |url: &str| Url(url.to_string()).shown().unwrap();
        assert_eq!(shown("postgres://me:hidden@db/forebay"), "postgres://me:***@db/forebay");
        assert_eq!(shown("sqlite:metadata.db"), "sqlite:metadata.db");
        assert_eq!(Secret("hidden".to_string()).shown().unwrap(), "(set)");
    }
}
