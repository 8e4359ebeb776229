//! Mounts, pins and the cluster's status as JSON, in the units that the command line takes, for Python to take apart.

use forebay_client::{AdminRequest, Client, ControlReply, ControlRequest};
use forebay_types::{Error, ForebayPath, Mount, MountOptions, Result, format_duration, parse_duration};
use serde_json::{Map, Value, json};

/// Everything here goes to Python as JSON text, with the units that the command line takes.
fn record(mount: &Mount) -> Value {
    let mut record = json!(mount.options);
    record["discover"] = json!(mount.options.discover.map(format_duration));
    json!({ "name": mount.name, "url": mount.url, "options": record })
}

/// All mounts, as the coordinator has them now.
pub(crate) async fn all(client: &Client) -> Result<String> {
    let view = client.refresh_view().await?;
    Ok(Value::from(view.mounts.iter().map(record).collect::<Vec<_>>()).to_string())
}

pub(crate) async fn add(client: &Client, name: String, url: String, options: String) -> Result<String> {
    let options = changed(&MountOptions::default(), &options)?;
    answer(client.control(AdminRequest::MountAdd { name: name.parse()?, url, options }).await?)
}

/// Changes the options that are named.
pub(crate) async fn set(client: &Client, name: String, options: String) -> Result<String> {
    let name = name.parse()?;
    client.refresh_view().await?;
    let mount = client.mount(&name).await?;
    let options = changed(&mount.options, &options)?;
    answer(client.control(AdminRequest::MountSet { name, options }).await?)
}

fn answer(reply: ControlReply) -> Result<String> {
    match reply {
        ControlReply::Mount(mount) => Ok(record(&mount).to_string()),
        other => Err(other.unexpected()),
    }
}

/// Options with those of a JSON object put over them; null takes one back.
fn changed(options: &MountOptions, changes: &str) -> Result<MountOptions> {
    let not_options = |error: serde_json::Error| Error::invalid(format!("mount options: {error}"));
    let mut changes: Map<String, Value> = serde_json::from_str(changes).map_err(not_options)?;
    let discover = match changes.remove("discover") {
        None => options.discover,
        Some(Value::Null) => None,
        Some(Value::String(period)) => Some(parse_duration(&period)?),
        Some(other) => return Err(Error::invalid(format!("mount options: discover: {other} is no duration, as in \"30s\""))),
    };
    let mut merged = json!(options);
    let default = json!(MountOptions::default());
    for (name, value) in changes {
        merged[&name] = if value.is_null() { default[&name].clone() } else { value };
    }
    let options: MountOptions = serde_json::from_value(merged).map_err(not_options)?;
    Ok(MountOptions { discover, ..options })
}

/// The paths that are kept.
pub(crate) async fn pins(client: &Client) -> Result<Vec<ForebayPath>> {
    match client.control(ControlRequest::Status).await? {
        ControlReply::Status(status) => Ok(status.pins),
        other => Err(other.unexpected()),
    }
}

/// The cluster: mounts, pins, workers and their tiers. Sizes are bytes, times seconds.
pub(crate) async fn status(client: &Client) -> Result<String> {
    let status = match client.control(ControlRequest::Status).await? {
        ControlReply::Status(status) => status,
        other => return Err(other.unexpected()),
    };
    let tier = |(capacity, used, kept): (u64, u64, u64), own: u64, decoded: u64, layers: u64| {
        let temporary = own.saturating_sub(decoded).saturating_sub(layers);
        json!({
            "capacity_bytes": capacity,
            "used_bytes": used,
            "kept_bytes": kept,
            "temporary_bytes": temporary,
            "decoded_bytes": decoded,
            "layer_bytes": layers,
        })
    };
    let mounts = status.mounts.iter().map(|mount| {
        let mut record = record(&mount.mount);
        record["counters"] = json!(mount.counters);
        record
    });
    let workers = status.workers.iter().map(|(info, state, report)| {
        json!({
            "id": info.id.to_string(),
            "address": info.address,
            "state": format!("{state:?}").to_lowercase(),
            "dram": tier(report.dram, report.own.0, report.form_bytes, 0),
            "decoded_bytes": report.form_bytes,
            "disk": tier(report.disk, report.own.1, report.disk_form_bytes, report.layer_bytes),
            "segments": report.segments,
            "reads": report.reads,
            "served_bytes": report.bytes_served,
            "hit_bytes": report.bytes_hit,
            "warnings": report.warnings.iter().map(|warning| warning.text.as_str()).collect::<Vec<_>>(),
        })
    });
    let status = json!({
        "version": status.forebay_version,
        "epoch": status.epoch,
        "uptime_secs": status.uptime.as_secs_f64(),
        "metadata": status.metadata,
        "mounts": mounts.collect::<Vec<_>>(),
        "pins": status.pins.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "workers": workers.collect::<Vec<_>>(),
    });
    Ok(status.to_string())
}
