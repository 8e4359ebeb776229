//! Names and paths, byte for byte, and how long they may be.

use super::error::{NodeError, NodeErrorKind, NodeResult};

/// Longest name of a node, in bytes.
pub const NAME_BYTES_MAX: usize = 4 << 10;
/// Longest path, in bytes.
pub const PATH_BYTES_MAX: usize = 64 << 10;

/// Checks one name: UTF-8 as it is, whatever is in it but `/` and NUL.
pub fn check_name(name: &str) -> NodeResult<()> {
    let wrong = match name {
        "" => "a name is empty: leave no // in a path and no / at its end",
        _ if name.len() > NAME_BYTES_MAX => "a name has more than 4096 bytes",
        // Bytes, as neither is a part of a longer character.
        _ if name.bytes().any(|byte| matches!(byte, b'/' | 0)) => "a name has a / or NUL in it",
        _ => return Ok(()),
    };
    Err(NodeError::new(NodeErrorKind::Invalid, wrong))
}

/// The names of a path below `/tmp`, which begins with it: `/tmp/a/b` gives `a/b`, `/tmp` nothing.
pub fn split(path: &str) -> NodeResult<&str> {
    let rest = match path.strip_prefix("/tmp") {
        Some("") => return Ok(""),
        Some(rest) => rest.strip_prefix('/'),
        None => None,
    };
    let Some(rest) = rest else {
        return Err(NodeError::new(NodeErrorKind::Invalid, format!("{path:?}: temporary nodes are below /tmp")));
    };
    if path.len() > PATH_BYTES_MAX {
        return Err(NodeError::new(NodeErrorKind::Invalid, "a path has more than 65536 bytes"));
    }
    rest.split('/').try_for_each(check_name).map_err(|error| error.context(format!("{path:?}")))?;
    Ok(rest)
}

/// Whether `inner` is `outer` or below it; both as [`split`] gives them.
pub fn is_inside(inner: &str, outer: &str) -> bool {
    outer.is_empty() || inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
