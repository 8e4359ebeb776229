//! The table of settings: each is written here and nowhere else. Fields, defaults, variables, flags, `forebay config`, errors and
//! docs/settings.md follow from it.

use std::path::PathBuf;
use std::time::Duration;

use forebay_client::StorageClass;
use forebay_coordinator::{CoordinatorSettings, PlacementSettings};
use forebay_data_folder::{DataFolder, default_disk_bytes, default_dram_bytes};
use forebay_placement::{Policy, Weigh};
use forebay_s3::Anonymous;
use forebay_scheduling::Policy as JobOrder;
use forebay_types::{BitRate, ByteSize};
use forebay_worker::WorkerSettings;

use super::disks::DiskFolders;
use super::setting::Reader::{Commands, Coordinator, Executor, Gateway, Scheduler, Up, Worker};
use super::setting::{ALL, Default, Flag, ROLES, Setting, kebab, settings};
use super::sources::Sources;
use super::types::{Address, Addresses, Folders, Http, Label, LogFormat, OrOff, Secret, Share, ShufflePlace, Slots, Times, Url};
use super::value::Value;
use crate::exit::Outcome;

settings! {
    "Addresses" {
        /// Address of the coordinator: where clients and workers look for it
        /// Those of its standbys come after it, with commas between: whichever leads is found.
        coordinator: Addresses = "127.0.0.1:7400", of ALL, flag Everywhere;

        /// Address that the coordinator listens at
        coordinator_listen: Address = "the first of coordinator" => coordinator.first(), of &[Coordinator], flag Roles;

        /// Address of the scheduler of distributed SQL, or off
        /// With off a query runs in the process that asks.
        scheduler: Option<OrOff<Address>> = "the one that the coordinator knows, if any" => None,
            of &[Commands, Executor], flag Everywhere;

        /// How long SQL, schedulers and executors wait for a coordinator or a scheduler that is away
        /// With 0s not at all.
        wait: Duration = Duration::from_secs(60), of &[Commands, Scheduler, Executor], flag RolesSeldom;

        /// Address that the scheduler of distributed SQL listens at
        scheduler_listen: Address = "127.0.0.1:7420", of &[Scheduler], flag Roles;

        /// Address that an executor hands results out at
        executor_listen: Address = "127.0.0.1:7421", of &[Executor], flag Roles;

        /// Address that the worker's data plane listens at
        worker_listen: Address = "127.0.0.1:7401", of &[Worker], flag Roles;

        /// Address that clients reach the worker at, where it isn't the one it listens at
        /// Schedulers and executors take its host, and need it where they listen at 0.0.0.0.
        advertise: Option<Address> = "the address that it listens at" => None, of &[Worker, Scheduler, Executor], flag Roles;

        /// Where the worker is, as temporary nodes may ask for: the label of a host, a rack or a kind of machine
        location: Option<Label> = "the host's name" => None, of &[Worker], flag Roles;

        /// Address of /metrics, /healthz and /readyz, and on a coordinator of the console and /api/v1; auto for the role's port at 127.0.0.1, or off
        /// The port is 7480, or 7481 for an executor, 7482 for a scheduler, 7483 for a gateway.
        http: Http = Http::Auto, of ROLES, flag Roles;

        /// Answer /metrics to who shows no token as well
        /// /healthz and /readyz always answer.
        metrics_anonymous: bool = false, of ROLES, flag Roles;

        /// Address of Arrow Flight SQL in `forebay up`, or off
        flight: OrOff<Address> = OrOff::On("127.0.0.1:7410".into()), of &[Up], flag Roles;
    }

    "Distributed SQL" {
        /// Tasks that an executor runs at once
        slots: Option<Slots> = "the machine's cores, shared by the executors of a process" => None, of &[Executor], flag Roles;

        /// Order in which the scheduler serves jobs of one priority: by arrival, or fair
        job_order: JobOrder = JobOrder::Fifo, of &[Scheduler], flag Roles;

        /// Bring the input of tasks before they start
        data_scheduler: bool = true, of &[Scheduler], flag Roles;

        /// Where what passes between the stages of a job lies: temporary nodes with the workers, or files of executors
        shuffle: ShufflePlace = ShufflePlace::Nodes, of &[Scheduler], flag RolesSeldom;

        /// Storage class of these nodes: memory first, or disk to keep them off memory
        shuffle_storage_class: StorageClass = StorageClass::Dram, of &[Scheduler], flag RolesSeldom;

        /// What a task reads at least of what the stages before it have left, or a fourth of that of files: smaller partitions go together into one task
        /// Tasks of so little take longer to hand out than to run. With 0B each partition is a task.
        task_bytes: ByteSize = ByteSize(4 << 20), of &[Scheduler], flag None;

        /// Run a task once more on an idle executor when it takes much longer than others of its stage; the first that is done counts
        /// One of ten slots at most runs such a copy. Tasks that write files have none.
        task_copies: bool = true, of &[Scheduler], flag None;
    }

    "S3" {
        /// Address of the S3 gateway, or off
        /// It needs a key, or anonymous access.
        s3: OrOff<Address> = OrOff::On("127.0.0.1:7490".into()), of &[Gateway], flag Roles;

        /// Id of an access key of the S3 gateway, which may do everything
        s3_access_key: Option<String> = "none" => None, of &[Gateway], flag None;

        /// Its secret
        s3_secret_key: Option<Secret> = "none" => None, of &[Gateway], flag None;

        /// TOML file with more access keys, and with what each may do
        s3_keys_file: Option<PathBuf> = "none" => None, of &[Gateway], flag Roles;

        /// What S3 requests without a signature may do
        s3_anonymous: Anonymous = Anonymous::Off, of &[Gateway], flag Roles;

        /// Host below which a bucket's name may stand
        /// With s3.local, lake.s3.local is bucket lake.
        s3_domain: String = "localhost", of &[Gateway], flag None;

        /// Region that S3 clients are told
        /// Signatures for any region are taken.
        s3_region: String = "us-east-1", of &[Gateway], flag None;

        /// Where S3 clients may make buckets, as in s3:// or file:///srv/buckets; each becomes a mount
        s3_new_buckets: Option<Url> = "nowhere" => None, of &[Gateway], flag None;

        /// URL of the S3 service that makes them, where it isn't the cloud's own
        s3_new_buckets_endpoint: Option<Url> = "none" => None, of &[Gateway], flag None;

        /// Let S3 clients change policies, versioning, tags and the like of mounts that are whole buckets
        s3_bucket_configuration: bool = false, of &[Gateway], flag None;

        /// Disk for parts of uploads that are not completed, on mounts that are not S3 and in tmp
        /// They lie in the folder for temporary files (TMPDIR, else /tmp); a part that finds no room is told to slow down.
        s3_upload_disk: ByteSize = "a quarter of the free disk where temporary files lie"
            => ByteSize(default_disk_bytes(&std::env::temp_dir())), of &[Gateway], flag None;
    }

    "Tiers and metadata" {
        /// Folder of the tiers and of the embedded metadata
        data_dir: PathBuf = "./forebay-data", of ALL, flag Roles;

        /// Metadata database: sqlite:FILE or postgres://USER@HOST/DATABASE
        /// A password in it (USER:PASSWORD@HOST) is taken from FOREBAY_METADATA or the settings file, not from the flag.
        metadata: Url = "SQLite in the data folder" => Url(DataFolder::metadata_url(&data_dir)), of &[Coordinator], flag Roles;

        /// Capacity of the DRAM tier
        dram: ByteSize = "a quarter of the memory" => ByteSize(default_dram_bytes()), of &[Worker], flag Roles;

        /// Capacity of the disk tier in the data folder, 0B for none
        disk: ByteSize = "a quarter of the free disk" => ByteSize(default_disk_bytes(&data_dir)), of &[Worker], flag Roles;

        /// Folders on other disks that the disk tier takes as well, each with its capacity, as in /disk1/forebay=500GiB,/disk2/forebay=1TiB
        /// Without a capacity it is a quarter of that disk's free space. They have to be there: name a folder on the disk, not where it is mounted.
        disk_folders: Option<DiskFolders> = "none" => None, of &[Worker], flag RolesSeldom;

        /// Let processes of the same user on the same host read the DRAM tier in place
        /// They ask for that, and make small calls about temporary nodes, by shared memory.
        in_place: bool = true, of &[Worker, Executor], flag Roles;

        /// How long a worker counts as live without a sign of life
        lease: Duration = CoordinatorSettings::LEASE, of &[Coordinator], flag Roles;

        /// Bytes of disk that served shards may take, beside the tiers
        /// What was not asked for longest makes room; shared storage has all of it. What is asked much takes room of the disk tier,
        /// too, as long as it saves more time there than cached blocks.
        shard_bytes: ByteSize = ByteSize(WorkerSettings::SHARD_BYTES), of &[Worker], flag RolesSeldom;

        /// Bytes that may wait in a worker for the shared storage of a mount
        /// Who asks for more is told to come later: loads from a quarter of it on, what is fetched ahead from half of it on.
        storage_queue: ByteSize = ByteSize(WorkerSettings::STORAGE_QUEUE_BYTES), of &[Worker], flag RolesSeldom;

        /// What the worker sends to readers and other workers at most, as in 100MB/s
        /// Reads in place don't count.
        serve_bandwidth: Option<BitRate> = "as much as it can" => None, of &[Worker], flag RolesSeldom;

        /// Share of the tiers that temporary nodes may take; the cache gives way to them
        temporary_share: Share = Share(0.5), of &[Worker], flag RolesSeldom;
    }

    "Replicas" {
        /// How replicas follow popularity: getafix, getafix-paper, another policy of `forebay plan`, or off
        placement: OrOff<Policy> = OrOff::On(Policy::default()), of &[Coordinator], flag RolesSeldom;

        /// What plans weigh of what was read: work (bytes and reads) or accesses (operations, as Getafix does)
        weigh: Option<Weigh> = "work, and accesses for getafix-paper" => None, of &[Coordinator], flag None;

        /// Share of a worker's part of the accesses that a plan may go beyond it
        slack: Share = Share(PlacementSettings::default().slack), of &[Coordinator], flag RolesSeldom;

        /// Bytes that replicas may take, as a multiple of one replica of everything that is read
        /// What is left of it goes to replicas where queues are longest: 2 is the storage of two copies of everything, spent where
        /// it shortens queues most.
        budget: Times = Times(PlacementSettings::default().budget), of &[Coordinator], flag RolesSeldom;

        /// Share of a worker's storage that replicas may take, and from which garbage is collected
        storage_share: Share = Share(PlacementSettings::default().storage_share), of &[Coordinator, Worker], flag RolesSeldom;

        /// Period in which accesses are counted and after which replicas are planned
        window: Duration = PlacementSettings::default().window, of &[Coordinator], flag RolesSeldom;

        /// How often clients ask for workers, mounts and routes
        poll: Duration = PlacementSettings::default().poll, of &[Coordinator], flag RolesSeldom;
    }

    "SQL" {
        /// Remember statements of `forebay sql` on this account, for its prompt and for `forebay table suggest`
        /// They are in $XDG_STATE_HOME/forebay (~/.local/state/forebay): those typed at the prompt, and those that went well, 1 MiB
        /// at most. With false none are kept; what is there already goes when its files are deleted.
        query_history: bool = true, of &[Commands], flag None;

        /// Memory for what queries of this process hold (joins, sorts, aggregates, windows), Flight SQL and executors together
        /// Beyond it they spill to disk, and what can't spill fails with "out of memory".
        sql_memory: ByteSize = "a quarter of the memory" => ByteSize(default_dram_bytes()), of &[Commands, Up, Executor], flag None;

        /// Disk that they may spill to, in the data folder
        sql_spill: ByteSize = "four times sql-memory" => ByteSize(sql_memory.0.saturating_mul(4)),
            of &[Commands, Up, Executor], flag None;

        /// On a cluster, what a query's scans read at least, as planned, to run there; one that reads less runs in the process that asks
        /// Tasks of so little take longer to hand out than to run. With 0B everything runs on the cluster that can.
        distribute_from: ByteSize = ByteSize(32 << 20), of &[Commands, Up], flag None;

        /// Folders, separated by commas, whose files SQL of servers may read and write beside mounts
        /// A server is Flight SQL in `forebay up`, say. Neither links nor .. lead out of the folders.
        file_roots: Option<Folders> = "none" => None, of &[Up, Scheduler, Executor], flag None;

        /// Let SQL of servers read and write buckets that no mount covers, with the server's credentials
        /// A process of one's own (`forebay sql`, Python) may always, and may name local files.
        direct_stores: bool = false, of &[Up, Scheduler, Executor], flag None;

        /// Where no worker is on this host, have those of others select rows of decoded columns, if that is less to send and sooner there
        /// With false whole columns of the file are sent, as they are where nothing is decoded.
        rows_from_afar: bool = true, of &[Commands, Up], flag None;
    }

    "Trust" {
        /// What this process shows, as `forebay token add` printed it
        /// Of a coordinator, a text by which an administrator is let in.
        token: Option<Secret> = "none" => None, of ALL, flag None;

        /// File that holds the token to show; else $FOREBAY_TOKEN
        /// The user who started a cluster on this machine needs none.
        token_file: Option<PathBuf> = "none" => None, of ALL, flag EverywhereSeldom;

        /// What coordinator, workers, schedulers and executors on several machines know each other by
        cluster_secret: Option<Secret> = "none" => None, of &[Coordinator, Worker, Scheduler, Executor], flag None;

        /// File with what the cluster's processes on several machines know each other by; else $FOREBAY_CLUSTER_SECRET
        cluster_secret_file: Option<PathBuf> = "none" => None, of &[Coordinator, Worker, Scheduler, Executor], flag Roles;

        /// PEM file with the certificate that this process shows; switches TLS on
        tls_cert: Option<PathBuf> = "none" => None, of ALL, flag EverywhereSeldom;

        /// PEM file with its private key, of mode 600
        tls_key: Option<PathBuf> = "none" => None, of ALL, flag EverywhereSeldom;

        /// PEM file with the authority that certificates are checked against; switches TLS on
        tls_ca: Option<PathBuf> = "none" => None, of ALL, flag EverywhereSeldom;

        /// PEM file with the authority of clients' certificates: what listens lets in who shows one of it only
        tls_client_ca: Option<PathBuf> = "none" => None, of ROLES, flag None;
    }

    "Logs" {
        /// What is logged to the standard error, as in info or forebay_worker=debug; else $RUST_LOG
        /// Ballista's own messages come from error on; all of them with debug.
        log: Option<String> = "info for roles, warn for commands" => None, of ALL, flag EverywhereSeldom;

        /// How what is logged is written: text for people, or json, an object a line
        log_format: LogFormat = LogFormat::Text, of ALL, flag EverywhereSeldom;

        /// Statements of SQL that are waited for so long, or longer, get a line in the log (target slow_query); 0s for none
        /// What OPTIONS hold, comments, and passwords in URLs are not in it. Commands show these lines with --log slow_query=info.
        slow_query: Duration = Duration::from_secs(10), of &[Commands, Up, Scheduler], flag RolesSeldom;

        /// Address of a collector of OpenTelemetry that is sent traces, as in http://localhost:4318 (OTLP over HTTP, in JSON)
        /// Queries and requests that come with a traceparent are recorded below it, others begin a trace.
        otlp_endpoint: Option<Url> = "none" => None, of ALL, flag EverywhereSeldom;

        /// Share of the traces that begin here that is recorded
        /// What comes with a traceparent is recorded where that says so.
        otlp_share: Share = Share(1.0), of ALL, flag None;

        /// File that gets a line of JSON for whatever changes something or is refused here
        audit_log: Option<PathBuf> = "none" => None, of ROLES, flag RolesSeldom;
    }
}
