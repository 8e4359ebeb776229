//! What gets can be at best: the transport alone, whose server answers as many bytes to as many as a get has, without looking at them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_bench_harness::{Served, security};
use forebay_transport::{Address, Connection, Listener, Peer, Response, Server, ServerLimits, Service, Session};
use forebay_types::{Error, Result};

/// Bytes of a get's message, and of its key and its record's values.
const META_BYTES: usize = 40;
const KEY_BYTES: usize = 8;
const RECORD_BYTES: usize = 140;

/// The server: each call is answered with a record of zeros.
pub(super) struct Echo;

impl Service for Echo {
    type Session = Self;

    fn open(&self, _: Peer) -> Result<Self> {
        Ok(Self)
    }
}

impl Session for Echo {
    async fn call(self: &Arc<Self>, _: Bytes, _: Bytes) -> Response {
        Response { meta: Bytes::from_static(&[0; 2]), payload: vec![Bytes::from(vec![0; RECORD_BYTES])], ..Response::default() }
    }

    fn failed(&self, _: &Bytes) -> Response {
        Response::default()
    }

    fn notice(self: &Arc<Self>, _: Bytes) {}
}

/// Serves it at an address.
pub(super) async fn serve(address: Address) -> Result<Server> {
    Server::start(Listener::bind(&address).await?, security(), Arc::new(Echo), ServerLimits::default())
}

/// Calls a second of as many askers as gets have, by TCP or by a Unix socket.
pub(super) async fn rate(is_unix: bool, askers: usize, length: Duration) -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let address = if is_unix { format!("unix:{}", folder.path().join("echo.sock").display()) } else { "127.0.0.1:0".to_string() };
    let (_served, address) = Served::start(&["serve-echo".to_string(), address])?;
    let connection = Connection::connect(&address.parse()?, &security()).await?;
    let began = Instant::now();
    let asker = || async {
        let mut count = 0u64;
        while began.elapsed() < length {
            let answer = connection.call(Bytes::from(vec![0; META_BYTES]), vec![Bytes::from(vec![0; KEY_BYTES])]).await?;
            count += u64::from(answer.payload.len() == RECORD_BYTES);
        }
        Ok::<_, Error>(count)
    };
    let counts = futures::future::try_join_all((0..askers).map(|_| asker())).await?;
    Ok(counts.into_iter().sum::<u64>() as f64 / began.elapsed().as_secs_f64())
}
