//! What stands behind the `?` of a request to a dataset.

use std::str::FromStr;

use forebay_shard_store::{ChangeIf, Columns};
use forebay_types::Result;
use serde::{Deserialize, Deserializer};

use crate::asking::from_text;

pub(super) const DATASET_PATTERN: &str = "^/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/";
pub(super) const IF_PATTERN: &str = "^(absent|[0-9]{1,20})$";

/// The parameters of a request about a dataset, with its own between the dataset and the timeout.
macro_rules! asked_of {
    ($name:ident { $($own:tt)* }) => {
        #[derive(serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(in crate::shards) struct $name {
            /// Its folder: `/MOUNT/FOLDER`.
            #[schemars(
                with = "String",
                extend("pattern" = crate::shards::asked::DATASET_PATTERN),
                example = &"/lake/orders.shards"
            )]
            #[serde(deserialize_with = "crate::asking::from_text")]
            pub(in crate::shards) dataset: forebay_types::ForebayPath,
            $($own)*
            /// How long the answer may take, to its last byte, with a unit: a minute where it is not said, `5m` at most.
            #[schemars(with = "Option<String>", extend("pattern" = crate::asking::TIMEOUT_PATTERN), example = &"30s")]
            pub(in crate::shards) timeout: Option<crate::asking::Timeout>,
        }
    };
}
pub(super) use asked_of;

asked_of!(DatasetAsked {});

/// `columns=a,b`: names, or `*` for all of them.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ColumnNames {
    /// `*`.
    All,
    /// These.
    Named(Vec<String>),
}

impl ColumnNames {
    /// The names, each of which a dataset has. `Invalid` where it has not.
    pub(super) fn of(self, columns: &Columns) -> Result<Vec<String>> {
        match self {
            Self::All => Ok(columns.all().iter().map(|column| column.name.clone()).collect()),
            Self::Named(names) => {
                names.iter().try_for_each(|name| columns.place(name).map(drop))?;
                Ok(names)
            }
        }
    }
}

impl<'de> Deserialize<'de> for ColumnNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(match text.as_str() {
            "*" => Self::All,
            text => Self::Named(text.split(',').map(str::to_string).collect()),
        })
    }
}

/// `if=absent`, or `if=VERSION`: when a record may be changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct If(ChangeIf);

impl If {
    /// The condition; none where there is no parameter.
    pub(super) fn of(asked: Option<Self>) -> ChangeIf {
        asked.map_or(ChangeIf::Always, |Self(condition)| condition)
    }
}

impl FromStr for If {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "absent" {
            return Ok(Self(ChangeIf::Absent));
        }
        // A sign is none of a version's, which `parse` would let pass.
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        let version = text.parse().ok().filter(|_| is_number);
        version
            .map(|version| Self(ChangeIf::Version(version)))
            .ok_or_else(|| format!("if is absent or a version, and not {text}"))
    }
}

impl<'de> Deserialize<'de> for If {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_all_or_named() {
        let read = |text: &str| serde_json::from_value::<ColumnNames>(text.into()).unwrap();
        assert_eq!(read("*"), ColumnNames::All);
        assert_eq!(read("a,b c"), ColumnNames::Named(vec!["a".into(), "b c".into()]));
    }

    #[test]
    fn a_condition_is_that_nothing_is_there_or_a_version() {
        assert_eq!(If::of(None), ChangeIf::Always);
        assert_eq!(If::of("absent".parse().ok()), ChangeIf::Absent);
        assert_eq!(If::of("0".parse().ok()), ChangeIf::Version(0));
        assert_eq!(If::of(u64::MAX.to_string().parse().ok()), ChangeIf::Version(u64::MAX));
        for wrong in ["", "+1", "-1", "1.0", "Absent", "none", "18446744073709551616"] {
            assert!(wrong.parse::<If>().is_err(), "{wrong}");
        }
    }
}
