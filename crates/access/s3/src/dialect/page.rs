//! What of a bucket a listing asks for, and what it gets.

use forebay_types::{Mount, ObjectInfo};

/// Most entries that a page has, as in S3.
pub(crate) const PAGE_MAX: usize = 1000;

/// What of a bucket to list.
pub(crate) struct PageRequest<'a> {
    pub(crate) mount: &'a Mount,
    pub(crate) prefix: &'a str,
    /// Keys that share what comes before it are shown as one.
    pub(crate) delimiter: &'a str,
    pub(crate) after: Option<String>,
    pub(crate) limit: usize,
}

#[derive(Default)]
pub(crate) struct Page {
    pub(crate) objects: Vec<ObjectInfo>,
    pub(crate) folders: Vec<String>,
    /// The last entry, when more follow it.
    pub(crate) next: Option<String>,
}

impl Page {
    /// The page of a request for so many entries.
    pub(crate) fn of(self, limit: usize) -> Self {
        let count = self.objects.len() + self.folders.len();
        assert!(count <= limit, "{count} entries are on a page of {limit}");
        assert!(self.next.is_none() || self.next == self.last(), "what follows begins behind the last entry");
        self
    }

    pub(crate) fn last(&self) -> Option<String> {
        let object = self.objects.last().map(|info| info.version.key.as_str());
        object.max(self.folders.last().map(String::as_str)).map(Into::into)
    }
}

#[cfg(test)]
mod planted {
    use super::*;

    fn page(folders: &[&str], next: Option<&str>) -> Page {
        let folders = folders.iter().map(ToString::to_string).collect();
        Page { objects: Vec::new(), folders, next: next.map(Into::into) }
    }

    #[test]
    #[should_panic(expected = "2 entries are on a page of 1")]
    fn a_page_has_more_entries_than_were_asked_for() {
        page(&["a/", "b/"], None).of(1);
    }

    #[test]
    #[should_panic(expected = "what follows begins behind the last entry")]
    fn a_page_goes_on_where_it_did_not_end() {
        page(&["a/", "b/"], Some("a/")).of(2);
    }
}
