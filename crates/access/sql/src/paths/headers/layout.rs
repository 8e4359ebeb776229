//! Where a table's columns stand in its CSV files, by what their first lines call them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema};
use forebay_types::{Error, Result};
use object_store::path::Path;

use crate::error::twice;
use crate::location::shown;

/// Orders of columns that files of one scan may have: each is a scan of its own.
const LAYOUTS_MAX: usize = 64;

/// The names in a file's first line.
pub(super) type Names = Arc<Vec<String>>;

/// Files whose first lines are the same.
#[derive(Debug)]
pub(super) struct Layout {
    /// For each of the table's columns its place in the files; none where they lack it.
    pub(super) places: Vec<Option<usize>>,
    names: Names,
    pub(super) files: HashSet<Path>,
}

/// The files of a scan by where their columns stand; none where they stand as the table has them, in all of them.
///
/// Columns are found by their names. Where `first`, the line of the first file of a table that was declared, has as many names as the table
/// and others at the places of those that it lacks, whoever declared the table has renamed these: columns are taken by their places there,
/// and found in the other files by what that file calls them. `shorter` says that lines may be shorter than the table.
pub(super) fn layouts(
    columns: &[String],
    first: Option<&[String]>,
    files: &[(Path, Names)],
    shorter: bool,
) -> Result<Option<Vec<Layout>>> {
    let with_line = || files.iter().filter(|(_, names)| !names.is_empty());
    let renamed = first.filter(|first| is_renamed(columns, first));
    let has_none = |names: &Names| places(columns, names).is_ok_and(|places| places.iter().all(Option::is_none));
    if shorter && renamed.is_none() && with_line().min_by(|(a, _), (b, _)| a.cmp(b)).is_some_and(|(_, names)| has_none(names)) {
        return Ok(None);
    }
    let wanted = renamed.unwrap_or(columns);
    let mut all: Vec<Layout> = Vec::new();
    let mut known: HashMap<Names, usize> = HashMap::new();
    for (path, names) in with_line() {
        if let Some(layout) = known.get(names).and_then(|ix| all.get_mut(*ix)) {
            layout.files.insert(path.clone());
            continue;
        }
        let name = shown(path.as_ref());
        let places = places(wanted, names).map_err(|error| error.context(name.clone()))?;
        let lacks = wanted.iter().zip(&places).find(|(_, place)| place.is_none()).map(|(column, _)| column);
        if let Some(column) = lacks
            && (renamed.is_some() || places.iter().all(Option::is_none))
        {
            return Err(lacking(&name, column));
        }
        known.insert(Arc::clone(names), all.len());
        all.push(Layout { places, names: Arc::clone(names), files: HashSet::from([path.clone()]) });
        if all.len() > LAYOUTS_MAX {
            return Err(Error::invalid(format!(
                "{name} is the {}th of these files whose columns stand in an order of their own, and {LAYOUTS_MAX} are the most: choose \
                 fewer files with a pattern, and put them together by `union all`",
                all.len()
            )));
        }
    }
    // Files without a line have no rows, whatever they are read as.
    let empty = files.iter().filter(|(_, names)| names.is_empty()).map(|(path, _)| path.clone());
    if let Some(layout) = all.first_mut() {
        layout.files.extend(empty);
    }
    debug_assert!(all.iter().all(|layout| layout.places.len() == wanted.len()), "each order says where each column is");
    let as_they_are = |layout: &Layout| {
        layout.names.len() == columns.len() && layout.places.iter().enumerate().all(|(ix, place)| *place == Some(ix))
    };
    Ok((!all.iter().all(as_they_are)).then_some(all))
}

fn lacking(name: &str, column: &str) -> Error {
    Error::invalid(format!(
        "the first line of {name} names no column '{column}', as others have it: write the names of its columns there, read it by itself, \
         or say 'format.has_header' 'false' with CREATE EXTERNAL TABLE .. OPTIONS where no file has such a line"
    ))
}

/// Refuses a file whose first line has none of the names in those before it: most likely these are values.
pub(super) fn check_akin(files: &[(&Path, &Names)]) -> Result<()> {
    let mut known: HashSet<String> = HashSet::new();
    let mut first: Option<&str> = None;
    for (path, names) in files {
        let keys: Vec<String> = names.iter().map(|name| key(name)).collect();
        if let Some(column) = first
            && !keys.is_empty()
            && !keys.iter().any(|key| known.contains(key))
        {
            return Err(lacking(&shown(path.as_ref()), column));
        }
        first = first.or(names.first().map(String::as_str));
        known.extend(keys);
    }
    Ok(())
}

/// Whether columns have other names in a line of as many, and each that has its own stands at its place.
pub(super) fn is_renamed(columns: &[String], line: &[String]) -> bool {
    let in_place = |(ix, place): (usize, &Option<usize>)| place.is_none_or(|place| place == ix);
    columns.len() == line.len()
        && places(columns, line).is_ok_and(|found| found.iter().any(Option::is_none) && found.iter().enumerate().all(in_place))
}

/// The place of each column among the names of a line: by its name, or by one that differs in case and spaces around it only.
fn places(columns: &[String], names: &[String]) -> Result<Vec<Option<usize>>> {
    if columns == names {
        return Ok((0..columns.len()).map(Some).collect());
    }
    let wanted: HashSet<&str> = columns.iter().map(String::as_str).collect();
    let (mut same, mut alike) = (HashMap::new(), HashMap::new());
    for (place, name) in names.iter().enumerate() {
        let (found, name) = if wanted.contains(name.as_str()) { (&mut same, name.clone()) } else { (&mut alike, key(name)) };
        found.entry(name).and_modify(|place| *place = None).or_insert(Some(place));
    }
    let of = |column: &String| match same.get(column).or_else(|| alike.get(&key(column))) {
        Some(None) => Err(named_twice(column)),
        Some(found) => Ok(*found),
        None => Ok(None),
    };
    columns.iter().map(of).collect()
}

/// Refuses a first line of which two columns have one name: nobody could ask for either.
pub(super) fn check_distinct(fields: &Fields) -> Result<()> {
    twice(fields.iter().map(|field| field.name().as_str())).map_or(Ok(()), |column| Err(named_twice(column)))
}

fn named_twice(column: &str) -> Error {
    Error::invalid(format!("the first line names '{column}' more than once: give each column a name of its own"))
}

/// What names that are taken for the same have in common.
fn key(name: &str) -> String {
    name.trim().to_lowercase()
}

/// The fields that were found in some files, each once: one whose name differs from an earlier one's in case and spaces only, and stands
/// beside it in no file, is the same column.
pub(super) fn distinct(fields: &[FieldRef], lines: &[Names]) -> Vec<FieldRef> {
    let mut kept: Vec<FieldRef> = Vec::with_capacity(fields.len());
    let mut earlier: HashMap<String, String> = HashMap::new();
    for field in fields {
        let beside = |other: &String| lines.iter().any(|names| names.contains(other) && names.contains(field.name()));
        match earlier.get(&key(field.name())) {
            Some(other) if !beside(other) => {}
            Some(_) => kept.push(Arc::clone(field)),
            None => {
                earlier.insert(key(field.name()), field.name().clone());
                kept.push(Arc::clone(field));
            }
        }
    }
    kept
}

/// The names of a line that none of the fields has.
pub(super) fn further(fields: &[FieldRef], names: &[String]) -> BTreeSet<String> {
    let known: HashSet<String> = fields.iter().map(|field| key(field.name())).collect();
    names.iter().filter(|name| !known.contains(&key(name))).cloned().collect()
}

impl Layout {
    /// What its files are read as: the table's columns at their places, and text for those that the table has not.
    pub(super) fn schema(&self, table: &Schema) -> Schema {
        let mut fields: Vec<Option<FieldRef>> = vec![None; self.names.len()];
        for (field, place) in table.fields().iter().zip(&self.places) {
            if let Some(slot) = place.and_then(|place| fields.get_mut(place)) {
                *slot = Some(Arc::clone(field));
            }
        }
        let named = fields.into_iter().zip(self.names.iter()).enumerate();
        let all = named.map(|(place, (field, name))| {
            // A name that no column has, since this one is not asked for.
            field.unwrap_or_else(|| Arc::new(Field::new(format!("{name}#{place}"), DataType::Utf8, true)))
        });
        Schema::new_with_metadata(all.collect::<Vec<_>>(), table.metadata().clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(line: &str) -> Vec<String> {
        line.split(',').map(ToString::to_string).collect()
    }

    fn files(lines: &[&str]) -> Vec<(Path, Names)> {
        let of = |(ix, line): (usize, &&str)| (Path::from(format!("f{ix}.csv")), Arc::new(names(line)));
        lines.iter().enumerate().map(of).collect()
    }

    fn found(columns: &str, lines: &[&str]) -> Option<Vec<Vec<Option<usize>>>> {
        let all = declared(columns, lines[0], lines).unwrap()?;
        Some(all.into_iter().map(|layout| layout.places).collect())
    }

    fn refused(columns: &str, lines: &[&str]) -> String {
        declared(columns, lines[0], lines).unwrap_err().to_string()
    }

    fn declared(columns: &str, first: &str, lines: &[&str]) -> Result<Option<Vec<Layout>>> {
        layouts(&names(columns), Some(&names(first)), &files(lines), false)
    }

    #[test]
    fn columns_are_found_by_their_names() {
        assert_eq!(found("a,b", &["a,b", "a,b"]), None);
        assert_eq!(found("a,b", &["a,b", "b,a"]), Some(vec![vec![Some(0), Some(1)], vec![Some(1), Some(0)]]));
        assert_eq!(found("a,b", &["b,a"]), Some(vec![vec![Some(1), Some(0)]]), "declared in another order");
        assert_eq!(found("a,b,c", &["a,b", "c,x,a"]), Some(vec![vec![Some(0), Some(1), None], vec![Some(2), None, Some(0)]]));
        assert_eq!(found("id,Id", &["Id,id"]), Some(vec![vec![Some(1), Some(0)]]));
        assert_eq!(found("id,b", &["id,b", " B,ID"]), Some(vec![vec![Some(0), Some(1)], vec![Some(1), Some(0)]]));
    }

    #[test]
    fn renamed_columns_are_those_of_the_first_file() {
        assert_eq!(found("x,y", &["a,b", "a,b"]), None);
        assert_eq!(found("x,y", &["a,b", "b,a"]), Some(vec![vec![Some(0), Some(1)], vec![Some(1), Some(0)]]));
        assert!(refused("x,y", &["a,b", "a,c"]).contains("/f1.csv names no column 'b'"));
        // Whichever files a scan has.
        let places = |columns: &str, first: &str, line: &str| {
            let all = declared(columns, first, &[line]).unwrap();
            all.map(|all| all.into_iter().map(|layout| layout.places).collect::<Vec<_>>())
        };
        assert_eq!(places("x,y", "a,b", "b,a"), Some(vec![vec![Some(1), Some(0)]]));
        // One that stands elsewhere is not renamed to another one's place.
        assert_eq!(places("b,x", "a,b", "a,b"), Some(vec![vec![Some(1), None]]));
        // Whose names are those of its files has none of its own.
        let own = layouts(&names("id,word"), None, &files(&["id,day"]), false).unwrap().unwrap();
        assert_eq!(own[0].places, [Some(0), None]);
    }

    #[test]
    fn what_can_not_be_told_is_refused() {
        assert!(refused("a,b", &["a,b", "1,2"]).contains("/f1.csv names no column 'a'"));
        assert!(refused("a,b", &["a,b", "b,a,a"]).contains("'a' more than once"));
        let many: Vec<_> = (0..=LAYOUTS_MAX).map(|ix| format!("a,x{ix}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        assert!(refused("a,b,c", &many).contains("the most"));
    }

    #[test]
    fn a_file_that_has_no_name_of_the_others_is_refused() {
        let refused = |lines: &[&str]| {
            let files = files(lines);
            let files: Vec<_> = files.iter().map(|(path, names)| (path, names)).collect();
            check_akin(&files).err().map(|error| error.to_string())
        };
        assert_eq!((refused(&[]), refused(&["a,b", "c, B", "C,d"])), (None, None));
        assert!(refused(&["a,b", "b,c", "1,2"]).unwrap().contains("/f2.csv names no column 'a'"));
    }

    #[test]
    fn a_column_is_one_in_whatever_case_it_is_written() {
        let field = |name: &str| Arc::new(Field::new(name, DataType::Int64, true));
        let lines = [Arc::new(names("id,b")), Arc::new(names("ID,c"))];
        let kept = |lines: &[Names]| distinct(&[field("id"), field("b"), field("ID"), field("c")], lines).len();
        assert_eq!(kept(&lines), 3);
        assert_eq!(kept(&[Arc::new(names("id,b,ID,c"))]), 4);
        assert_eq!(further(&[field("id")], &names("ID,d")), BTreeSet::from(["d".to_string()]));
    }
}
