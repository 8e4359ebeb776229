//! Cells that do not come to their end.

use std::path::PathBuf;
use std::time::Duration;

use forebay_storm::cell::{self, Plan};
use forebay_storm::cells::Cell;
use forebay_storm::report::Outcome;

/// Its results were those of all others, too.
#[tokio::test]
async fn a_cell_that_can_not_be_started_has_a_report_of_that() {
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan {
        cell: Cell::named("calm").unwrap(),
        seed: 3,
        load: Duration::from_secs(10),
        binary: PathBuf::from("/bin/false"),
        other: None,
        evidence: folder.path().to_owned(),
    };
    let report = cell::run(&plan).await;
    assert_eq!(report.outcome, Outcome::NotRun);
    assert!(report.reason.as_deref().is_some_and(|reason| reason.contains("coordinator does not come up")), "{report:?}");
    assert_eq!(report.evidence, Some(folder.path().join("calm-3")));
}
