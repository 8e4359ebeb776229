//! Columns that the names of folders give, as in `year=2024/month=1/x.parquet`: those that SQL has as well.

use std::borrow::Cow;
use std::collections::HashMap;

use forebay_shard::Value;
use forebay_shard_store::{Column, ColumnKind, Columns};
use forebay_sql::NULL_PARTITION;
use forebay_types::{Error, Result};
use percent_encoding::percent_decode_str;

use super::{Input, Piece, Wanted};

/// The columns that the folders of some files give: whole numbers where all values but nulls are, else text.
pub(crate) fn of_paths<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<Column> {
    let mut names: Vec<String> = Vec::new();
    let mut kinds: HashMap<String, Option<ColumnKind>> = HashMap::new();
    for (name, value) in paths.flat_map(folders) {
        let kind = kinds.entry(name.to_string()).or_insert_with(|| {
            names.push(name.to_string());
            None
        });
        *kind = match *kind {
            Some(ColumnKind::Text) => Some(ColumnKind::Text),
            before if value == NULL_PARTITION => before,
            _ if is_whole(value) => Some(ColumnKind::Int),
            _ => Some(ColumnKind::Text),
        };
    }
    let kind_of = |name: &String| kinds.get(name).copied().flatten().unwrap_or(ColumnKind::Text);
    names.iter().map(|name| Column { name: name.clone(), kind: kind_of(name) }).collect()
}

/// Those of a dataset's columns that the folders of a file may give.
pub(super) fn of_dataset(columns: &Columns, path: &str) -> Vec<Column> {
    let is_named = |column: &&Column| folders(path).any(|(name, _)| name == column.name);
    let may_be = |column: &&Column| matches!(column.kind, ColumnKind::Int | ColumnKind::Text);
    columns.all().iter().filter(may_be).filter(is_named).cloned().collect()
}

/// The same file, with the columns of its path that it lacks behind its own.
pub(super) fn added(input: Input, wanted: &Wanted<'_>, path: &str) -> Result<Input> {
    let is_wanted = |column: &&Column| wanted.columns.is_none_or(|columns| columns.contains(&column.name));
    let lacks = |column: &&Column| !input.columns.all().iter().any(|own| own.name == column.name);
    let more: Vec<Column> = wanted.in_paths.iter().filter(is_wanted).filter(lacks).cloned().collect();
    if more.is_empty() {
        return Ok(input);
    }
    let values = more.iter().map(|column| value(column, path)).collect::<Result<Vec<_>>>()?;
    let columns = Columns::new(input.columns.all().iter().cloned().chain(more).collect(), wanted.key)?;
    let records = input.records.map(move |piece| -> Result<Piece> {
        let mut piece = piece?;
        for (_, of_record) in &mut piece.records {
            of_record.extend(values.iter().cloned());
        }
        Ok(piece)
    });
    Ok(Input { columns, bytes: input.bytes, records: Box::new(records) })
}

/// What a path says of a column.
fn value(column: &Column, path: &str) -> Result<Value> {
    let name = &column.name;
    let found = folders(path).find(|(known, _)| known == name).map(|(_, value)| value);
    let text =
        found.ok_or_else(|| Error::invalid(format!("it is in no folder {name}=.., as others are: take files of one kind")))?;
    match (text, column.kind) {
        (NULL_PARTITION, _) => Ok(Value::Null),
        (text, ColumnKind::Int) => {
            let whole =
                text.parse().map_err(|_| Error::invalid(format!("{name}={text} is no whole number, as {name} is elsewhere")))?;
            Ok(Value::Int(whole))
        }
        (text, _) => Ok(Value::Text(decoded(text))),
    }
}

/// The names and values of a path's folders.
fn folders(path: &str) -> impl Iterator<Item = (&str, &str)> {
    let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
    folders.split('/').filter_map(|folder| folder.split_once('=')).filter(|(name, _)| !name.is_empty())
}

/// Whether a value stays the same when it is read as a number: `07` and `+7` don't.
fn is_whole(value: &str) -> bool {
    value.parse::<i64>().is_ok_and(|number| number.to_string() == value)
}

/// A value with its `%XX` as what they stand for; what is no text then stays as it is.
fn decoded(value: &str) -> String {
    percent_decode_str(value).decode_utf8().map_or_else(|_| value.to_string(), Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, kind: ColumnKind) -> Column {
        Column { name: name.to_string(), kind }
    }

    #[test]
    fn folders_say_names_values_and_kinds() {
        let paths = ["/lake/y=1/m=01/a.csv", "/lake/y=__HIVE_DEFAULT_PARTITION__/m=02/b=c.csv"];
        assert_eq!(of_paths(paths.into_iter()), [column("y", ColumnKind::Int), column("m", ColumnKind::Text)]);
        assert_eq!(of_paths(["/lake/k=__HIVE_DEFAULT_PARTITION__/a"].into_iter()), [column("k", ColumnKind::Text)]);
        assert!(of_paths(["/lake/a=b.csv"].into_iter()).is_empty());
    }

    #[test]
    fn a_value_is_what_its_folder_says() {
        let (year, word) = (column("y", ColumnKind::Int), column("w", ColumnKind::Text));
        assert_eq!(value(&year, "/lake/y=-7/a.csv").unwrap(), Value::Int(-7));
        assert_eq!(value(&year, "/lake/y=__HIVE_DEFAULT_PARTITION__/a.csv").unwrap(), Value::Null);
        assert_eq!(value(&word, "/lake/w=a%20b%2/a.csv").unwrap(), Value::Text("a b%2".to_string()));
        assert!(value(&year, "/lake/y=x/a.csv").unwrap_err().message().contains("y=x is no whole number"));
        assert!(value(&year, "/lake/a.csv").unwrap_err().message().contains("no folder y="));
    }
}
