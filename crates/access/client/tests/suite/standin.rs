//! Stand-in.
use bytes::Bytes;
use forebay_client::{Address, ClusterView, ControlReply, ControlRequest, Security};
use forebay_protocol::{BudgetLease, MountShare, decode, encode};
use forebay_transport::{Listener, Peer, Response, Server, ServerLimits, Service, Session};
use forebay_types::{Error, Mount, MountId, Result};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
pub struct CoordinatorSettings(Address);
impl CoordinatorSettings {
    pub fn new(a: Address, _: String) -> Self {
        Self(a)
    }
}
pub struct Coordinator {
    server: Server,
    address: Address,
}
struct S(Arc<Mutex<ClusterView>>);
impl Coordinator {
    pub async fn start(s: CoordinatorSettings) -> Result<Self> {
        let listener = Listener::bind(&s.0).await?;
        let address = listener.local_address();
        let view = Arc::new(Mutex::new(ClusterView { version: 1, epoch: 1, ..Default::default() }));
        let server = Server::start(listener, Security::default(), Arc::new(S(view)), ServerLimits::default())?;
        Ok(Self { server, address })
    }
    pub fn address(&self) -> Address {
        self.address.clone()
    }
    pub async fn shutdown(self) {
        self.server.shutdown().await
    }
}
impl Service for S {
    type Session = S;
    fn open(&self, _: Peer) -> Result<S> {
        Ok(S(self.0.clone()))
    }
}
fn shares(view: &ClusterView, n: u64) -> Vec<MountShare> {
    view.mounts
        .iter()
        .map(|m| MountShare {
            mount: m.id,
            bytes_per_sec: m.options.bandwidth.map(|b| b.bytes_per_sec() / n),
            burst_bytes: 1 << 20,
        })
        .collect()
}
impl Session for S {
    fn call(self: &Arc<Self>, meta: Bytes, _: Bytes) -> impl Future<Output = Response> + Send {
        let mut view = self.0.lock();
        let reply = match decode(&meta).unwrap() {
            ControlRequest::View { have } if have == view.version => ControlReply::Unchanged,
            ControlRequest::View { .. } => ControlReply::View(view.clone()),
            ControlRequest::Register(info) => {
                view.workers.retain(|w| w.id != info.id);
                view.workers.push(info);
                view.workers.sort_by_key(|w| w.id);
                view.version += 1;
                ControlReply::View(view.clone())
            }
            ControlRequest::Heartbeat(h) => {
                let n = view.workers.len().max(1) as u64;
                ControlReply::Beat {
                    view: (h.have != view.version).then(|| view.clone()),
                    shares: shares(&view, n),
                    lease: Duration::from_secs(5),
                }
            }
            ControlRequest::Leave(id) => {
                view.workers.retain(|w| w.id != id);
                view.version += 1;
                ControlReply::Done
            }
            ControlRequest::MountAdd { name, url, options } => {
                let m = Mount { id: MountId(view.mounts.len() as u64 + 1), name, url, options };
                view.mounts.push(m.clone());
                view.version += 1;
                ControlReply::Mount(m)
            }
            ControlRequest::Budget { mount, .. } => ControlReply::Budget(BudgetLease {
                share: *shares(&view, 1).iter().find(|s| s.mount == mount).unwrap(),
                lasts: Duration::from_secs(5),
            }),
            _ => ControlReply::failed(&Error::invalid("not scripted")),
        };
        async move { Response::new(encode(&reply)) }
    }
    fn notice(self: &Arc<Self>, _: Bytes) {}
}
