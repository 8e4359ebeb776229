//! How a setting is written and read: one trait, which the types of the table implement.

use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_types::{BitRate, ByteSize, format_duration, parse_duration};

/// What a file, a variable or a flag says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Written {
    Text(String),
    Number(String),
    Switch(bool),
    List(Vec<String>),
    /// Something that no setting is, as in "a table".
    Other(&'static str),
}

impl Written {
    /// A text. In a file it stands in quotes: a token of digits must not lose its zeros.
    pub(super) fn text(&self) -> Result<&str, String> {
        let found = match self {
            Self::Text(text) => return Ok(text),
            Self::Number(_) => "a number",
            Self::Switch(_) => "true or false",
            Self::List(_) => "a list",
            Self::Other(what) => what,
        };
        Err(format!("it is {found}: write a text in quotes"))
    }

    /// Several of something, separated by commas; in a file a list too.
    pub(super) fn list(&self) -> Result<impl Iterator<Item = &str>, String> {
        let list: Vec<&str> = match self {
            Self::List(list) => list.iter().map(String::as_str).collect(),
            written => written.text()?.split(',').collect(),
        };
        Ok(list.into_iter().map(str::trim).filter(|text| !text.is_empty()))
    }

    /// A number, in a file with or without quotes.
    pub(super) fn number(&self) -> Result<&str, String> {
        if let Self::Number(number) = self { Ok(number) } else { self.text() }
    }
}

/// A type of settings. An error says what was found and how it is written right, never the text of a secret.
pub(crate) trait Value: Sized {
    /// How it is written, as help and documents name it.
    const FORM: &'static str;
    /// Whether it must never be shown.
    const SECRET: bool = false;
    /// Whether a file has it without quotes.
    const BARE: bool = false;

    /// Reads it. Paths that are not whole are below `folder`.
    fn read(written: &Written, folder: &Path) -> Result<Self, String>;

    /// Writes it so that it can be read again; none when it is not set.
    fn shown(&self) -> Option<String>;
}

impl<T: Value> Value for Option<T> {
    const FORM: &'static str = T::FORM;
    const SECRET: bool = T::SECRET;
    const BARE: bool = T::BARE;

    fn read(written: &Written, folder: &Path) -> Result<Self, String> {
        T::read(written, folder).map(Some)
    }

    fn shown(&self) -> Option<String> {
        self.as_ref().and_then(T::shown)
    }
}

impl Value for String {
    const FORM: &'static str = "TEXT";

    fn read(written: &Written, _: &Path) -> Result<Self, String> {
        written.text().map(str::to_string)
    }

    fn shown(&self) -> Option<String> {
        Some(self.clone())
    }
}

impl Value for PathBuf {
    const FORM: &'static str = "PATH";

    fn read(written: &Written, folder: &Path) -> Result<Self, String> {
        written.text().map(|path| folder.join(path))
    }

    fn shown(&self) -> Option<String> {
        Some(self.display().to_string())
    }
}

impl Value for bool {
    const FORM: &'static str = "true|false";
    const BARE: bool = true;

    fn read(written: &Written, _: &Path) -> Result<Self, String> {
        match written {
            Written::Switch(switch) => Ok(*switch),
            written => match written.text()? {
                "true" | "1" | "yes" => Ok(true),
                "false" | "0" | "no" => Ok(false),
                text => Err(format!("{text:?} is neither true nor false")),
            },
        }
    }

    fn shown(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for Duration {
    const FORM: &'static str = "DURATION";

    fn read(written: &Written, _: &Path) -> Result<Self, String> {
        parse_duration(written.text()?).map_err(|error| error.message().to_string())
    }

    fn shown(&self) -> Option<String> {
        Some(format_duration(*self))
    }
}

/// Types that read and write themselves as text.
macro_rules! as_text {
    ($($type:ty: $form:literal),*) => {
        $(impl Value for $type {
            const FORM: &'static str = $form;

            fn read(written: &Written, _: &Path) -> Result<Self, String> {
                written.text()?.parse().map_err(|error: forebay_types::Error| error.message().to_string())
            }

            fn shown(&self) -> Option<String> {
                Some(self.to_string())
            }
        })*
    };
}

as_text!(
    ByteSize: "SIZE", BitRate: "RATE", forebay_placement::Policy: "POLICY", forebay_placement::Weigh: "work|accesses"
);

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Written {
        Written::Text(text.to_string())
    }

    #[test]
    fn paths_are_relative_to_where_they_are_written() {
        let path = |path| PathBuf::read(&text(path), Path::new("/etc/forebay")).unwrap();
        assert_eq!((path("ca.pem"), path("/srv/ca.pem")), ("/etc/forebay/ca.pem".into(), "/srv/ca.pem".into()));
    }

    #[test]
    fn a_switch_is_one_with_quotes_and_without() {
        let none = Path::new("");
        for (on, off) in [("true", "false"), ("1", "0"), ("yes", "no")] {
            assert_eq!((bool::read(&text(on), none), bool::read(&text(off), none)), (Ok(true), Ok(false)));
        }
        assert_eq!(bool::read(&Written::Switch(true), none), Ok(true));
        assert!(bool::read(&text("perhaps"), none).is_err());
    }

    #[test]
    fn a_number_is_no_text() {
        let error = String::read(&Written::Number("12".to_string()), Path::new("")).unwrap_err();
        assert!(error.contains("a number") && error.contains("in quotes") && !error.contains("12"), "{error}");
    }
}
