//! Workers that give up what they have, as their owner wants it.

use std::io::{self, Error};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use forebay_client::{AdminRequest, Client, ClientSettings, ControlReply, ControlRequest, Credential, Security};
use forebay_types::WorkerId;
use tokio::time::sleep;

use super::Cluster;

/// How long a worker may take until it has nothing any more.
const DRAINED_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);

impl Cluster {
    /// Has the worker of an address give up its temporary data, or take part again.
    pub async fn drain(&self, address: SocketAddr, draining: bool) -> io::Result<()> {
        let owner = self.client(true).await?;
        let worker = id_of(&owner, address).await?;
        owner.control(AdminRequest::Drain { worker, draining }).await.map(drop).map_err(Error::other)
    }

    /// Back when it has nothing any more, and can be stopped without loss.
    pub async fn drained(&self, address: SocketAddr) -> io::Result<()> {
        let owner = self.client(true).await?;
        let began = Instant::now();
        while began.elapsed() < DRAINED_WITHIN {
            let reply = owner.control(ControlRequest::Status).await.map_err(Error::other)?;
            let ControlReply::Status(status) = reply else { return Err(Error::other("the coordinator does not say its status")) };
            let told = status.workers.iter().find(|(info, ..)| info.address == address.to_string());
            if told.is_some_and(|(_, _, report)| report.drain.as_ref().is_some_and(|drain| drain.done)) {
                return Ok(());
            }
            sleep(LOOK_EVERY).await;
        }
        Err(Error::other(format!("the worker at {address} is not drained within {DRAINED_WITHIN:?}")))
    }

    /// A client of the owner, in place or not, with the settings that clients have.
    pub(crate) async fn client(&self, in_place: bool) -> io::Result<Client> {
        let coordinator = self.coordinators.parse().map_err(Error::other)?;
        let owner = Credential::owner(&self.owner_secret()?).map_err(Error::other)?;
        let security = Security::holder(owner);
        let settings = ClientSettings { security, in_place, ring: in_place, ..ClientSettings::new(coordinator) };
        Client::connect(settings).await.map_err(Error::other)
    }
}

async fn id_of(owner: &Client, address: SocketAddr) -> io::Result<WorkerId> {
    let view = owner.refresh_view().await.map_err(Error::other)?;
    let info = view.workers.iter().find(|info| info.address == address.to_string());
    info.map(|info| info.id).ok_or_else(|| Error::other(format!("no worker is at {address}")))
}
