//! What requests take, and which credential has it.

/// What a request takes, as people would say it. Written down apart from what decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Any credential.
    Anything,
    /// Reading this mount.
    Reading,
    /// Writing it.
    Writing,
    /// Writing what the connection has begun.
    WritingOn,
    /// Writing everywhere.
    WritingAll,
    /// Reading everywhere.
    ReadingAll,
    /// Reading temporary data.
    ReadingTmp,
    /// Writing temporary data.
    WritingTmp,
    /// Administering this mount.
    Administering,
    /// Administering everywhere.
    AdministeringAll,
    /// Being a process of the cluster.
    Serving,
}

/// The credentials, by what they are for.
pub const CREDENTIALS: [&str; 11] =
    ["owner", "member", "admin", "write", "read", "write lake", "read lake", "admin lake", "write other", "read tmp", "expired"];

/// Whether a credential has what a request takes.
pub fn has(credential: &str, takes: Takes) -> bool {
    use Takes::*;
    match credential {
        "owner" => true,
        "member" => !matches!(takes, Administering | AdministeringAll),
        "admin" => takes != Serving,
        "write" => !matches!(takes, Administering | AdministeringAll | Serving),
        "read" => matches!(takes, Anything | Reading | ReadingAll | ReadingTmp),
        "admin lake" => matches!(takes, Anything | Reading | Writing | WritingOn | Administering),
        "write lake" => matches!(takes, Anything | Reading | Writing | WritingOn),
        "read lake" => matches!(takes, Anything | Reading),
        "write other" => matches!(takes, Anything | WritingOn),
        "read tmp" => matches!(takes, Anything | ReadingTmp),
        "expired" => false,
        other => unreachable!("{other}"),
    }
}
