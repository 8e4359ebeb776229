//! Where a dataset's records came from: an object of its folder, overwritten only by who has read its last version.

use std::collections::HashSet;

use bytes::Bytes;
use forebay_client::{Client, PutCondition};
use forebay_shard_store::{Dataset, DatasetSource, SOURCES_BYTES_MAX, decode_sources, encode_sources};
use forebay_types::{Error, ErrorKind, ForebayPath, Result, ResultExt, VersionTag};

use crate::Shards;
use crate::open::below;

/// How often it is tried to have others' sources say what is doubtful.
const ATTEMPTS: usize = 10;

/// The sources of a dataset, as the object has them that says so.
pub(crate) struct Sources {
    client: Client,
    at: ForebayPath,
    tag: VersionTag,
    pub(super) all: Vec<DatasetSource>,
}

impl Sources {
    /// Those of a new dataset, before there is a manifest of it.
    pub(crate) async fn create(client: &Client, path: &ForebayPath, dataset: &Dataset, all: &[DatasetSource]) -> Result<()> {
        let Some(key) = dataset.sources_key() else { return Ok(()) };
        let bytes = Bytes::from(encode_sources(all).map_err(|error| error.context(path))?);
        client.put(&below(path, &key)?, bytes, PutCondition::Absent).await?;
        Ok(())
    }

    /// Those of a dataset that follows objects.
    pub(super) async fn read(shards: &Shards) -> Result<Self> {
        let nothing = || Error::invalid(format!("{}: it follows no objects", shards.path));
        let at = below(&shards.path, &shards.dataset.sources_key().ok_or_else(nothing)?)?;
        let (all, tag) = read(&shards.client, &at).await?;
        Ok(Self { client: shards.client.clone(), at, tag, all })
    }

    /// From how many objects the records came.
    pub(super) fn objects(&self) -> usize {
        self.all.iter().map(|source| source.path.as_str()).collect::<HashSet<_>>().len()
    }

    /// Says what they are from now on. `Conflict` where somebody else has said so since they were read.
    pub(super) async fn write(&mut self, next: Vec<DatasetSource>) -> Result<()> {
        let bytes = Bytes::from(encode_sources(&next).context(|| self.at.to_string())?);
        self.tag = self.client.put(&self.at, bytes, PutCondition::Version(self.tag.clone())).await?.version.tag;
        self.all = next;
        Ok(())
    }

    /// Whether somebody else has written them since they were read or written here.
    pub(super) async fn are_others(&self) -> Result<bool> {
        Ok(read(&self.client, &self.at).await?.1 != self.tag)
    }

    /// Has them say, whoever has written them since, that it is not known what the dataset has of some paths, nor of what was read of them.
    pub(super) async fn doubt(&mut self, paths: &HashSet<String>, read_since: &[DatasetSource]) -> Result<()> {
        for _ in 0..ATTEMPTS {
            (self.all, self.tag) = read(&self.client, &self.at).await?;
            let mut next = self.all.clone();
            doubt(&mut next, paths, read_since);
            if next == self.all {
                return Ok(());
            }
            match self.write(next).await {
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                result => return result,
            }
        }
        Err(Error::retry(format!("{}: others write it too", self.at)))
    }
}

/// Has sources say that it is not known what the dataset has of these paths, nor of what was read of them since.
pub(super) fn doubt(sources: &mut Vec<DatasetSource>, paths: &HashSet<String>, read_since: &[DatasetSource]) {
    sources.iter_mut().filter(|source| paths.contains(&source.path)).for_each(|source| source.tag.clear());
    for one in read_since {
        // What has the same keys is said once, and last: of several objects that have a key this one's record may be there now.
        sources.retain(|source| source.path != one.path || source.keys != one.keys);
        sources.push(DatasetSource { tag: String::new(), ..one.clone() });
    }
    debug_assert!(
        sources.iter().all(|source| source.tag.is_empty() || !paths.contains(&source.path)),
        "no version of theirs is said"
    );
}

async fn read(client: &Client, at: &ForebayPath) -> Result<(Vec<DatasetSource>, VersionTag)> {
    let gone = || Error::corrupt(format!("{at}: what the dataset follows is gone: create it again with --replace"));
    let info = client.open(at).await.map_err(|error| if error.kind() == ErrorKind::NotFound { gone() } else { error })?;
    if info.version.size > SOURCES_BYTES_MAX as u64 {
        return Err(Error::corrupt(format!("{at}: {} bytes are not what a dataset follows", info.version.size)));
    }
    let bytes = client.read(client.operation(), &info.version, 0..info.version.size).await?;
    Ok((decode_sources(&bytes, &at.to_string())?, info.version.tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, tag: &str, keys: &str) -> DatasetSource {
        DatasetSource { path: path.into(), tag: tag.into(), keys: keys.into(), ..DatasetSource::default() }
    }

    #[test]
    fn what_is_doubtful_is_said_once_however_often() {
        let mut sources = vec![source("a", "1", "k1"), source("b", "1", "k2")];
        let (paths, read) = (HashSet::from(["a".to_string()]), [source("a", "2", "k3")]);
        doubt(&mut sources, &paths, &read);
        let once = vec![source("a", "", "k1"), source("b", "1", "k2"), source("a", "", "k3")];
        assert_eq!(sources, once);
        doubt(&mut sources, &paths, &read);
        assert_eq!(sources, once);
        doubt(&mut sources, &paths, &[source("a", "3", "k1")]);
        assert_eq!(sources, [source("b", "1", "k2"), source("a", "", "k3"), source("a", "", "k1")], "it was read last");
    }
}
