//! The server's start and end: listens, gives each connection to the service, and lets calls under way finish.

use std::net::SocketAddr;
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use forebay_transport::TlsSettings;
use forebay_types::{Result, ResultExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;
use tonic::transport::Server;

use crate::callers::{Callers, Connect};
use crate::door::Door;
use crate::incoming::Incoming;
use crate::service::FlightService;

/// How long calls under way may take when the server stops.
const STOPPING: Duration = Duration::from_secs(2);

/// Where a server listens, and who may call.
#[derive(Clone, Debug)]
pub struct FlightSettings {
    /// `host:port`; port 0 for any that is free.
    pub listen: String,
    /// The certificate that is shown here.
    pub tls: Option<TlsSettings>,
}

/// A Flight SQL server. Dropping it ends it at once.
pub struct FlightServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: AbortOnDropHandle<()>,
}

impl FlightServer {
    /// Listens, and answers from now on. Each caller gets the engine that `connect` makes for its credential; what has the same
    /// credential shares it: a view of one is seen by all of those, what it sets by its connection alone.
    pub async fn start(settings: FlightSettings, connect: Connect) -> Result<Self> {
        let place = || format!("can't listen at {}", settings.listen);
        let listener = TcpListener::bind(&settings.listen).await.context(place)?;
        let address = listener.local_addr().context(place)?;
        let incoming = Incoming::new(listener, settings.tls.as_ref())?;
        let service = Door::new(FlightServiceServer::new(FlightService::new()), Callers::new(connect));
        let (stop, stopped) = oneshot::channel::<()>();
        let task = AbortOnDropHandle::new(forebay_runtime::spawn(async move {
            let stopped = async {
                // Dropping the sender stops it as well.
                let _ = stopped.await;
            };
            let server = Server::builder().http2_keepalive_interval(Some(Duration::from_secs(30))).add_service(service);
            if let Err(error) = server.serve_with_incoming_shutdown(incoming, stopped).await {
                tracing::warn!(%error, "flight server stopped");
            }
        }));
        Ok(Self { address, stop: Some(stop), task })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers what was asked already, for at most two seconds, then ends.
    pub async fn shutdown(mut self) {
        drop(self.stop.take());
        let _ = forebay_runtime::time::timeout(STOPPING, &mut self.task).await;
    }
}

forebay_types::shown!(FlightServer: address);
