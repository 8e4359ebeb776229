//! What stands behind the `?` of a request to a dataset.

use forebay_shard_store::Columns;
use forebay_types::{ForebayPath, Result};
use serde::{Deserialize, Deserializer};

use crate::asking::from_text;
pub(super) use crate::asking::{Asked, Timeout};

/// `dataset=`: the folder of a mount that a dataset lies in.
pub(super) fn path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ForebayPath, D::Error> {
    from_text(deserializer)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_all_or_named() {
        let read = |text: &str| serde_json::from_value::<ColumnNames>(text.into()).unwrap();
        assert_eq!(read("*"), ColumnNames::All);
        assert_eq!(read("a,b c"), ColumnNames::Named(vec!["a".into(), "b c".into()]));
    }
}
