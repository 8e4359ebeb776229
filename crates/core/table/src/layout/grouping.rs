//! What the writer of a table wishes for: which columns stand together, and in which layout.

use forebay_types::{Error, Result};

use super::{Group, Layout};
use crate::schema::TableSchema;

/// The wish for column groups: lists of column paths, of which one may be `*` (all others).
///
/// A struct's path means all of its leaves. Columns that are in no list get a group each, so no list at all is a column
/// store, and `*` alone a row store. Columns of lists of anything but fixed-width values, and of maps, stand alone wherever they are
/// named: rows have no place for them.
#[derive(Clone, Debug)]
pub struct Grouping {
    lists: Vec<Vec<String>>,
    layout: Layout,
}

impl Default for Grouping {
    fn default() -> Self {
        Self::columns()
    }
}

impl Grouping {
    /// A column store.
    pub fn columns() -> Self {
        Self { lists: Vec::new(), layout: Layout::Aligned }
    }

    /// A row store.
    pub fn rows() -> Self {
        Self::columns().group(["*"])
    }

    /// Adds a group of these columns.
    pub fn group<S: Into<String>>(mut self, columns: impl IntoIterator<Item = S>) -> Self {
        self.lists.push(columns.into_iter().map(Into::into).collect());
        self
    }

    /// The layout of groups of several columns: [`Layout::Aligned`] unless said otherwise.
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// The column groups for a schema.
    pub(crate) fn resolve(&self, schema: &TableSchema) -> Result<Vec<Group>> {
        let mut home = vec![None; schema.leaves().len()];
        for (group, list) in self.lists.iter().enumerate() {
            for path in list.iter().filter(|path| *path != "*") {
                let mut found = false;
                for (leaf, home) in schema.leaves().iter().zip(&mut home) {
                    if !names(path, leaf.path()) {
                        continue;
                    }
                    found = true;
                    if home.is_some_and(|home| home != group) {
                        return Err(Error::invalid(format!("column `{}` is in two groups; name it once", leaf.path())));
                    }
                    *home = Some(group);
                }
                if !found {
                    return Err(Error::not_found(format!("a group names the column `{path}`, which the table does not have")));
                }
            }
        }
        let mut rest = self.lists.iter().enumerate().filter(|(_, list)| list.iter().any(|path| path == "*"));
        let star = rest.next().map(|(group, _)| group);
        if rest.next().is_some() {
            return Err(Error::invalid("`*` is in two groups; it can stand for the other columns once only"));
        }
        let mut members = vec![Vec::new(); self.lists.len()];
        let mut alone = Vec::new();
        for (leaf, home) in home.into_iter().enumerate() {
            match home.or(star) {
                Some(group) if !schema.leaves()[leaf].kind().is_nested() => members[group].push(leaf),
                _ => alone.push(vec![leaf]),
            }
        }
        let groups = members.into_iter().filter(|leaves| !leaves.is_empty()).chain(alone);
        let groups = groups.map(|leaves| Group::new(schema, self.layout, leaves)).collect::<Result<Vec<_>>>()?;
        let leaves: usize = groups.iter().map(|group| group.leaves().len()).sum();
        assert_eq!(leaves, schema.leaves().len(), "each leaf is in one group");
        Ok(groups)
    }
}

/// Whether `path` is the leaf's or that of a struct above it.
fn names(path: &str, leaf: &str) -> bool {
    leaf.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
