//! Tasks have columns decoded by workers, and read them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::{ExecutionPlan, collect};
use forebay_sql::{Engine, EngineSettings};
use forebay_types::{HotForm, MountOptions};

use super::tables::Kept;
use crate::bed::{Bed, lines, rows};

/// How long columns may take to be decoded.
const SOON: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(300);

/// Row groups or chunks that a plan which has run has read decoded.
fn decoded(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let count = |name| plan.metrics().and_then(|metrics| metrics.sum_by_name(name)).map_or(0, |value| value.as_usize());
    count("row_groups_decoded") + count("chunks_decoded") + plan.children().into_iter().map(decoded).sum::<usize>()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tasks_have_columns_of_parquet_decoded_and_read_them() {
    read_decoded("parquet").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tasks_have_columns_of_text_decoded_and_read_them() {
    read_decoded("csv").await;
}

async fn read_decoded(ending: &str) {
    let bed = Bed::with(2, MountOptions { hot_form: HotForm::Table, ..Default::default() }, true).await;
    let raw = Engine::over_client(bed.client.clone(), EngineSettings { hot_form: false, ..Default::default() });
    rows(&raw, "set datafusion.execution.parquet.max_row_group_size = 30000").await;
    // Of text two chunks, of Parquet ten row groups, each with a column of strings, that plans of the cluster want without views.
    let all = "value as id, nullif(value % 5, 0) as rest, concat('a longer name ', value % 100) as name";
    rows(&raw, &format!("copy (select {all} from generate_series(1, 300000) as t(value)) to '/lake/v.{ending}'")).await;
    let sql =
        format!("select rest, count(*), sum(id), min(name), max(name) from '/lake/v.{ending}' where id % 3 = 0 group by rest");
    let expected = rows(&raw, &sql).await;
    let cluster = bed.cluster().await;
    rows(&cluster, "set datafusion.optimizer.repartition_file_min_size = 0").await;
    let began = Instant::now();
    // Nobody but tasks asks for columns here.
    let held = || bed.test.node.workers.iter().map(|worker| worker.report().form_bytes).sum::<u64>();
    while held() == 0 {
        assert!(began.elapsed() < SOON, "nothing is decoded for tasks");
        assert_eq!(rows(&cluster, &sql).await, expected);
        tokio::time::sleep(PAUSE).await;
    }

    let kept = Arc::new(Kept::new(bed.connect_cluster(0).await));
    let planner = Engine::over_cluster(bed.client.clone(), EngineSettings::default(), Arc::clone(&kept) as _);
    rows(&planner, "set datafusion.optimizer.repartition_file_min_size = 0").await;
    assert_eq!(rows(&planner, &sql).await, expected);
    let query = kept.take();
    let executor = Engine::over_client(bed.client.clone(), EngineSettings::default());
    assert!(executor.has_decoded() && !raw.has_decoded());
    let runtime = executor.runtime_of(query.operation, query.pins.clone()).unwrap();
    loop {
        let plan = executor.with_decoded(Arc::clone(&query.plan), query.operation, query.pins.clone()).unwrap();
        let context = Arc::new(TaskContext::default().with_runtime(Arc::clone(&runtime)));
        assert_eq!(lines(&collect(Arc::clone(&plan), context).await.unwrap()), expected);
        if decoded(&plan) > 0 {
            break;
        }
        assert!(began.elapsed() < SOON, "what is decoded is not read");
        assert_eq!(rows(&cluster, &sql).await, expected);
        tokio::time::sleep(PAUSE).await;
    }
    assert_eq!(rows(&cluster, &sql).await, expected);
}

/// Into how many parts the scan of files of that ending is cut.
fn parts(plan: &Arc<dyn ExecutionPlan>, ending: &str) -> Option<usize> {
    let scan = plan.downcast_ref::<DataSourceExec>().and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>());
    let is_it = |scan: &&FileScanConfig| {
        let mut files = scan.file_groups.iter().flat_map(|group| group.files());
        files.any(|file| file.object_meta.location.as_ref().ends_with(ending))
    };
    let own = scan.filter(is_it).map(|scan| scan.file_groups.len());
    own.or_else(|| plan.children().into_iter().find_map(|child| parts(child, ending)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn beside_text_that_is_cut_at_chunks_other_scans_are_cut_for_all_tasks_before_they_are_sent() {
    let bed = Bed::with(2, MountOptions { hot_form: HotForm::Table, ..Default::default() }, true).await;
    let here = bed.here();
    for ending in ["csv", "parquet"] {
        let copy = format!("copy (select value as id from generate_series(1, 100000) as t(value)) to '/lake/v.{ending}'");
        rows(&here, &copy).await;
    }
    let kept = Arc::new(Kept::new(bed.connect_cluster(0).await));
    let planner = Engine::over_cluster(bed.client.clone(), EngineSettings::default(), Arc::clone(&kept) as _);
    rows(&planner, "set datafusion.optimizer.repartition_file_min_size = 0").await;
    let of = |ending: &str| format!("(select sum(id) as s from '/lake/v.{ending}')");
    let sql = format!("select a.s, b.s from {} a cross join {} b", of("csv"), of("parquet"));
    assert_eq!(rows(&planner, &sql).await, rows(&here, &sql).await);
    let query = kept.take();
    assert!(!query.config.options().optimizer.repartition_file_scans, "text is not cut once more");
    let tasks = query.config.target_partitions();
    assert!(tasks > 2, "more than this process would have");
    assert_eq!(parts(&query.plan, ".parquet"), Some(tasks));
}
