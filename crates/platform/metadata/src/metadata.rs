//! The metadata as those who use it see it, whatever keeps it.

use forebay_types::{Key, Mount, MountId, MountName, MountOptions, Result, Verifier};

use crate::database::{Database, StoredTable};
use crate::location::Location;
use crate::memory::{self, Session};

/// The metadata database. Cheap to clone.
///
/// Any number of processes may read; once [`Self::acquire_epoch`] has been called, writes succeed only as long as
/// no other process has acquired a later epoch, else they are `Closed`. A database that is away is `Retry`.
#[derive(Clone)]
pub struct Metadata(Kept);

#[derive(Clone)]
enum Kept {
    Database(Database),
    Memory(Session),
}

/// What is asked of whatever keeps the metadata.
macro_rules! kept {
    ($($(#[$says:meta])+ fn $name:ident(&self $(, $given:ident: $kind:ty)*) $(-> $gives:ty)?;)+) => {
        $($(#[$says])+
        pub async fn $name(&self $(, $given: $kind)*) $(-> $gives)? {
            match &self.0 {
                Kept::Database(kept) => kept.$name($($given),*).await,
                Kept::Memory(kept) => kept.$name($($given),*),
            }
        })+
    };
}

impl Metadata {
    /// Opens `sqlite:PATH` (made when it is not there, its folder too) or `postgres://USER:PASSWORD@HOST:PORT/DATABASE`
    /// (the database must be there), and brings its schema up to date. The URL of a [`crate::Memory`] opens that.
    ///
    /// `Invalid` when the schema is of a newer version of Forebay, and for what is no such URL; `Retry` when the server
    /// can't be reached; `Denied` when it refuses user or password.
    pub async fn open(url: &str) -> Result<Self> {
        match memory::find(url) {
            Some(memory) => Ok(Self(Kept::Memory(memory))),
            None => Database::open(url).await.map(|database| Self(Kept::Database(database))),
        }
    }

    /// `Invalid` for what is no URL of a database; whether there is one is not asked.
    pub fn check(url: &str) -> Result<()> {
        if memory::find(url).is_some() { Ok(()) } else { Location::parse(url).map(|_| ()) }
    }

    /// `sqlite`, `postgres` or `memory`.
    pub fn kind(&self) -> &'static str {
        match &self.0 {
            Kept::Database(database) => database.kind(),
            Kept::Memory(_) => "memory",
        }
    }

    /// Where the database is, for people: a file, or a URL without its password.
    pub fn shown(&self) -> String {
        match &self.0 {
            Kept::Database(database) => database.shown(),
            Kept::Memory(memory) => memory.shown(),
        }
    }

    /// Returns when leadership is lost: the connection that held PostgreSQL's lock is gone, and another coordinator may
    /// lead. Never with SQLite, nor before [`Self::acquire_epoch`].
    pub async fn leadership_lost(&self) {
        match &self.0 {
            Kept::Database(database) => database.leadership_lost().await,
            Kept::Memory(_) => std::future::pending().await,
        }
    }

    kept! {
        /// Gives leadership up and closes all connections; further calls are `Closed`.
        fn close(&self);
        /// Becomes the leader and returns the next epoch, which is larger than all before; 1 is the first.
        ///
        /// SQLite: `Invalid` when another process uses the data folder. PostgreSQL: `Retry` while another coordinator leads;
        /// a standby calls this again until it succeeds. Needs a direct connection or a pooler in session mode.
        fn acquire_epoch(&self) -> Result<u64>;
        /// All mounts, by id.
        fn mounts(&self) -> Result<Vec<Mount>>;
        /// Adds a mount under an id that no mount ever had. `Conflict` when the name is taken.
        fn add_mount(&self, name: &MountName, url: &str, options: &MountOptions) -> Result<Mount>;
        /// Changes a mount's options. `NotFound` when there is no such mount.
        fn set_mount_options(&self, name: &MountName, options: &MountOptions) -> Result<Mount>;
        /// Removes a mount and its pins, and returns what it was. `NotFound` when there is no such mount.
        fn remove_mount(&self, name: &MountName) -> Result<Mount>;
        /// All pins: a mount and what keys start with, by mount and bytes of the prefix.
        fn pins(&self) -> Result<Vec<(MountId, Key)>>;
        /// Adds a pin; one that is there already is fine. `NotFound` when there is no such mount.
        fn add_pin(&self, mount: MountId, prefix: &Key) -> Result<()>;
        /// Removes a pin. `NotFound` when there is none of exactly this prefix.
        fn remove_pin(&self, mount: MountId, prefix: &Key) -> Result<()>;
        /// All external tables, by bytes of their names.
        fn tables(&self) -> Result<Vec<StoredTable>>;
        /// Keeps a table's definition. `Conflict` when the name is taken and `replace` is off.
        fn put_table(&self, name: &str, statement: &str, replace: bool) -> Result<()>;
        /// Forgets a table. `NotFound` when there is none of this name.
        fn remove_table(&self, name: &str) -> Result<()>;
        /// All tokens, by their ids. None of them can be made of what is kept.
        fn tokens(&self) -> Result<Vec<Verifier>>;
        /// Keeps a token. `Conflict` when there is one of its id.
        fn add_token(&self, token: &Verifier) -> Result<()>;
        /// Forgets tokens, those of them that there are.
        fn remove_tokens(&self, ids: &[String]) -> Result<()>;
        /// Keeps the state of a `kind` (popularity, plan) as of a counting window, over the one before. `Invalid` beyond 64 MiB.
        fn put_checkpoint(&self, kind: &str, window: u64, bytes: &[u8]) -> Result<()>;
        /// The last checkpoint of a kind and its window; none before the first.
        fn checkpoint(&self, kind: &str) -> Result<Option<(u64, Vec<u8>)>>;
    }
}
