//! Jobs as people see them: shown and cancelled while they run, and hurried by a bound that is raised.

use std::time::{Duration, Instant};

use ballista_core::BALLISTA_PROTOCOL_VERSION;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::protobuf::{ExecutorRegistration, PollWorkParams};
use ballista_core::serde::scheduler::{ExecutorOperatingSystemSpecification, ExecutorSpecification};
use forebay_client::AdminRequest;
use forebay_transport::Security;
use forebay_types::{BitRate, ErrorKind, MountOptions};

use crate::bed::{Bed, rows};
use crate::calls::way;

fn bound(rate: &str) -> MountOptions {
    MountOptions { bandwidth: Some(rate.parse::<BitRate>().unwrap()), ..Default::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_job_is_seen_and_cancelled() {
    let bed = Bed::with(2, bound("4Mbit"), true).await;
    let cluster = bed.cluster().await;
    bed.tpch(0.05, &[&cluster]).await;
    let running =
        tokio::spawn(async move { cluster.execute("select sum(l_quantity) from lineitem").await.unwrap().collect().await });
    let control = bed.control();
    let began = Instant::now();
    let job = loop {
        let jobs = control.jobs().await.unwrap();
        if let Some(job) = jobs.into_iter().find(|job| job.bytes > 0) {
            break job;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "no job");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(job.state == "running" && job.tasks_done < job.tasks, "{job:?}");
    assert!(job.sql.contains("l_quantity"));
    let transfers = control.transfers().await.unwrap();
    assert!(transfers.iter().any(|transfer| transfer.path.starts_with("/lake/tpch/lineitem/")), "{transfers:?}");
    loop {
        let tasks = control.tasks().await.unwrap();
        if tasks.iter().any(|task| task.job == job.id && task.state == "running" && task.bytes > 0) {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "none of its tasks runs: {tasks:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    control.cancel(&job.id).await.unwrap();
    let error = running.await.unwrap().unwrap_err();
    // Who asks for tasks has the jobs looked at that are over, whoever asks for those.
    let tasks = control.tasks().await.unwrap();
    let ended = tasks.iter().filter(|task| task.job == job.id).all(|task| task.state != "running");
    assert!(ended && tasks.iter().any(|task| task.job == job.id && task.state == "failed"), "they ended with it: {tasks:?}");
    assert!(error.to_string().to_lowercase().contains("cancel"), "{} {error}", error.kind());
    assert_eq!(control.cancel("0123").await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_job_ends_with_the_process_that_waits_for_it() {
    let bed = Bed::with(2, bound("4Mbit"), true).await;
    let cluster = bed.cluster().await;
    bed.tpch(0.05, &[&cluster]).await;
    // What would tell the scheduler is not done by a runtime that is gone, as by a process that is killed.
    let process = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    process.spawn(async move { cluster.execute("select sum(l_quantity) from lineitem").await.unwrap().collect().await });
    let control = bed.control();
    let began = Instant::now();
    let id = loop {
        let jobs = control.jobs().await.unwrap();
        if let Some(job) = jobs.into_iter().find(|job| job.bytes > 0) {
            assert!(job.state == "running", "{job:?}");
            break job.id;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "no job");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    process.shutdown_background();
    let began = Instant::now();
    loop {
        let job = control.jobs().await.unwrap().into_iter().find(|job| job.id == id).unwrap();
        if job.state == "failed" {
            break;
        }
        assert!(job.state == "running" && began.elapsed() < Duration::from_secs(10), "{job:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_bound_that_is_raised_holds_from_then_on() {
    let bed = Bed::with(2, bound("2Mbit"), true).await;
    let cluster = bed.cluster().await;
    bed.tpch(0.05, &[&cluster]).await;
    let running = tokio::spawn(async move { rows(&cluster, "select sum(l_quantity), sum(l_orderkey) from lineitem").await });
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!running.is_finished(), "at 2 Mbit/s it takes longer");
    let options = MountOptions {
        endpoint: Some(bed.test.s3.endpoint()),
        anonymous: true,
        validate: forebay_types::Validate::Always,
        ..bound("1Gbit")
    };
    bed.client.control(AdminRequest::MountSet { name: "lake".parse().unwrap(), options }).await.unwrap();
    tokio::time::timeout(Duration::from_secs(30), running).await.unwrap().unwrap();
}

/// How long an executor of two slots waits for the answer that there is nothing to do.
async fn asks(bed: &Bed, free: u32) -> Duration {
    let channel = way(bed.scheduler_at(), &Security::default().shows.unwrap()).await.unwrap();
    let executor = ExecutorRegistration {
        id: "0000000000000063-0000000000000001".to_string(),
        host: Some("127.0.0.1".to_string()),
        port: 1,
        grpc_port: 1,
        specification: Some(ExecutorSpecification::default().with_vcores(2).into()),
        os_info: Some(ExecutorOperatingSystemSpecification::default().into()),
        ballista_protocol_version: BALLISTA_PROTOCOL_VERSION,
    };
    let asked = PollWorkParams { metadata: Some(executor), num_free_vcores: free, task_status: Vec::new() };
    let began = Instant::now();
    let answer = SchedulerGrpcClient::new(channel).poll_work(asked).await.unwrap().into_inner();
    assert!(answer.tasks.is_empty());
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_has_nothing_to_do_waits_for_the_answer_and_who_has_a_task_does_not() {
    let bed = Bed::start(1).await;
    let held = Duration::from_millis(500);
    assert!(asks(&bed, 2).await >= held);
    // It has to tell how its task ends.
    for free in [1, 0] {
        let mut quickest = Duration::MAX;
        for _ in 0..5 {
            quickest = quickest.min(asks(&bed, free).await);
        }
        assert!(quickest < held, "{quickest:?} with {free} slots free");
    }
}
