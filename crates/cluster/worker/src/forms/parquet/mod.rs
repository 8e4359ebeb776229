//! Columns of Parquet.

mod decode;
mod footers;
mod make;

pub(super) use footers::Footers;
