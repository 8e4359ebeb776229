//! Mounts and tables by what a caller calls them; the error for one that is not there names those that are.

use forebay_types::{Error, Mount, MountId, MountName};

use super::State;

/// Names that an error lists at most.
const NAMES_MAX: usize = 20;

impl State {
    pub(super) fn mount_by_name(&self, name: &MountName) -> Result<&Mount, Error> {
        let mut mounts = self.catalogue.mounts.values();
        mounts.find(|mount| mount.name == *name).ok_or_else(|| self.no_mount(&format!("there is no mount {name}")))
    }

    pub(super) fn mount_by_id(&self, id: MountId) -> Result<&Mount, Error> {
        self.catalogue.mounts.get(&id).ok_or_else(|| self.no_mount(&format!("there is no mount with the id {} any more", id.0)))
    }

    fn no_mount(&self, what: &str) -> Error {
        Error::not_found(match self.catalogue.mounts.is_empty() {
            true => format!("{what}, nor any other: add one with `forebay mount add NAME URL`"),
            false => format!("{what}: the mounts are {}", list(self.catalogue.mounts.values().map(|mount| mount.name.as_str()))),
        })
    }

    pub(super) fn no_table(&self, name: &str) -> Error {
        Error::not_found(match self.catalogue.tables.is_empty() {
            true => format!("there is no external table {name}, nor any other"),
            false => {
                format!(
                    "there is no external table {name}: the tables are {}",
                    list(self.catalogue.tables.keys().map(String::as_str))
                )
            }
        })
    }
}

/// Names in order, the first of them when they are many.
pub(super) fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    let more = names.len().saturating_sub(NAMES_MAX);
    names.truncate(NAMES_MAX);
    let listed = names.join(", ");
    if more > 0 { format!("{listed} and {more} more") } else { listed }
}
