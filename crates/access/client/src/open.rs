use forebay_protocol::{DataReply, DataRequest};
use forebay_shared_storage::Storage;
use forebay_types::{ForebayPath, ObjectInfo, Result, RouteKey};

use crate::ask::{ask, misfit};
use crate::attempt::NoAnswer;
use crate::client::Client;
use crate::core::Core;

impl Client {
    /// The current version of an object, as fresh as its mount's rule wants it. `NotFound` when there is none.
    pub async fn open(&self, path: &ForebayPath) -> Result<ObjectInfo> {
        self.core.open(path).await
    }

    /// Makes the cluster forget versions and listings of everything below a path, so that the next open asks shared
    /// storage. All workers are told; `Retry` when one of them could not be.
    pub async fn refresh(&self, path: &ForebayPath) -> Result<()> {
        let mount = self.core.mount(path).await?;
        let request = DataRequest::Refresh { mount: mount.id, prefix: path.key().clone() };
        self.core.at_all_workers(std::slice::from_ref(&request)).await?;
        Ok(())
    }
}

impl Core {
    pub(crate) async fn open(&self, path: &ForebayPath) -> Result<ObjectInfo> {
        let mount = self.mount(path).await?;
        let request = DataRequest::Open { mount: mount.id, key: path.key().clone() };
        let deadline = self.settings.read_deadline;
        let answer = self
            .at_home(RouteKey::of(mount.id, path.key(), 0), |link| {
                let request = &request;
                async move {
                    match ask(&link, request, Vec::new(), deadline).await? {
                        DataReply::Info(info) => Ok(info),
                        _ => Err(misfit(&link, "open")),
                    }
                }
            })
            .await;
        match answer {
            Ok(info) => Ok(info),
            Err(NoAnswer::Final(error)) => Err(error),
            Err(NoAnswer::Away(error)) => {
                let direct = |storage: Storage| async move { storage.head(path.key()).await };
                self.fallback.instead(&mount, path.key(), error, direct).await
            }
        }
    }
}
