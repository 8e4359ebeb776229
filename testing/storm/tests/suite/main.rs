//! What the program tells of its cells.

mod cells;
