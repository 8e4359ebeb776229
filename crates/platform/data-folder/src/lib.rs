//! The folder that a process keeps its tiers and its metadata in.
//!
//! Owns: who may use the folder (one process a role), its layout and format number, and how large tiers are when nobody
//! says; which folders are such, so that none is a mount; the lock on a file; and the secret by which one user's processes
//! and commands know each other. Never does: read or write the tiers themselves (`forebay-block-store` does) or the database.
//!
//! Start with [`DataFolder::take`].

#![warn(unreachable_pub)]

mod apart;
mod capacity;
mod file_lock;
mod folder;
mod owner;
mod place;
mod private;
mod taken;

pub use apart::{data_folder_at, has_data, is_data_folder, is_mark, makes_data_folder};
pub use capacity::{default_disk_bytes, default_dram_bytes, free_disk_bytes, memory_bytes, whole_disk_bytes};
pub use file_lock::FileLock;
pub use folder::DataFolder;
pub use owner::{Announced, owner_secret, owner_secret_in, owner_secret_of, state_folder};
pub use place::named_by;
pub use private::{check_private_file, make_private_folder, read_private_file};
