//! Two PostgreSQL servers behind one address: the second follows the first, and takes its place.

use std::io;

use super::{Link, Postgres, free_address};

/// The servers, and the link that leads to the one that is written to.
#[derive(Debug)]
pub struct Pair {
    first: Postgres,
    second: Postgres,
    link: Link,
}

impl Pair {
    /// Starts both. What the first one acknowledges from now on is with the second as well.
    pub async fn start() -> io::Result<Self> {
        let (at, second_at) = (free_address()?, free_address()?);
        let first = Postgres::start(at)?;
        let second = first.followed(second_at)?;
        let link = Link::open(free_address()?, at).await?;
        Ok(Self { first, second, link })
    }

    /// The URL of the database, whichever server has it.
    pub fn url(&self) -> String {
        Postgres::url_at(self.link.address)
    }

    /// The first one crashes for good, the second takes over.
    pub fn fail_over(&self) -> io::Result<()> {
        self.first.crash()?;
        self.second.promote()?;
        self.link.lead_to(self.second.address);
        Ok(())
    }
}
