//! Names the file where a line of text is not what its columns want: decoders know the line alone.

use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_plan::ExecutionPlan;
use forebay_types::Error;

use crate::error::remedy_of_mixed_json;
use crate::location::shown;
use crate::scans::config;

/// What decoders of CSV and JSON begin with.
const SAID: [&str; 3] = ["Csv error: ", "Json error: ", OF_TYPE];

/// What the decoder of CSV says of a value that is none of the type that was found in the first rows, or declared.
const OF_TYPE: &str = "Error while parsing value ";

/// The error of a plan that ran, with the text file that it reads, or the first and the last of several.
pub(super) fn named(plan: Option<&Arc<dyn ExecutionPlan>>, error: Error) -> Error {
    let said = SAID.iter().any(|said| error.message().contains(said));
    let Some(plan) = plan.filter(|_| said) else { return error };
    let mut files = Vec::new();
    let _ = plan.apply(|node| {
        if let Some(scan) = config(node).filter(|scan| ["csv", "json"].contains(&scan.file_source().file_type())) {
            let all = scan.file_groups.iter().flat_map(|group| group.files());
            files.extend(all.map(|file| shown(file.object_meta.location.as_ref())));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    files.sort_unstable();
    files.dedup();
    let named = match files.as_slice() {
        [] => return error,
        [file] => error.context(format!("'{file}'")),
        [first, .., last] => error.context(format!("one of {} files from '{first}' to '{last}'", files.len())),
    };
    let remedy = match named.message().contains(OF_TYPE) {
        true => Some("say that the column is text with CREATE EXTERNAL TABLE name (column varchar, ..), or write it again"),
        false => remedy_of_mixed_json(&named),
    };
    match remedy {
        Some(remedy) => Error::new(named.kind(), format!("{}; {remedy}", named.message())),
        None => named,
    }
}
