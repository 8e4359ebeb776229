//! The label of where a worker is, as a node asks for it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::error::{NodeError, NodeErrorKind};

/// Bytes of a location's label.
pub const LOCATION_BYTES_MAX: usize = 255;

/// What says anywhere where a label would stand.
const ANYWHERE: &str = "any";

/// Where blocks are to lie, as administrators name places: the label of some workers, a host or a rack. Anywhere by default.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Location(Option<Arc<str>>);

impl Location {
    /// Whether any worker is as good as another.
    pub fn is_anywhere(&self) -> bool {
        self.0.is_none()
    }

    /// Whether it is asked for and a worker of this label is there.
    pub fn is_at(&self, label: &str) -> bool {
        self.0.as_deref() == Some(label)
    }

    /// The label, or `any`.
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or(ANYWHERE)
    }

    fn of_label(label: &str) -> Result<Self, NodeError> {
        if label.is_empty() || label.len() > LOCATION_BYTES_MAX || label.chars().any(char::is_control) {
            return Err(NodeError::new(
                NodeErrorKind::Invalid,
                format!("a location is 1 to {LOCATION_BYTES_MAX} bytes without control characters, or any"),
            ));
        }
        Ok(Self(Some(label.into())))
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl FromStr for Location {
    type Err = NodeError;

    fn from_str(text: &str) -> Result<Self, NodeError> {
        if text == ANYWHERE { Ok(Self::default()) } else { Self::of_label(text) }
    }
}

/// As its label; anywhere as an empty one.
impl Serialize for Location {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_deref().unwrap_or_default())
    }
}

impl<'de> Deserialize<'de> for Location {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Label;
        impl Visitor<'_> for Label {
            type Value = Location;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a location")
            }

            fn visit_str<E: Error>(self, label: &str) -> Result<Location, E> {
                match label {
                    "" => Ok(Location::default()),
                    label => Location::of_label(label).map_err(|error| E::custom(error.message)),
                }
            }
        }
        deserializer.deserialize_str(Label)
    }
}
