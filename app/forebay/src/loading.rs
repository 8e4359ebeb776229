//! Bringing what lies below a path into the tiers, all of it or what a query of it would read: for `forebay load` and `forebay pin`, and for
//! `/api/v1/load`.

use forebay_client::{Client, Loaded, Planned};
use forebay_sql::{Engine, EngineSettings, Reach};
use forebay_types::{ForebayPath, ObjectVersion, Result};

use crate::tree::Tree;

/// What is to be brought; nothing is yet.
pub(crate) struct Loading {
    /// By whom it is brought.
    pub(crate) client: Client,
    /// What the path stands for: a folder's ends with `/`.
    pub(crate) path: ForebayPath,
    /// Bytes that will be in the tiers.
    pub(crate) bytes: u64,
    what: What,
}

enum What {
    /// Whole objects, which stay where that is so.
    All { versions: Vec<ObjectVersion>, keep: bool },
    /// Parts of objects.
    Parts(Planned),
}

impl Loading {
    /// Of everything that a path stands for: with columns or a condition what a query of these would read. `NotFound` when there is nothing;
    /// `Invalid` for columns and conditions that the files do not have, and for more than so many objects.
    pub(crate) async fn of(
        client: &Client,
        path: &ForebayPath,
        columns: &[String],
        condition: Option<&str>,
        objects_max: usize,
    ) -> Result<Self> {
        let tree = Tree::of_at_most(client, path, objects_max).await?;
        if columns.is_empty() && condition.is_none() {
            return Ok(Self::all(client, path, &tree, false));
        }
        let path = tree.path(path);
        let settings = EngineSettings { reach: Reach::of_mounts(), ..EngineSettings::default() };
        let parts = Engine::over_client(client.clone(), settings).reads_of(&path.to_string(), columns, condition).await?;
        let bytes =
            parts.iter().flat_map(|(_, ranges)| ranges).fold(0u64, |bytes, range| bytes.saturating_add(range.end - range.start));
        Ok(Self { client: client.clone(), path, bytes, what: What::Parts(parts) })
    }

    /// Of all of a tree; with `keep` it stays in the tiers.
    pub(crate) fn all(client: &Client, path: &ForebayPath, tree: &Tree, keep: bool) -> Self {
        let what = What::All { versions: tree.versions(), keep };
        Self { client: client.clone(), path: tree.path(path), bytes: tree.bytes(), what }
    }

    /// Objects of which something is brought.
    pub(crate) fn objects(&self) -> usize {
        match &self.what {
            What::All { versions, .. } => versions.len(),
            What::Parts(parts) => parts.len(),
        }
    }

    /// The versions, where they are brought whole.
    pub(crate) fn whole(&self) -> &[ObjectVersion] {
        match &self.what {
            What::All { versions, .. } => versions,
            What::Parts(_) => &[],
        }
    }

    /// Brings it; `progress` gets the bytes that are there so far.
    pub(crate) async fn run(self, progress: impl Fn(u64) + Send + Sync) -> Result<Loaded> {
        match self.what {
            What::All { versions, keep } => self.client.load(versions, keep, progress).await,
            What::Parts(parts) => self.client.load_ranges(parts, progress).await,
        }
    }
}
