//! `forebay shard status`.

use forebay_shards::{ReplicaStatus, ShardStatus, Shards};
use forebay_types::format_bytes;

use super::{orders, refresh};
use crate::cli::ShardStatusArgs;
use crate::config::Config;
use crate::connect::connect;
use crate::exit::Outcome;
use crate::output::Output;

/// Shows the shards of a dataset and their replicas.
pub(super) async fn run(config: &Config, args: &ShardStatusArgs) -> Outcome {
    let client = connect(config).await?;
    let shards = Shards::open(&client, &args.dataset).await?;
    let (status, follows) = (shards.status().await?, forebay_shards::Follows::of(&shards).await?);
    let mut output = Output::new(args.json);
    if args.json {
        status.iter().try_for_each(|shard| output.record(shard))?;
        follows.iter().try_for_each(|follows| output.record(follows))?;
        return output.finish();
    }
    let sum = |of: fn(&ShardStatus) -> u64| status.iter().map(of).sum::<u64>();
    let (records, input) = (sum(|shard| shard.records), format_bytes(sum(|shard| shard.input_bytes)));
    let stored = format_bytes(sum(|shard| shard.stored_bytes));
    output.line(&format!(
        "{}: {} shards, {records} records of {input}, {stored} in shared storage",
        args.dataset,
        status.len()
    ))?;
    if let Some(orders) = orders::words(shards.orders()) {
        output.line(&orders)?;
    }
    follows.iter().flat_map(refresh::words).try_for_each(|line| output.line(&line))?;
    output.line("")?;
    let rows: Vec<Vec<String>> =
        status.iter().flat_map(|shard| shard.replicas.iter().map(|replica| row(shard, replica))).collect();
    output.table(&["shard", "worker", "starts at", "is", "bytes", "answered", "queue", ""], &[0, 2, 3, 4, 5, 6], &rows)?;
    output.finish()
}

fn row(shard: &ShardStatus, replica: &ReplicaStatus) -> Vec<String> {
    let ratio = |bytes: u64| format!("{:.3}", bytes as f64 / shard.input_bytes.max(1) as f64);
    let is = match (replica.bytes, replica.is_changing) {
        (None, _) => "not asked for yet",
        (_, true) => "layers are being changed",
        _ => replica.why.as_deref().unwrap_or_default(),
    };
    vec![
        shard.shard.to_string(),
        replica.worker.clone(),
        replica.size.map_or("-".to_string(), |size| format!("{size:.3}")),
        replica.bytes.map_or("-".to_string(), ratio),
        replica.bytes.map_or("-".to_string(), format_bytes),
        replica.answered.to_string(),
        replica.queue.to_string(),
        is.to_string(),
    ]
}
