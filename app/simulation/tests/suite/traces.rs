//! Traces: how lines are read, written and refused, what published formats come to, and what runs are made of them.

use forebay_simulation::{
    Access, AccessKind, Conversion, Converted, MixApartSettings, Published, Recorded, accesses, convert, mixapart_jobs,
    mixapart_replays,
};
use forebay_types::Result;

const TWITTER: &str = "\
0,nz:u:eeW511W3dcH3de3d15ec,22,304,5,get,0
0,nz:u:a,b,8,0,5,gets,0
1,nz:u:eeW511W3dcH3de3d15ec,22,310,7,set,3600
2,nz:u:x,6,0,7,delete,0
";
const CACHE_LIB: &str = "\
key,op,size,op_count,key_size
1668757755,SET,82,1,40
1668757755,GET,82,3,40
1665497896,GET_LEASE,0,1,78,
1665497896,DELETE,0,1,78
";
const CACHE_LIB_TIMED: &str = "\
op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase,sub_usecase
604038471,82131353f9ddc8c6,48,GET,2,87,1,0,366387042,3003229276
604038473,828769c1e1ce3a29,67,SET_LEASE,1,65,0,7200,2777918327,655456894
";
const ALIBABA: &str = "\
0,R,126703644672,4096,1577808000000626
419,W,8192,16384,1577808000001626
";
const SNIA: &str = "\
128166372003061629,hm,0,Read,9556066304,4096,149890
128166372013061629,hm,1,Write,0,65536,30123
";

fn converted(from: Published, text: &str, leaves_out: bool) -> Result<(Converted, String)> {
    let mut trace = Vec::new();
    let converted = convert(&Conversion { from, per_second: 1_000.0, leaves_out }, text.as_bytes(), &mut trace)?;
    Ok((converted, String::from_utf8(trace).expect("a trace is a text")))
}

fn read(from: Published, text: &str) -> Vec<Access> {
    let (_, trace) = converted(from, text, false).expect("all lines can be read");
    accesses(trace.as_bytes()).collect::<Result<_>>().expect("what is written is read")
}

fn of(at_us: u64, op: AccessKind, path: &str, start: u64, bytes: u64) -> Access {
    Access { op, start, ..Access::new(at_us, path, bytes) }
}

#[test]
fn published_formats_have_their_fields_and_units() {
    use AccessKind::{Delete, Read, Write};
    assert_eq!(
        read(Published::Twitter, TWITTER),
        [
            of(0, Read, "nz:u:eeW511W3dcH3de3d15ec", 0, 304),
            of(0, Read, "nz:u:a,b", 0, 0),
            of(1_000_000, Write, "nz:u:eeW511W3dcH3de3d15ec", 0, 310),
            of(2_000_000, Delete, "nz:u:x", 0, 0),
        ]
    );
    assert_eq!(
        read(Published::CacheLib, CACHE_LIB),
        [
            of(0, Write, "1668757755", 0, 82),
            Access { times: 3, ..of(1_000, Read, "1668757755", 0, 82) },
            of(4_000, Read, "1665497896", 0, 0),
            of(5_000, Delete, "1665497896", 0, 0),
        ]
    );
    assert_eq!(
        read(Published::CacheLib, CACHE_LIB_TIMED),
        [
            Access { times: 2, ..of(604_038_471_000_000, Read, "82131353f9ddc8c6", 0, 87) },
            of(604_038_473_000_000, Write, "828769c1e1ce3a29", 0, 65),
        ]
    );
    assert_eq!(
        read(Published::Alibaba, ALIBABA),
        [
            of(1_577_808_000_000_626, Read, "device/0", 126_703_644_672, 4_096),
            of(1_577_808_000_001_626, Write, "device/419", 8_192, 16_384),
        ]
    );
    // 2007-02-22T17:00:00.306Z.
    assert_eq!(
        read(Published::Snia, SNIA),
        [of(1_172_163_600_306_162, Read, "hm/0", 9_556_066_304, 4_096), of(1_172_163_601_306_162, Write, "hm/1", 0, 65_536),]
    );
}

#[test]
fn lines_that_cannot_be_are_named_and_left_out_only_when_asked() {
    for (from, text, what) in [
        (Published::Twitter, "0,k,1,-5,1,get,0", "\"-5\" is no value size"),
        (Published::Twitter, "0,k,1,5,1,get", "too few fields"),
        (Published::Twitter, "0,k,1,5,1,fetch,0", "\"fetch\" is no operation"),
        (Published::Twitter, "0,k,1,99999999999999999,1,get,0", "past the largest object"),
        (Published::CacheLib, "k,GET,9,0,1", "not for 0"),
        (Published::CacheLib, "k,GET,9,9999999,1", "not for 9999999"),
        (Published::CacheLib, "k,SAT,9,1,1", "\"SAT\" is no op"),
        (Published::CacheLib, "k,GET", "it has no op_count"),
        (Published::CacheLib, "key,op,size\n", "no column \"op_count\""),
        (Published::Alibaba, "0,R,18446744073709551615,4096,1", "past the largest object"),
        (Published::Alibaba, "0,R,0,4096,99999999999999999", "is no time"),
        (Published::Alibaba, "0,X,0,4096,1", "\"X\" is no opcode"),
        (Published::Alibaba, "0,R,0,40.5,1", "\"40.5\" is no length"),
        (Published::Snia, "1,hm,0,Read,0,512,1", "before 1970"),
        (Published::Snia, "128166372003061629,hm,0,Read,0", "it has 5 fields"),
    ] {
        // A good line before it and one after.
        let good = match from {
            Published::Twitter => "0,k,1,5,1,get,0",
            Published::CacheLib => "k,GET,5,1,1",
            Published::Alibaba => "0,R,0,5,1",
            Published::Snia => "128166372003061629,hm,0,Read,0,5,1",
        };
        let text = format!("{good}\n\n{text}\n{good}\n");
        let error = converted(from, &text, false).expect_err(what);
        assert!(error.message().starts_with("line 3: ") && error.message().contains(what), "{error}");
        let (left, trace) = converted(from, &text, true).expect("it is left out");
        assert_eq!((left.lines, left.accesses, left.left_out), (2, 2, 1), "{text}");
        assert!(left.told.len() == 1 && left.told[0].contains(what), "{:?}", left.told);
        assert_eq!(trace.lines().count(), 2);
    }
}

#[test]
fn an_access_is_read_as_it_is_written() {
    let access = Access {
        times: 7,
        operation: Some(u64::MAX),
        way: Some("in place".into()),
        ..of(5, AccessKind::Write, "/lake/a \"b\"\n,c", 1 << 30, 1 << 20)
    };
    assert_eq!(Access::read(&access.line().unwrap()).unwrap(), access);
    let short = Access::read(r#"{"at_us":9,"path":"/lake/a","bytes":4,"more":[1]}"#).unwrap();
    assert_eq!(short, Access::new(9, "/lake/a", 4));
    assert_eq!(short.line().unwrap(), r#"{"at_us":9,"op":"read","path":"/lake/a","bytes":4}"#);
    for wrong in [
        "{}",
        "[]",
        r#"{"at_us":1,"path":"","bytes":1}"#,
        r#"{"at_us":1,"path":"a","bytes":-1}"#,
        r#"{"at_us":1,"path":"a","bytes":1125899906842625}"#,
        r#"{"at_us":1,"path":"a","bytes":2,"start":1125899906842623}"#,
        r#"{"at_us":1,"path":"a","bytes":1,"times":0}"#,
        r#"{"at_us":1,"path":"a","bytes":1,"operation":"z"}"#,
        r#"{"at_us":18446744073709551615,"path":"a","bytes":1}"#,
    ] {
        assert!(Access::read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn damaged_traces_are_refused_and_harm_nothing() {
    let samples = [
        (Published::Twitter, TWITTER),
        (Published::CacheLib, CACHE_LIB_TIMED),
        (Published::Alibaba, ALIBABA),
        (Published::Snia, SNIA),
    ];
    let mut state = 1u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for round in 0..4_000 {
        let (from, text) = samples[round % samples.len()];
        let mut damaged = text.as_bytes().to_vec();
        for _ in 0..=random(3) {
            let at = random(damaged.len());
            match random(3) {
                0 => damaged[at] = b",\n-9R\xff\"."[random(8)],
                1 => {
                    damaged.remove(at);
                }
                _ => damaged.insert(at, b'0' + random(10) as u8),
            }
        }
        let mut trace = Vec::new();
        let conversion = Conversion { from, per_second: 1.0, leaves_out: true };
        let left = convert(&conversion, &damaged[..], &mut trace).expect("what can't be read is left out");
        let read: Vec<Access> = accesses(&trace[..]).collect::<Result<_>>().expect("what is written is read");
        assert_eq!(read.len() as u64, left.lines);
    }
}

#[test]
fn reads_of_one_operation_are_one_query_and_large_objects_have_their_segments() {
    let trace = "\
{\"at_us\":5000000,\"path\":\"/lake/a\",\"bytes\":10,\"operation\":\"1\"}
{\"at_us\":5000007,\"path\":\"/lake/b\",\"start\":67108863,\"bytes\":2,\"operation\":\"1\"}
{\"at_us\":5000003,\"path\":\"/lake/a\",\"bytes\":30,\"operation\":\"2\"}
{\"at_us\":5000001,\"op\":\"write\",\"path\":\"/lake/c\",\"bytes\":30}
{\"at_us\":5000009,\"path\":\"/lake/a\",\"bytes\":20,\"operation\":\"1\"}

{\"at_us\":5000011,\"path\":\"/lake/a\",\"bytes\":1,\"times\":2}
";
    let recorded = Recorded::read(trace.as_bytes()).expect("it is a trace");
    assert_eq!(recorded.paths, ["/lake/a", "/lake/b", "/lake/b#1"]);
    assert_eq!(recorded.bytes, [30, 64 << 20, 1]);
    let queries: Vec<(u64, Vec<u32>)> = recorded.queries.iter().map(|query| (query.at, query.segments.clone())).collect();
    assert_eq!(queries, [(0, vec![0, 1, 2]), (3, vec![0]), (11, vec![0]), (11, vec![0])]);
    let logged = Recorded::read("1,a,5\n2,a,5\n".as_bytes()).expect("it is a log");
    assert_eq!(logged.queries.len(), 2);
    let wrong = Recorded::read("{\"at_us\":1,\"path\":\"a\",\"bytes\":1}\n{\n".as_bytes()).expect_err("its second line is cut");
    assert!(wrong.message().starts_with("line 2: "), "{wrong}");
    assert!(Recorded::read("{\"at_us\":1,\"op\":\"write\",\"path\":\"a\",\"bytes\":1}".as_bytes()).is_err(), "nothing is read");
}

#[test]
fn queries_whose_times_are_whole_seconds_are_spread() {
    let line = |secs: u64| format!("{{\"at_us\":{},\"path\":\"a\",\"bytes\":1}}\n", secs * 1_000_000);
    let trace: String = [3, 3, 3, 3, 4, 4].into_iter().map(line).collect();
    let recorded = Recorded::read(trace.as_bytes()).expect("it is a trace");
    let times: Vec<u64> = recorded.queries.iter().map(|query| query.at).collect();
    assert_eq!(times, [0, 250_000, 500_000, 750_000, 1_000_000, 1_500_000]);
}

#[test]
fn a_trace_too_large_to_run_is_refused() {
    let line = format!("{{\"at_us\":0,\"path\":\"a\",\"bytes\":{}}}\n", 1u64 << 50);
    let error = Recorded::read(line.as_bytes()).expect_err("it has 16 M segments");
    assert!(error.message().contains("more than 1000000 segments"), "{error}");
    let often = format!("{{\"at_us\":0,\"path\":\"a\",\"bytes\":{},\"times\":1000000}}\n", 100u64 << 26);
    let error = Recorded::read(often.as_bytes()).expect_err("it has 100 M reads");
    assert!(error.message().contains("more than 10000000 reads"), "{error}");
}

#[test]
fn jobs_of_a_trace_find_what_earlier_ones_have_read() {
    let trace = "\
{\"at_us\":0,\"path\":\"a\",\"bytes\":1,\"operation\":\"1\"}
{\"at_us\":0,\"path\":\"b\",\"bytes\":1,\"operation\":\"1\"}
{\"at_us\":60000000,\"path\":\"a\",\"bytes\":1,\"operation\":\"2\"}
{\"at_us\":60000000,\"path\":\"c\",\"bytes\":1,\"operation\":\"2\"}
{\"at_us\":120000001,\"path\":\"c\",\"bytes\":1,\"operation\":\"3\"}
";
    let recorded = Recorded::read(trace.as_bytes()).expect("it is a trace");
    let jobs = mixapart_jobs(&recorded, &[2.0, 3.0]);
    let found: Vec<(u32, f64, f64)> = jobs.iter().map(|job| (job.tasks, job.reuse, job.task_secs)).collect();
    assert_eq!(found, [(2, 0.0, 2.0), (2, 0.5, 3.0), (1, 1.0, 2.0)]);
    let settings = MixApartSettings { workers: 2, slots: 2, bandwidth_bytes_per_sec: 64e6, ..MixApartSettings::default() };
    let rows = mixapart_replays(&settings, &jobs, &[true, false]);
    assert_eq!(rows, mixapart_replays(&settings, &jobs, &[true, false]));
    for row in rows {
        assert_eq!((row.jobs, row.tasks, row.reuse), (3, 5, 0.4), "{row:?}");
        // A task takes 2 or 3 s, and what it reads 1 s of the link if it is not there.
        assert!((2.0..6.0).contains(&row.job_secs) && row.secs > 120.0, "{row:?}");
    }
}
