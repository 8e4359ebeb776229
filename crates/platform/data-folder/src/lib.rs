//! The folder that a process keeps its tiers and its metadata in.
//!
//! Owns: who may use the folder (one process a role), its layout and format number, and how large tiers are when nobody
//! says; and the lock on a file. Never does: read or write the tiers themselves (`forebay-block-store` does) or the database.
//!
//! Start with [`DataFolder::take`].

mod capacity;
mod file_lock;
mod folder;
mod private;

pub use capacity::{default_disk_bytes, default_dram_bytes};
pub use file_lock::FileLock;
pub use folder::DataFolder;
pub use private::{check_private_file, make_private_folder};
