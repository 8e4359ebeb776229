//! Columns of text: CSV and lines of JSON.

mod decode;
mod lines;
mod make;
