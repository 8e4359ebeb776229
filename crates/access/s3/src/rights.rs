//! Proofs of what a caller may do. Whatever reads or changes something takes one of these and finds its mount in it, so that
//! a path to it on which nobody asked does not compile. Only this file makes them, and [`Caller::check`] is what decides.

use std::ops::Deref;
use std::sync::Arc;

use forebay_types::{ForebayPath, Key, Mount};

use crate::auth::{Caller, Right};
use crate::context::Context;
use crate::dialect::{S3Error, S3Result};

/// The caller may read what is in a mount.
#[derive(Clone)]
pub(crate) struct MayRead {
    mount: Arc<Mount>,
}

/// The caller may change what is in a mount, which takes changes.
#[derive(Clone)]
pub(crate) struct MayWrite {
    mount: Arc<Mount>,
}

/// The caller may make and remove mounts.
pub(crate) struct MayMake {
    _only_here: (),
}

/// An object that the caller may read.
#[derive(Clone)]
pub(crate) struct Object {
    may: MayRead,
    pub(crate) key: Key,
}

/// An object that the caller may change.
pub(crate) struct Writable {
    object: Object,
    may: MayWrite,
}

impl MayRead {
    /// Of the mount of a bucket's name. Who may not is not told whether there is one.
    pub(crate) async fn of(context: &Context, caller: &Caller, bucket: &str) -> S3Result<Self> {
        caller.check(bucket, Right::Read)?;
        Ok(Self { mount: context.mount(bucket).await? })
    }

    pub(crate) fn mount(&self) -> &Arc<Mount> {
        &self.mount
    }

    pub(crate) fn object(&self, key: Key) -> Object {
        Object { may: self.clone(), key }
    }
}

impl MayWrite {
    /// Of the mount of a bucket's name.
    pub(crate) async fn of(context: &Context, caller: &Caller, bucket: &str) -> S3Result<Self> {
        caller.check(bucket, Right::Write)?;
        let mount = context.mount(bucket).await?;
        if mount.options.read_only { Err(S3Error::access_denied().saying("The mount is read-only.")) } else { Ok(Self { mount }) }
    }

    pub(crate) fn mount(&self) -> &Arc<Mount> {
        &self.mount
    }

    pub(crate) fn object(&self, key: Key) -> Writable {
        // What is written is looked at for conditions.
        let may_read = MayRead { mount: Arc::clone(&self.mount) };
        Writable { object: Object { may: may_read, key }, may: self.clone() }
    }
}

impl MayMake {
    /// Nothing for callers that are limited to some mounts, or have no name.
    pub(crate) fn of(caller: &Caller) -> S3Result<Self> {
        caller.check_making()?;
        Ok(Self { _only_here: () })
    }
}

impl Object {
    pub(crate) fn mount(&self) -> &Arc<Mount> {
        &self.may.mount
    }

    pub(crate) fn path(&self) -> ForebayPath {
        ForebayPath::new(self.mount().name.clone(), self.key.clone())
    }

    /// The proof that it came with.
    pub(crate) fn may_read(&self) -> &MayRead {
        &self.may
    }
}

impl Writable {
    pub(crate) fn may_write(&self) -> &MayWrite {
        &self.may
    }
}

impl Deref for Writable {
    type Target = Object;

    fn deref(&self) -> &Object {
        &self.object
    }
}
