//! `forebay shard pin`, `unpin`, `freeze`, `thaw`, `ack` and `forgo`.

use forebay_shard_store::{Acknowledged, DatasetOrders, DatasetPin};
use forebay_shards::Shards;
use serde_json::json;

use crate::cli::{ShardAckArgs, ShardOrderArgs, ShardPinArgs};
use crate::config::Config;
use crate::connect::connect;
use crate::exit::Outcome;
use crate::output::show;
use crate::progress;

/// Pins a dataset, and has its holders bring what they don't have.
pub(super) async fn pin(config: &Config, args: &ShardPinArgs) -> Outcome {
    let pin = DatasetPin { size: args.size };
    let client = connect(config).await?;
    let shards = Shards::set_orders(&client, &args.order.dataset, |orders| orders.pin = Some(pin)).await?;
    let bar = progress::spinner("bringing what is not there");
    let (here, all) = shards.bring().await;
    bar.finish_and_clear();
    let (dataset, orders) = (&args.order.dataset, shards.orders());
    let record = json!({"dataset": dataset.to_string(), "orders": orders, "here": here, "replicas": all});
    show(args.order.json, &record, |output| {
        output.line(&format!("{dataset}: {}", replicas(orders)))?;
        if here < all {
            let rest = "the others come when there is room, or when they are asked";
            output.line(&format!("{here} of {all} replicas are there: {rest}"))?;
        }
        Ok(())
    })
}

pub(super) async fn unpin(config: &Config, args: &ShardOrderArgs) -> Outcome {
    order(config, args, |orders| orders.pin = None).await
}

/// Has layers stay as they are.
pub(super) async fn freeze(config: &Config, args: &ShardOrderArgs) -> Outcome {
    order(config, args, |orders| orders.frozen = true).await
}

/// Has layers follow the load.
pub(super) async fn thaw(config: &Config, args: &ShardOrderArgs) -> Outcome {
    order(config, args, |orders| orders.frozen = false).await
}

/// Says when changes are acknowledged.
pub(super) async fn ack(config: &Config, args: &ShardAckArgs) -> Outcome {
    let ack = args.ack;
    let client = connect(config).await?;
    let orders = Shards::set_orders(&client, &args.order.dataset, |orders| orders.ack = ack).await?.orders();
    print(&args.order, orders, acknowledged(orders))
}

/// Gives up changes that are gone with two workers.
pub(super) async fn forgo(config: &Config, args: &ShardOrderArgs) -> Outcome {
    let client = connect(config).await?;
    let bar = progress::spinner("bringing what workers have to shared storage");
    let given_up = Shards::open(&client, &args.dataset).await?.forgo().await;
    bar.finish_and_clear();
    let given_up = given_up?;
    show(args.json, &json!({"dataset": args.dataset.to_string(), "given_up": given_up}), |output| {
        if given_up.is_empty() {
            return output.line(&format!("{}: nothing is lost, and nothing was given up", args.dataset));
        }
        let shards: Vec<String> = given_up.iter().map(usize::to_string).collect();
        output.line(&format!(
            "{}: changes of the last seconds before their workers were lost may be missing in shards {}",
            args.dataset,
            shards.join(", ")
        ))
    })
}

async fn order(config: &Config, args: &ShardOrderArgs, change: impl Fn(&mut DatasetOrders)) -> Outcome {
    let client = connect(config).await?;
    let orders = Shards::set_orders(&client, &args.dataset, change).await?.orders();
    print(args, orders, replicas(orders))
}

/// The orders that are in force: for people in the words for what was ordered.
fn print(args: &ShardOrderArgs, orders: DatasetOrders, words: String) -> Outcome {
    let record = json!({"dataset": args.dataset.to_string(), "orders": orders});
    show(args.json, &record, |output| output.line(&format!("{}: {words}", args.dataset)))
}

/// What is ordered of replicas, and whatever else is.
fn replicas(orders: DatasetOrders) -> String {
    words(orders).unwrap_or_else(|| "its replicas follow their load".to_string())
}

/// When changes are acknowledged.
fn acknowledged(orders: DatasetOrders) -> String {
    match orders.ack {
        Acknowledged::TwoWorkers => {
            "changes are acknowledged when the disks of two workers have them, and are in shared storage within seconds"
        }
        Acknowledged::Storage => "changes are acknowledged when shared storage has them",
    }
    .to_string()
}

/// What is ordered, in words; none where nothing is.
pub(super) fn words(orders: DatasetOrders) -> Option<String> {
    let pin = orders.pin.map(|pin| match pin.size {
        Some(size) => format!("pinned at {size:.3} of the input at least"),
        None => "pinned at the size that each replica starts with at least".to_string(),
    });
    let frozen = orders.frozen.then(|| "frozen: layers stay as they are".to_string());
    let ack = (orders.ack != Acknowledged::default()).then(|| acknowledged(orders));
    let all: Vec<String> = pin.into_iter().chain(frozen).chain(ack).collect();
    (!all.is_empty()).then(|| all.join("; "))
}
