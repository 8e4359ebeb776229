//! Nodes as objects: files and values by their paths below `/tmp`, containers as folders.
//!
//! The one view of them for whoever knows objects: the gateway's bucket `tmp`, and the stores that engines read and write.
//!
//! Owns: the ETags of nodes, what is written beside its place until it is whole, and listings in the order of keys.
//!
//! Never does: show an object before it is whole, or know of the S3 API or of stores.
//!
//! Start with [`Nodes::draft`] and [`Nodes::walk`]; [`Nodes::snapshot`] reads.

mod draft;
mod walk;

use forebay_nodes::{CreateOptions, NodeErrorKind, NodeResult, NodeType};
use forebay_types::VersionTag;

use super::Nodes;

pub use draft::NodeDraft;
pub use walk::{NodeItem, NodeWalk};

/// Objects up to this size are key-values, larger ones files.
pub const NODE_VALUE_BYTES_MAX: usize = 32 << 20;
/// What an ETag ends with.
const MARK: &str = "-n";

/// The ETag of the bytes that have a [tag](crate::NodeSnapshot::tag). It is none that clients take for the MD5 of the bytes, as they do with
/// 32 digits alone.
pub fn node_etag(tag: u128) -> VersionTag {
    VersionTag::etag(&format!("\"{tag:032x}{MARK}\""))
}

/// The tag that an ETag says; none when it is none of a node.
pub fn node_tag(etag: &VersionTag) -> Option<u128> {
    let hex = etag.as_str().trim_matches('"').strip_suffix(MARK)?;
    (hex.len() == 32).then(|| u128::from_str_radix(hex, 16).ok()).flatten()
}

impl Nodes {
    /// Makes the directories on the way to a path that are not there.
    pub async fn make_folders(&self, path: &str) -> NodeResult<()> {
        let slashes = path.match_indices('/').map(|(at, _)| at).skip(2);
        for at in slashes {
            match self.create(&path[..at], CreateOptions::new(NodeType::Directory)).await {
                Err(error) if error.kind != NodeErrorKind::Exists => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_says_its_tag_and_others_say_none() {
        for tag in [0, 1, u128::MAX] {
            assert_eq!(node_tag(&node_etag(tag)), Some(tag));
        }
        for other in ["\"d41d8cd98f00b204e9800998ecf8427e\"", "\"1-n\"", "m1-2-3-4", ""] {
            assert_eq!(node_tag(&VersionTag::etag(other)), None, "{other}");
        }
    }
}
