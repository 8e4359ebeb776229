//! Objects that are written, through one worker or past all of them.
//!
//! Owns: writes of one message and those in parts, drafts that others write for who makes them objects, what is said of a write whose
//! worker was lost, and telling all workers of a change that was made past them.
//!
//! Never does: write to shared storage itself, or say that a write is done before shared storage has it.
//!
//! Start with [`Writes::put`] and [`Writer`].

mod drafts;
mod parts;
mod put;
mod tell_everyone;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use forebay_types::{Error, ForebayPath, Mount, Result};

pub use drafts::{Draft, Drafts};
pub(crate) use parts::{PartBuffer, PartUpload, abandon};
pub use writer::Writer;

use crate::connect::Control;
use crate::route::Routes;
use crate::settings::ClientSettings;

/// Writes of objects.
pub(crate) struct Writes {
    routes: Arc<Routes>,
    control: Arc<Control>,
    /// How long the coordinator may take to answer.
    control_deadline: Duration,
}

impl Writes {
    pub(crate) fn new(routes: Arc<Routes>, control: Arc<Control>, settings: &ClientSettings) -> Self {
        Self { routes, control, control_deadline: settings.control_deadline }
    }

    /// The mount of a path that is to be written; `Denied` when the mount is read-only, `Invalid` for the mount itself.
    async fn writable(&self, path: &ForebayPath) -> Result<Arc<Mount>> {
        let mount = self.open_to_writes(path).await?;
        if path.key().as_str().is_empty() {
            return Err(Error::invalid(format!("{path} is a mount: name an object below it")));
        }
        Ok(mount)
    }

    /// The mount below which something is to be written; `Denied` when it is read-only.
    async fn open_to_writes(&self, below: &ForebayPath) -> Result<Arc<Mount>> {
        let mount = self.routes.mount(below).await?;
        match mount.options.read_only {
            true => Err(Error::denied(format!("{below}: the mount is read-only; change it with forebay mount set"))),
            false => Ok(mount),
        }
    }
}
