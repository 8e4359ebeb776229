//! What is asked of a node by its name, where its container is here.

mod create;
mod delete;
mod files;
mod list;
mod quota;
mod rename;
mod replace;
mod values;
mod walk;

pub use create::CreateOptions;
pub use delete::Removed;
pub use list::Entry;
pub use quota::Usage;
pub use rename::Target;
pub use replace::Condition;
pub use walk::At;
