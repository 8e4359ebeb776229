//! The connection to the coordinator.

use std::time::Duration;

use forebay_protocol::{AdminRequest, ControlCall, ControlReply, ControlRequest, check_known, decode_from, encode_for};
use forebay_runtime::deadline;
use forebay_runtime::time::timeout;
use forebay_transport::{Address, Connection, Security};
use forebay_types::{Error, ErrorKind, Result};

use super::slot::{Alive, Slot};
use super::traced::{of_control, said};
use crate::settings::ClientSettings;

/// The connection to the coordinator.
pub(crate) struct Control {
    address: Address,
    security: Security,
    connect_timeout: Duration,
    slot: Slot<Connection>,
}

impl Control {
    pub(crate) fn new(settings: &ClientSettings) -> Self {
        Self {
            address: settings.coordinator.clone(),
            security: settings.security.clone(),
            connect_timeout: settings.connect_timeout,
            slot: Slot::new(),
        }
    }

    /// Whether a connection stands: a view's version means something only to the coordinator that gave it.
    pub(crate) fn connected(&self) -> bool {
        self.slot.current().is_some_and(|connection| connection.alive())
    }

    /// Asks the coordinator; a reply that says it failed is the error. What only reads is asked a second time when the
    /// connection ended under it.
    pub(crate) async fn ask(&self, request: &ControlCall, longest: Duration) -> Result<ControlReply> {
        let only_reads = match request {
            ControlCall::Ask(ControlRequest::TableAdd { .. } | ControlRequest::TableRemove { .. }) => false,
            ControlCall::Ask(_) | ControlCall::Administer(AdminRequest::Tokens) => true,
            ControlCall::Administer(_) => false,
            // Said again in a second by who says it.
            ControlCall::Serve(_) => true,
        };
        match self.ask_once(request, longest).await {
            Err(error) if only_reads && error.kind() == ErrorKind::Closed => self.ask_once(request, longest).await,
            answer => answer,
        }
        .map_err(|error| match error.kind() {
            // To the caller the coordinator is away, not the client.
            ErrorKind::Closed => Error::retry(format!(
                "coordinator {}: the connection ended before the answer; if this changes something, look whether it did: {}",
                self.name(),
                error.message()
            )),
            _ => error,
        })
    }

    async fn ask_once(&self, request: &ControlCall, longest: Duration) -> Result<ControlReply> {
        let connecting = || connect(self.address.clone(), self.security.clone(), self.connect_timeout);
        let connection = self.slot.get(connecting).await?;
        let version = connection.version();
        check_known(request, request.name(), version).map_err(|error| error.context(format!("coordinator {}", self.name())))?;
        let span = of_control(request);
        let call = connection.call(said(&span, version, encode_for(version, request)), Vec::new());
        let late = |_| Error::retry(format!("coordinator {} did not answer within {} s", self.name(), longest.as_secs()));
        let answer = deadline::within(longest, call).await.map_err(late)??;
        match decode_from(version, &answer.meta)? {
            ControlReply::Failed { kind, message } => Err(Error::new(kind, message)),
            reply => Ok(reply),
        }
    }

    fn name(&self) -> String {
        name(&self.address)
    }
}

async fn connect(address: Address, security: Security, within: Duration) -> Result<Connection> {
    let name = || name(&address);
    match timeout(within, Connection::connect(&address, &security)).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(error)) => Err(error.context(format!("coordinator {}", name()))),
        Err(_) => Err(Error::retry(format!("coordinator {} does not answer: check the address and that it runs", name()))),
    }
}

fn name(address: &Address) -> String {
    match address {
        Address::Tcp(address) => address.clone(),
        Address::Unix(path) => path.display().to_string(),
    }
}

/// The error for a reply of a variant that was not asked for.
pub(crate) fn unexpected(from: &str, asked: &str) -> Error {
    Error::internal(format!("{from} gave an answer that doesn't fit the question ({asked}): run one version of forebay"))
}
