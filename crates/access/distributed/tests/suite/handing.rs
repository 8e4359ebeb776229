//! What an executor hands out: its outputs as bytes, and nothing that lies elsewhere.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::{Action, Ticket};
use ballista_core::serde::protobuf;
use ballista_core::serde::scheduler::{Action as Ask, ByteRange, ShuffleFileKind, ShuffleLayout};
use forebay_client::Security;
use forebay_distributed::{Executor, ExecutorSettings};
use forebay_sql::EngineSettings;
use futures::TryStreamExt;
use prost::Message;
use tonic::Code;
use tonic::transport::Channel;

use crate::bed::{Bed, rows};
use crate::calls::way;

const WHOLE_FILE: &str = "IO_BLOCK_TRANSPORT";

fn ask(job: &str, layout: ShuffleLayout, file_kind: ShuffleFileKind, byte_ranges: Vec<ByteRange>) -> Vec<u8> {
    let (stage_id, partition_id, host, port) = (1, 2, "localhost".to_string(), 1);
    let job_id = job.to_string().into();
    let ask =
        Ask::FetchPartition { job_id, stage_id, partition_id, host, port, file_id: Some(2), layout, file_kind, byte_ranges };
    let ask: protobuf::Action = ask.try_into().unwrap();
    ask.encode_to_vec()
}

fn whole(job: &str, layout: ShuffleLayout) -> Vec<u8> {
    ask(job, layout, ShuffleFileKind::Data, Vec::new())
}

async fn handed(client: &mut FlightServiceClient<Channel>, kind: &str, body: Vec<u8>) -> Result<Vec<u8>, tonic::Status> {
    let pieces = client.do_action(Action { r#type: kind.to_string(), body: body.into() }).await?.into_inner();
    Ok(pieces.try_collect::<Vec<_>>().await?.into_iter().flat_map(|piece| piece.body.to_vec()).collect())
}

/// Files as outputs of a job are, with these bytes.
fn put(job: &Path, bytes: &[u8]) {
    fs::create_dir_all(job.join("1/2")).unwrap();
    // Where in a file the outputs of each partition begin, and where they all end.
    let index = [0i64, 0, 0, bytes.len() as i64].map(i64::to_le_bytes).concat();
    for name in ["data-2.arrow", "data.arrow"] {
        fs::write(job.join("1/2").join(name), bytes).unwrap();
        fs::write(job.join("1/2").join(format!("{name}.index")), &index).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_name_of_a_job_brings_what_lies_elsewhere() {
    let bed = Bed::start(1).await;
    let (folder, port) = (bed.executor_folder(0), bed.executors[0].as_ref().unwrap().address());
    let outside = folder.parent().unwrap().join("outside");
    put(&folder.join("a-job"), b"an output");
    put(&outside, b"a secret");
    // Below the folder too, where no job is.
    put(&folder.join("a-job/below"), b"a secret");
    put(&folder, b"a secret");
    std::os::unix::fs::symlink(&outside, folder.join("a.link")).unwrap();
    let mut client = FlightServiceClient::new(way(port, &bed.shows()).await.unwrap());
    assert_eq!(handed(&mut client, WHOLE_FILE, whole("a-job", ShuffleLayout::Passthrough)).await.unwrap(), b"an output");
    let absolute = outside.display().to_string();
    for job in
        ["../outside", "a-job/../../outside", "./../outside", &absolute, "a.link", ".", "", "a-job/below", "a-job/", "..", "a\0"]
    {
        assert!(
            job.is_empty() || job == ".." || job.contains('\0') || folder.join(job).join("1/2/data-2.arrow").exists(),
            "{job:?}"
        );
        for layout in [ShuffleLayout::Passthrough, ShuffleLayout::Sort] {
            let error = handed(&mut client, WHOLE_FILE, whole(job, layout)).await.unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{job:?}: {error}");
        }
    }
    let layout = ShuffleLayout::Passthrough;
    let index = ask("a-job", layout, ShuffleFileKind::Index, Vec::new());
    let some = ask("a-job", layout, ShuffleFileKind::Data, vec![ByteRange { offset: 0, length: 1 }]);
    let good = whole("a-job", layout);
    for (kind, body) in [(WHOLE_FILE, index), (WHOLE_FILE, some), (WHOLE_FILE, b"noise".to_vec()), ("IO_BLOCK_TRANSFER", good)] {
        let error = handed(&mut client, kind, body).await.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nobody_has_an_executor_decode_and_results_come_all_the_same() {
    let bed = Bed::start(2).await;
    let (here, cluster) = (bed.here(), bed.cluster().await);
    rows(&here, "copy (select value as id, value % 97 as k from generate_series(1, 200000) as t(value)) to '/lake/t.parquet'")
        .await;
    // Results of many parts, which come in their order: no task brings them together.
    let sql = "select k, count(*), sum(id) from '/lake/t.parquet' group by k";
    assert_eq!(rows(&cluster, sql).await, rows(&here, sql).await);
    let sql = "select id, k from '/lake/t.parquet' where id % 3 = 0";
    assert_eq!(rows(&cluster, sql).await, rows(&here, sql).await);
    assert_eq!(bed.control().jobs().await.unwrap().len(), 2, "both ran on the cluster");
    put(&bed.executor_folder(0).join("a-job"), b"an output");
    let port = bed.executors[0].as_ref().unwrap().address();
    let mut client = FlightServiceClient::new(way(port, &bed.shows()).await.unwrap());
    let ticket = Ticket { ticket: whole("a-job", ShuffleLayout::Passthrough).into() };
    assert_eq!(client.do_get(ticket).await.unwrap_err().code(), Code::PermissionDenied, "not even to the owner");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_executor_keeps_is_out_of_reach_of_other_users() {
    let bed = Bed::start(1).await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&bed.executor_folder(0)), 0o700, "all of its files are below it");
    // One that was open to all, with what an earlier executor has left there, and one that is made with those above it.
    let (old, new) = (bed.executor_folder(1), bed.executor_folder(2).join("below/that"));
    put(&old.join("a-job"), b"an output");
    fs::set_permissions(&old, fs::Permissions::from_mode(0o777)).unwrap();
    for folder in [old, new] {
        let settings = ExecutorSettings {
            scheduler: bed.scheduler_at().to_string(),
            follows: false,
            security: Security::default(),
            listen: "127.0.0.1:0".to_string(),
            advertise: None,
            slots: 1,
            folder: folder.clone(),
            worker: None,
            engine: EngineSettings::default(),
        };
        let _executor = Executor::start(bed.client.clone(), settings).await.unwrap();
        assert_eq!((mode(&folder), folder.join("a-job").exists()), (0o700, false), "{}", folder.display());
    }
}
