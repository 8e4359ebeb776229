//! The books of distributed jobs: who runs what, what of it counts, and what is brought ahead of whom, whichever engine runs the tasks.
//!
//! Owns: jobs, stages, runs of tasks and their copies, kept in step with the schedule of `core/scheduling` ([`Books`]); what of an
//! executor's word counts ([`Books::takes_in`]), and what a job loses with one ([`Attempts`]); the transfers that the schedule orders
//! ([`Carrier`]), what leaves the tiers ([`follow`]), and which of several schedulers serves ([`serving`]). Never does: know plans, or speak
//! with executors: `access/distributed` does, around Ballista, and the stand-ins of `testing/universe`. Start with [`Books`].

mod attempts;
mod books;
mod input;
mod job;
pub mod serving;
mod tasks;
mod ticket;
mod word;

pub use attempts::{Attempts, Missed, RUN_AGAIN};
pub use books::{Begins, Books, Chosen, DEFECT, ExecutorEntry, Outcome, Question, Sender, TakenIn, caught, held};
pub use input::{Carrier, Versions, blocks, follow, found};
pub use job::{Cut, Inputs, Job, Mark};
pub use ticket::{Places, Ticket, worker_of};
pub use word::{Done, Heard, Said, TaskName, Word};
