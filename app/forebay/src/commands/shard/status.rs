//! `forebay shard status`.

use std::time::Duration;

use forebay_shards::{ClaimStatus, RangeStatus, ReplicaStatus, ShardStatus, Shards};
use forebay_types::{format_bytes, format_duration};

use super::{key_line, orders, refresh};
use crate::cli::ShardStatusArgs;
use crate::config::Config;
use crate::connect::connect;
use crate::exit::Outcome;
use crate::output::Output;

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
    if let Some(next) = &shards.dataset().next {
        output.line(&announced(next.shards.len()))?;
    }
    follows.iter().flat_map(refresh::words).try_for_each(|line| output.line(&line))?;
    let ranges = status.iter().filter_map(|shard| Some((shard.shard, shard.range.as_ref()?)));
    ranges.map(|(shard, range)| ranged(shard, range)).try_for_each(|line| output.line(&line))?;
    output.line("")?;
    let rows: Vec<Vec<String>> =
        status.iter().flat_map(|shard| shard.replicas.iter().map(|replica| row(shard, replica))).collect();
    let head = ["shard", "worker", "starts at", "is", "bytes", "answered", "a minute", "queue", ""];
    output.table(&head, &[0, 2, 3, 4, 5, 6, 7], &rows)?;
    let claims = status.iter().filter_map(|shard| Some((shard.shard, shard.claim.as_ref()?)));
    let mut claims = claims.map(|(shard, claim)| claimed(shard, claim)).peekable();
    if claims.peek().is_some() {
        output.line("")?;
    }
    claims.try_for_each(|line| output.line(&line))?;
    output.finish()
}

/// That there are to be other shards, in words.
fn announced(shards: usize) -> String {
    format!("about to have {shards} shards: where nobody works on it, `forebay shard reshard --shards {shards}` again ends it")
}

/// Which keys a shard may have, in words.
fn ranged(shard: u32, range: &RangeStatus) -> String {
    let (from, below) = (range.from.as_ref().map(key_line), range.below.as_ref().map(key_line));
    let keys = match (from, below) {
        (Some(from), Some(below)) => format!("keys from {from}, below {below}"),
        (Some(from), None) => format!("keys from {from}"),
        (None, Some(below)) => format!("keys below {below}"),
        (None, None) => "all keys".to_string(),
    };
    format!("shard {shard}: {keys}")
}

/// Who writes a shard, in words.
fn claimed(shard: u32, claim: &ClaimStatus) -> String {
    let time = |millis| format_duration(Duration::from_millis(millis));
    let behind = match claim.behind_objects {
        0 => "shared storage has all".to_string(),
        objects => format!(
            "{objects} objects of {} are not in shared storage, the first of them for {}",
            format_bytes(claim.behind_bytes),
            time(claim.behind_ms)
        ),
    };
    let (writer, second) = (&claim.writer, &claim.second);
    format!("shard {shard}: written by {writer} for {}, and on the disk of {second} as well: {behind}", time(claim.held_ms))
}

/// Of an input below this, what each file has in any case is more than what is kept of it.
const SMALL_BYTES: u64 = 1 << 20;

fn row(shard: &ShardStatus, replica: &ReplicaStatus) -> Vec<String> {
    let ratio = |bytes: u64| match shard.input_bytes < SMALL_BYTES {
        true => "-".to_string(),
        false => format!("{:.3}", bytes as f64 / shard.input_bytes as f64),
    };
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
        replica.calls_per_min.to_string(),
        replica.queue.to_string(),
        is.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_that_are_announced_are_told_with_how_that_ends() {
        let said = announced(16);
        assert!(said.starts_with("about to have 16 shards") && said.contains("reshard --shards 16` again"), "{said}");
    }

    #[test]
    fn which_keys_a_shard_may_have_is_said_in_a_line() {
        let said = |from: Option<serde_json::Value>, below: Option<serde_json::Value>| ranged(3, &RangeStatus { from, below });
        assert_eq!(said(Some(5.into()), Some("m".into())), "shard 3: keys from 5, below m");
        let cut = serde_json::json!({"base64": "YcM="});
        assert_eq!(said(None, Some(cut)), "shard 3: keys below x'61c3'", "a split point may end within a letter");
        assert_eq!([said(Some(5.into()), None), said(None, None)], ["shard 3: keys from 5", "shard 3: all keys"]);
    }

    #[test]
    fn a_size_is_a_part_of_an_input_that_is_large_enough_for_one() {
        let (size, bytes, now) = (Some(0.5), Some(600 << 10), Some(0.5));
        let replica = ReplicaStatus { worker: "1".to_string(), size, bytes, now, ..ReplicaStatus::default() };
        let of = |input_bytes| {
            let ack = "storage".to_string();
            let (shard, records, stored_bytes, claim, range, replicas) = (0, 9, 9, None, None, Vec::new());
            let shard = ShardStatus { shard, records, input_bytes, stored_bytes, ack, claim, range, replicas };
            row(&shard, &replica)[3].clone()
        };
        assert_eq!((of(70), of(0), of(1200 << 10)), ("-".to_string(), "-".to_string(), "0.500".to_string()));
    }

    #[test]
    fn who_writes_a_shard_and_how_far_shared_storage_is_behind_is_said_in_a_line() {
        let (writer, second) = ("1".to_string(), "2".to_string());
        let all = ClaimStatus { writer, second, held_ms: 12_000, behind_objects: 0, behind_bytes: 0, behind_ms: 0 };
        let some = ClaimStatus { behind_objects: 3, behind_bytes: 2048, behind_ms: 120, ..all.clone() };
        let begins = "shard 7: written by 1 for 12s, and on the disk of 2 as well: ";
        assert_eq!(claimed(7, &all), format!("{begins}shared storage has all"));
        let behind = format!("3 objects of {} are not in shared storage, the first of them for 120ms", format_bytes(2048));
        assert_eq!(claimed(7, &some), format!("{begins}{behind}"));
    }
}
