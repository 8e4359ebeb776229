//! What fills the workers' tiers, by mounts and by tables.

use std::time::Duration;

use forebay_protocol::{FilledBytes, FilledPart};
use schemars::JsonSchema;
use serde::Serialize;

use super::recent::Bounds;

/// Mounts, and tables, that one answer has at most.
pub(crate) const PARTS_MAX: usize = 100;
/// Looks are all alike, and what is held changes slowly.
pub(crate) const LOOKS: Bounds = Bounds { steps: &[PARTS_MAX], fresh: Duration::from_secs(2) };

/// What workers hold of the segments that placement knows: those that were read in the last windows, or that it has ordered.
#[derive(JsonSchema, Serialize)]
pub(crate) struct Filled {
    /// Workers, by their ids; where there are more than 256, those that hold most.
    workers: Vec<String>,
    workers_known: u64,
    mounts_known: u64,
    tables_known: u64,
    /// All of it.
    held: FilledBytes,
    /// Mounts, those first of which most is held.
    mounts: Vec<PartNow>,
    /// Tables: folders with all that lies below them, where queries read it together or it is named as partitions are. Likewise.
    tables: Vec<PartNow>,
}

#[derive(JsonSchema, Serialize)]
struct PartNow {
    path: String,
    /// On all workers.
    held: FilledBytes,
    /// Bytes on each of `workers`, in their order.
    by_worker: Vec<u64>,
}

impl Filled {
    /// What a coordinator says, with so many mounts and so many tables at most.
    pub(crate) fn of_first(filled: &forebay_protocol::Filled, limit: usize) -> Self {
        let parts = |parts: &[FilledPart]| parts.iter().take(limit).map(PartNow::of).collect();
        Self {
            workers: filled.workers.iter().map(ToString::to_string).collect(),
            workers_known: filled.workers_known,
            mounts_known: filled.mounts_known,
            tables_known: filled.tables_known,
            held: filled.all,
            mounts: parts(&filled.mounts),
            tables: parts(&filled.tables),
        }
    }
}

impl PartNow {
    fn of(part: &FilledPart) -> Self {
        let folder = part.table.as_ref().filter(|table| !table.is_empty()).map(|table| format!("{table}/"));
        let path = format!("/{}/{}", part.mount, folder.unwrap_or_default());
        Self { path, held: part.held, by_worker: part.by_worker.clone() }
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::WorkerId;
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_have_paths_and_are_bounded() {
        let part = |table: Option<String>| FilledPart {
            mount: "lake".parse().unwrap(),
            table,
            held: FilledBytes { segments: 2, popularity: 1.5, bytes: 30, decoded_bytes: 10, distinct_bytes: 20 },
            by_worker: vec![10, 20],
        };
        let workers = vec![WorkerId(1), WorkerId(2)];
        let tables = [Some("a//b".to_string()), Some(String::new())].map(part).to_vec();
        let filled =
            forebay_protocol::Filled { workers, mounts: vec![part(None)], tables, tables_known: 9, ..Default::default() };
        let paths = |limit: usize| {
            let shown = json!(Filled::of_first(&filled, limit));
            let of = |what: &str| shown[what].as_array().unwrap().iter().map(|it| it["path"].clone()).collect::<Vec<_>>();
            (of("mounts"), of("tables"))
        };
        assert_eq!(paths(2), (vec![json!("/lake/")], vec![json!("/lake/a//b/"), json!("/lake/")]));
        assert_eq!(paths(1).1.len(), 1);
        let shown = json!(Filled::of_first(&filled, 1));
        assert_eq!((&shown["tables"][0]["by_worker"], &shown["workers"][1]), (&json!([10, 20]), &json!("w0000000000000002")));
        let held = json!({"segments": 2, "popularity": 1.5, "bytes": 30, "decoded_bytes": 10, "distinct_bytes": 20});
        assert_eq!((&shown["tables"][0]["held"], &shown["tables_known"]), (&held, &json!(9)));
    }

    #[test]
    fn the_largest_answer_is_below_a_mebibyte() {
        let part = |at: usize| FilledPart {
            mount: "m".repeat(63).parse().unwrap(),
            table: Some(format!("{at:0>200}")),
            held: FilledBytes {
                segments: 1 << 20,
                popularity: 1e9 / 7.0,
                bytes: 1 << 46,
                decoded_bytes: 1 << 45,
                distinct_bytes: 1 << 44,
            },
            by_worker: vec![9_999_999_999_999; 256],
        };
        let parts: Vec<FilledPart> = (0..PARTS_MAX).map(part).collect();
        let workers = (0..256).map(|worker| WorkerId(u64::MAX - worker)).collect();
        let filled = forebay_protocol::Filled { workers, mounts: parts.clone(), tables: parts, ..Default::default() };
        let text = json!(Filled::of_first(&filled, PARTS_MAX)).to_string();
        assert!(text.len() < 1 << 20, "{} bytes", text.len());
    }
}
