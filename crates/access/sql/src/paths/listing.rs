//! Lists the files of a path without what jobs leave beside them, and finds Hive's partition columns in their names.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use forebay_types::{Error, Result};
use futures::TryStreamExt;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use crate::error::external;
use crate::location::{Location, shown};
use crate::paths::format::Format;
use crate::paths::nulls::NULL;

/// What a folder is refused for of which only a log says which files count.
pub(crate) const HAS_OLD_ROWS: &str = "whose folder also has rows that are deleted or replaced";

/// The files of a location, at the versions that the query will read.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    /// Where they are: the folder when there may be several.
    pub(crate) location: Location,
    /// Files in the order of their paths, those of 0 bytes among them.
    pub(crate) files: Vec<ObjectMeta>,
}

/// Lists a location. A path without a `/` at its end is a file if there is one, else a folder; a pattern that nothing is like is
/// the file of that name, if there is one.
pub(crate) async fn list(store: &Arc<dyn ObjectStore>, location: &Location) -> datafusion::error::Result<Listing> {
    let path = location.path().map_err(external)?;
    if location.pattern.is_none() && !location.is_folder() {
        // A name without a format is most likely a folder: asking for a file first would cost a request more.
        let likely_file = Format::of_name(path.as_ref()).is_some();
        if likely_file && let Some(meta) = head(store, &path).await? {
            return Ok(Listing { location: location.clone(), files: vec![meta] });
        }
        let folder = location.as_folder();
        let files = below(store, &folder).await?;
        if !files.is_empty() || likely_file {
            return Ok(Listing { location: folder, files });
        }
        if let Some(meta) = head(store, &path).await? {
            return Ok(Listing { location: location.clone(), files: vec![meta] });
        }
        return Ok(Listing { location: folder, files });
    }
    let files = below(store, location).await?;
    if files.is_empty()
        && let Some(literal) = location.literal()
        && let Some(meta) = head(store, &literal.path().map_err(external)?).await?
    {
        return Ok(Listing { location: literal, files: vec![meta] });
    }
    Ok(Listing { location: location.clone(), files })
}

async fn head(store: &Arc<dyn ObjectStore>, path: &object_store::path::Path) -> datafusion::error::Result<Option<ObjectMeta>> {
    match store.head(path).await {
        Ok(meta) => Ok(Some(meta)),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn below(store: &Arc<dyn ObjectStore>, location: &Location) -> datafusion::error::Result<Vec<ObjectMeta>> {
    let prefix = location.path().map_err(external)?;
    let listed = store.list(Some(&prefix)).try_collect::<Vec<_>>().await;
    let mut files = match listed {
        Ok(files) => files,
        Err(object_store::Error::NotFound { .. }) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    if location.pattern.is_none()
        && let Some(kind) = files.iter().find_map(|meta| kind_by_log(under(meta, prefix.as_ref())))
    {
        let text = &location.text;
        return Err(external(Error::invalid(format!(
            "'{text}' is a {kind} table, {HAS_OLD_ROWS}: read it with an engine that knows {kind}, through the S3 gateway, or \
             choose all of its files with '{}/**/*.parquet'",
            text.trim_end_matches('/')
        ))));
    }
    files.retain(|meta| {
        let below = under(meta, prefix.as_ref());
        let matches = location.pattern.as_ref().is_none_or(|pattern| pattern.matches(below));
        matches && !below.is_empty() && !is_hidden(below)
    });
    files.sort_by(|a, b| a.location.cmp(&b.location));
    Ok(files)
}

/// A file's path under a prefix.
fn under<'a>(meta: &'a ObjectMeta, prefix: &str) -> &'a str {
    meta.location.as_ref().strip_prefix(prefix).unwrap_or_default().trim_start_matches('/')
}

/// The kind of table that a file is of the log of, which alone says which of the other files count.
fn kind_by_log(below: &str) -> Option<&'static str> {
    below.split('/').find_map(|part| match part {
        "_delta_log" => Some("Delta"),
        ".hoodie" => Some("Hudi"),
        _ => None,
    })
}

/// What jobs leave beside their output (`_SUCCESS`, `.part.crc`), and what is not there yet (`_temporary/...`).
fn is_hidden(below: &str) -> bool {
    below.split('/').any(|part| part.starts_with('.') || (part.starts_with('_') && !part.contains('=')))
}

impl Listing {
    /// Files with something in them. `NotFound` without files, `Invalid` when all are empty.
    pub(crate) fn with_content(&self) -> Result<Vec<ObjectMeta>> {
        let text = &self.location.text;
        if self.files.is_empty() {
            return Err(Error::not_found(match self.location.is_temporary() {
                true => format!(
                    "no files at '{text}', which is temporary data: see what is there with `forebay node ls`; files of this machine \
                     are file:///tmp/.."
                ),
                false => format!("no files at '{text}': see what is there with `forebay ls`"),
            }));
        }
        let files: Vec<_> = self.files.iter().filter(|meta| meta.size > 0).cloned().collect();
        if files.is_empty() {
            return Err(Error::invalid(format!("'{text}' is empty (0 bytes): write it again, or leave it out of the query")));
        }
        Ok(files)
    }

    /// Hive's partition columns, `year=2024/month=1/x.parquet`: names in order, `Int64` when all values but nulls are whole
    /// numbers, else text. `Invalid` when files disagree about the names.
    pub(crate) fn partition_columns(&self) -> Result<Vec<(String, DataType)>> {
        if !self.location.is_folder() {
            return Ok(Vec::new());
        }
        let prefix = self.location.path()?;
        let mut columns: Option<(Vec<(&str, Values)>, &ObjectMeta)> = None;
        for meta in self.files.iter().filter(|meta| meta.size > 0) {
            let mut parts: Vec<_> = under(meta, prefix.as_ref()).split('/').collect();
            parts.pop();
            let values: Vec<_> = parts.iter().map_while(|part| part.split_once('=')).collect();
            match &mut columns {
                None => columns = Some((values.iter().map(|(name, value)| (*name, Values::Nulls.and(value))).collect(), meta)),
                Some((known, first)) => {
                    if known.len() != values.len() || known.iter().zip(&values).any(|((known, _), (name, _))| known != name) {
                        return Err(Error::invalid(format!(
                            "'{}' mixes partition columns: {} and {} differ; choose one kind with a pattern",
                            self.location.text,
                            shown(first.location.as_ref()),
                            shown(meta.location.as_ref())
                        )));
                    }
                    for ((_, known), (_, value)) in known.iter_mut().zip(&values) {
                        *known = known.and(value);
                    }
                }
            }
        }
        let columns = columns.map(|(columns, _)| columns).unwrap_or_default();
        let of = |values| if matches!(values, Values::Whole) { DataType::Int64 } else { DataType::Utf8 };
        Ok(columns.into_iter().map(|(name, values)| (name.to_string(), of(values))).collect())
    }
}

/// What the values of a partition column are, by those that were seen.
#[derive(Clone, Copy)]
enum Values {
    Nulls,
    Whole,
    Text,
}

impl Values {
    fn and(self, value: &str) -> Self {
        match self {
            Self::Text => Self::Text,
            _ if value == NULL => self,
            _ if is_whole(value) => Self::Whole,
            _ => Self::Text,
        }
    }
}

/// Whether a value stays the same when it is read as a number: `07` and `+7` don't.
fn is_whole(value: &str) -> bool {
    value.parse::<i64>().is_ok_and(|number| number.to_string() == value)
}
