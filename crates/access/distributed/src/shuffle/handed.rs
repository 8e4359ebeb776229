//! Outputs as other executors hand them out.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::{Action, Result as Answer};
use ballista_core::error::BallistaError;
use ballista_core::serde::protobuf;
use ballista_core::serde::scheduler::{Action as Ask, PartitionLocation, ShuffleFileKind};
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use prost::Message;
use tonic::Streaming;
use tonic::transport::Channel;

use crate::ports::Ways;
use crate::settings::MESSAGE_BYTES_MAX;

/// Bytes of an output, in their order.
pub(super) type Pieces = BoxStream<'static, Result<Bytes, String>>;

/// What an executor gives out a file in pieces for, as Ballista's clients ask.
pub(crate) const WHOLE_FILE: &str = "IO_BLOCK_TRANSPORT";
/// How often an executor is asked that does not answer, and what is between.
const TRIES: usize = 3;
const PAUSE: Duration = Duration::from_millis(300);

type Holder = FlightServiceClient<Channel>;

/// Connections that have brought theirs, by `host:port`; none where they are not kept.
type Idle = Option<Arc<Mutex<HashMap<String, Vec<Holder>>>>>;

/// The executors that have outputs. A connection has one output at a time: what nobody reads yet of one must not keep another one back.
#[derive(Clone)]
pub(super) struct Holders {
    ways: Ways,
    idle: Idle,
}

impl Holders {
    pub(super) fn new(ways: &Ways) -> Self {
        Self { ways: ways.clone(), idle: None }
    }

    /// The same for who reads many outputs of few executors and is gone then.
    pub(super) fn kept(ways: &Ways) -> Self {
        Self { ways: ways.clone(), idle: Some(Arc::default()) }
    }

    /// An output as its executor hands it out.
    pub(super) async fn ask(&self, location: &PartitionLocation) -> Result<Pieces, String> {
        let address = format!("{}:{}", location.executor_meta.host, location.executor_meta.port);
        let action = Action { r#type: WHOLE_FILE.to_string(), body: said(location)?.into() };
        let idle = self.idle.as_ref().and_then(|idle| idle.lock().get_mut(&address)?.pop());
        if let Some(mut holder) = idle
            // It may have been closed since.
            && let Ok(pieces) = holder.do_action(action.clone()).await
        {
            return Ok(self.followed(pieces.into_inner(), address, holder));
        }
        let mut holder = self.connect(&address).await?;
        let pieces = holder.do_action(action).await.map_err(|status| status.to_string())?;
        Ok(self.followed(pieces.into_inner(), address, holder))
    }

    async fn connect(&self, address: &str) -> Result<Holder, String> {
        let endpoint = self.ways.endpoint(address).map_err(|error| error.to_string())?;
        let mut tries = 1;
        loop {
            match endpoint.connect().await {
                Ok(channel) => return Ok(FlightServiceClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX)),
                Err(error) if tries == TRIES => return Err(error.to_string()),
                Err(_) => {
                    tries += 1;
                    forebay_runtime::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// The pieces of an output, whose connection can bring another one when all came.
    fn followed(&self, pieces: Streaming<Answer>, address: String, holder: Holder) -> Pieces {
        let state = (pieces, self.idle.clone(), address, holder);
        let next = |(mut pieces, idle, address, holder): (Streaming<Answer>, Idle, String, Holder)| async move {
            match pieces.message().await.map_err(|status| status.to_string())? {
                Some(piece) => Ok::<_, String>(Some((piece.body, (pieces, idle, address, holder)))),
                None => {
                    if let Some(idle) = &idle {
                        idle.lock().entry(address).or_default().push(holder);
                    }
                    Ok(None)
                }
            }
        };
        stream::try_unfold(state, next).boxed()
    }
}

/// What an executor is asked with for an output.
fn said(location: &PartitionLocation) -> Result<Vec<u8>, String> {
    let (part, executor) = (&location.partition_id, &location.executor_meta);
    let ask = Ask::FetchPartition {
        job_id: part.job_id.clone(),
        stage_id: part.stage_id,
        partition_id: part.partition_id,
        host: executor.host.clone(),
        port: executor.port,
        file_id: location.file_id,
        layout: location.layout(),
        file_kind: ShuffleFileKind::Data,
        byte_ranges: Vec::new(),
    };
    let ask: protobuf::Action = ask.try_into().map_err(|error: BallistaError| error.to_string())?;
    Ok(ask.encode_to_vec())
}
