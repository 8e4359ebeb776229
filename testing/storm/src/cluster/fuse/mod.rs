//! File systems of this process's own, by the kernel's protocol of FUSE: what happens to them can be called.

mod failing;
mod hanging;
mod mounted;
mod question;
mod still;
mod volume;

pub use failing::FailingDisk;
pub use hanging::{Hanging, KEYS};
pub use mounted::may_mount;
