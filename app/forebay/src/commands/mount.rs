//! `forebay mount`: sends changes of mounts to the coordinator, and shows mounts with the options that say something.

use forebay_client::Client;
use forebay_protocol::{AdminRequest, ControlReply};
use forebay_types::{Error, HotForm, Mount, MountOptions, Young, format_duration};

use crate::cli::{MountAddArgs, MountCommand, MountFlags, MountSetArgs};
use crate::exit::{Failure, Outcome};
use crate::output::{self, Output};

pub(crate) async fn run(client: &Client, command: MountCommand) -> Outcome {
    match command {
        MountCommand::Add(args) => add(client, args).await,
        MountCommand::Set(args) => set(client, args).await,
        MountCommand::Rm { names } => {
            for name in names {
                client.control(AdminRequest::MountRemove { name }).await?;
            }
            Ok(())
        }
        MountCommand::Ls { json } => list(client, json),
    }
}

async fn add(client: &Client, args: MountAddArgs) -> Outcome {
    let options = apply(MountOptions::default(), &args.flags)?;
    let request = AdminRequest::MountAdd { name: args.name, url: url_of(&args.url)?, options };
    show(client.control(request).await?, args.json)
}

async fn set(client: &Client, args: MountSetArgs) -> Outcome {
    let view = client.view();
    let mount = view.mounts.iter().find(|mount| mount.name == args.name).ok_or_else(|| {
        Error::not_found(format!("there is no mount {}: `forebay mount ls` lists those that there are", args.name))
    })?;
    let options = apply(mount.options.clone(), &args.flags)?;
    show(client.control(AdminRequest::MountSet { name: args.name, options }).await?, args.json)
}

/// A folder's path is a URL too.
fn url_of(text: &str) -> Result<String, Error> {
    if text.contains("://") {
        return Ok(text.to_string());
    }
    let folder = std::fs::canonicalize(text).map_err(|error| {
        Error::from(error).context(format!("{text}: is neither a URL, as in s3://BUCKET/PREFIX, nor a folder"))
    })?;
    url::Url::from_directory_path(&folder)
        .map(|url| url.to_string().trim_end_matches('/').to_string())
        .map_err(|()| Error::invalid(format!("{text}: is no folder that can be mounted")))
}

fn apply(mut options: MountOptions, flags: &MountFlags) -> Outcome<MountOptions> {
    let text = |now: &mut Option<String>, given: &Option<String>| {
        if let Some(given) = given {
            *now = (given != "none").then(|| given.clone());
        }
    };
    text(&mut options.endpoint, &flags.endpoint);
    text(&mut options.region, &flags.region);
    text(&mut options.profile, &flags.profile);
    options.anonymous = flags.anonymous.unwrap_or(options.anonymous);
    options.virtual_host = flags.virtual_host.unwrap_or(options.virtual_host);
    options.read_only = flags.read_only.unwrap_or(options.read_only);
    options.validate = flags.validate.unwrap_or(options.validate);
    options.bandwidth = flags.bandwidth.map_or(options.bandwidth, |given| given.0);
    options.burst = flags.burst.map_or(options.burst, |given| given.0);
    options.discover = flags.discover.map_or(options.discover, |given| given.0);
    options.eager = flags.eager.unwrap_or(options.eager);
    options.replicas = flags.replicas.map_or(options.replicas, |given| given.0);
    options.hot_form = flags.hot_form.unwrap_or(options.hot_form);
    options.young = match (flags.replicas_young.map(|given| given.0), flags.young_for, options.young) {
        (None, _, before) => before,
        (Some(None), ..) => None,
        (Some(Some(replicas)), Some(lasts), _) => Some(Young { replicas, lasts }),
        (Some(Some(replicas)), None, Some(before)) => Some(Young { replicas, ..before }),
        (Some(Some(_)), None, None) => {
            return Err(Failure::Usage("how long is data young? Give --for as well, as in --replicas-young 2 --for 7d".into()));
        }
    };
    Ok(options)
}

fn show(reply: ControlReply, json: bool) -> Outcome {
    let mount = match reply {
        ControlReply::Mount(mount) => mount,
        other => return Err(other.unexpected().into()),
    };
    output::show(json, &record(&mount), |output| {
        output.line(&format!("/{}/ is {} ({})", mount.name, mount.url, describe(&mount)))
    })
}

pub(crate) fn list(client: &Client, json: bool) -> Outcome {
    let view = client.view();
    let mut output = Output::new(json);
    if json {
        for mount in &view.mounts {
            output.record(&record(mount))?;
        }
    } else if view.mounts.is_empty() {
        eprintln!("no mounts yet: `forebay mount add NAME URL` adds one");
    } else {
        let rows: Vec<_> =
            view.mounts.iter().map(|mount| vec![format!("/{}/", mount.name), mount.url.clone(), describe(mount)]).collect();
        output.table(&["mount", "url", "options"], &[], &rows)?;
    }
    output.finish()
}

/// A mount for programs, with everything that has a unit as text that the command line takes.
fn record(mount: &Mount) -> serde_json::Value {
    let mut record = serde_json::json!(mount);
    record["options"]["discover"] = serde_json::json!(mount.options.discover.map(format_duration));
    record
}

/// The options that say something.
pub(crate) fn describe(mount: &Mount) -> String {
    let options = &mount.options;
    let mut words = vec![format!("validate {}", options.validate)];
    words.extend(options.endpoint.as_ref().map(|endpoint| format!("endpoint {endpoint}")));
    words.extend(options.region.as_ref().map(|region| format!("region {region}")));
    words.extend(options.profile.as_ref().map(|profile| format!("profile {profile}")));
    words.extend(options.anonymous.then(|| "anonymous".to_string()));
    words.extend(options.virtual_host.then(|| "virtual host".to_string()));
    words.extend(options.read_only.then(|| "read-only".to_string()));
    words.extend(options.bandwidth.map(|rate| format!("bandwidth {rate}")));
    words.extend(options.burst.map(|size| format!("burst {size}")));
    words.extend(options.discover.map(|period| format!("discover {}", format_duration(period))));
    words.extend(options.eager.then(|| "eager".to_string()));
    words.extend(options.replicas.map(|count| format!("replicas {count}")));
    words.extend(options.young.map(|young| format!("replicas of what is young: {young}")));
    words.extend((options.hot_form != HotForm::default()).then(|| format!("hot form {}", options.hot_form)));
    words.join(", ")
}
