//! What an operator orders of a dataset: of its replicas, and when its changes are acknowledged.

use axum::Json;
use forebay_shard_store::{Acknowledged, DatasetOrders, DatasetPin};
use forebay_shards::Shards;
use schemars::JsonSchema;
use serde::Serialize;

use super::asked::DatasetAsked;
use super::visit::Come;
use super::{asked, described};
use crate::asking::from_text;
use crate::describe::{Content, Described, Verb};
use crate::refusal::Refusal;

const PIN_PATH: &str = "/api/v1/shards/pin";
const FREEZE_PATH: &str = "/api/v1/shards/freeze";
const ACK_PATH: &str = "/api/v1/shards/ack";

asked::asked_of!(PinAsked {
    /// The least size of each replica, as a part of the input, above 0 and up to 16; without it the one that each starts with.
    #[schemars(example = 0.9)]
    size: Option<f64>,
});

asked::asked_of!(AckAsked {
    /// When a change of its records is acknowledged: `storage` when shared storage has it, `two-workers` when the disks of two workers do.
    #[schemars(with = "String", extend("pattern" = ACK_PATTERN), example = &"two-workers")]
    #[serde(deserialize_with = "from_text")]
    ack: Acknowledged,
});

const ACK_PATTERN: &str = "^(storage|two-workers)$";

/// What is ordered of a dataset.
#[derive(JsonSchema, Serialize)]
pub(super) struct Orders {
    /// They stay where they are, at a size at least; not there where they come and go with their load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pin: Option<Pin>,
    /// Their layers stay as they are; not there where these follow the load.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    frozen: bool,
    /// When a change is acknowledged: `two-workers` when the disks of two workers have it; not there where shared storage has to have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    ack: Option<String>,
}

/// How a dataset is pinned.
#[derive(JsonSchema, Serialize)]
struct Pin {
    /// The least size of each replica, as a part of the input; not there for the one that it starts with.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<f64>,
}

impl From<DatasetOrders> for Orders {
    fn from(orders: DatasetOrders) -> Self {
        let ack = (orders.ack != Acknowledged::default()).then(|| orders.ack.to_string());
        Self { pin: orders.pin.map(|DatasetPin { size }| Pin { size }), frozen: orders.frozen, ack }
    }
}

/// What holds from now on.
#[derive(JsonSchema, Serialize)]
pub(super) struct Ordered {
    /// The folder that the dataset lies in.
    dataset: String,
    /// The number of the manifest that says so.
    manifest: u64,
    /// All that is ordered now.
    orders: Orders,
    /// Of a pin: how many replicas their workers say that they have. Not there where that was not heard in time: they are brought all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    here: Option<usize>,
    /// Of a pin: how many there are to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    replicas: Option<usize>,
}

impl Ordered {
    fn of(shards: &Shards, brought: Option<(usize, usize)>) -> Json<Self> {
        debug_assert!(brought.is_none_or(|(here, all)| here <= all), "no more are there than there are to be");
        let (dataset, manifest) = (shards.path().to_string(), shards.manifest());
        let (here, replicas) = brought.unzip();
        Json(Self { dataset, manifest, orders: shards.orders().into(), here, replicas })
    }
}

const ORDERED: Content = Content::json::<Ordered>("The dataset's manifest says so, and workers follow it within seconds.");

pub(super) const PIN: Described = described::<PinAsked>(
    Verb::Put,
    PIN_PATH,
    "Keeps the replicas of a dataset where they are, at a size at least, and has their workers bring what they don't have.",
    ORDERED,
);

pub(super) async fn pin(come: Come<PinAsked>) -> Result<Json<Ordered>, Refusal> {
    let (coming, asked) = come.by_name("shard_pin")?;
    let ordering = coming.administer(asked.dataset, asked.timeout)?;
    let pin = DatasetPin { size: asked.size };
    let shards = ordering.order(move |orders| orders.pin = Some(pin)).await?;
    let brought = ordering.bring(&shards).await;
    Ok(Ordered::of(&shards, brought))
}

/// A path with which something is ordered that is no pin.
const fn ordering(verb: Verb, path: &'static str, about: &'static str) -> Described {
    described::<DatasetAsked>(verb, path, about, ORDERED)
}

pub(super) const UNPIN: Described =
    ordering(Verb::Delete, PIN_PATH, "Lets the replicas of a dataset come and go with their load again.");
pub(super) const FREEZE: Described = ordering(Verb::Put, FREEZE_PATH, "Keeps the layers of a dataset's replicas as they are.");
pub(super) const THAW: Described =
    ordering(Verb::Delete, FREEZE_PATH, "Lets the layers of a dataset's replicas follow their load again.");

pub(super) const ACK: Described = described::<AckAsked>(
    Verb::Put,
    ACK_PATH,
    "Has changes of a dataset's records acknowledged when shared storage has them, or when the disks of two workers do.",
    ORDERED,
);

pub(super) async fn ack(come: Come<AckAsked>) -> Result<Json<Ordered>, Refusal> {
    let (coming, asked) = come.by_name("shard_ack")?;
    let ordering = coming.administer(asked.dataset, asked.timeout)?;
    let ack = asked.ack;
    Ok(Ordered::of(&ordering.order(move |orders| orders.ack = ack).await?, None))
}

pub(super) async fn unpin(come: Come<DatasetAsked>) -> Result<Json<Ordered>, Refusal> {
    order(come, "shard_unpin", |orders| orders.pin = None).await
}

pub(super) async fn freeze(come: Come<DatasetAsked>) -> Result<Json<Ordered>, Refusal> {
    order(come, "shard_freeze", |orders| orders.frozen = true).await
}

pub(super) async fn thaw(come: Come<DatasetAsked>) -> Result<Json<Ordered>, Refusal> {
    order(come, "shard_thaw", |orders| orders.frozen = false).await
}

async fn order(come: Come<DatasetAsked>, what: &'static str, change: fn(&mut DatasetOrders)) -> Result<Json<Ordered>, Refusal> {
    let (coming, DatasetAsked { dataset, timeout }) = come.by_name(what)?;
    let ordering = coming.administer(dataset, timeout)?;
    Ok(Ordered::of(&ordering.order(change).await?, None))
}
