//! What a mount may be, as far as that is seen before its storage is asked: no secret in a URL, no number out of bounds.

use std::time::Duration;

use forebay_types::{Error, MountName, MountOptions, names_link_local};

/// Longest URL in bytes.
const URL_BYTES_MAX: usize = 4096;
/// Shortest period of discovery.
const DISCOVER_MIN: Duration = Duration::from_secs(1);
/// Least bandwidth and burst: less and a single page takes longer than a request may.
const BANDWIDTH_MIN: u64 = 10_000;
const BURST_MIN: u64 = 4 << 10;

/// Whether a mount can be meant like this; its storage is asked afterwards. Credentials in a URL are refused without
/// repeating them.
pub(super) fn check_mount(name: &MountName, url: &str, options: &MountOptions) -> Result<(), Error> {
    check(url, options).map_err(|error| error.context(format!("mount {name}")))
}

fn check(url: &str, options: &MountOptions) -> Result<(), Error> {
    let texts = [Some(url), options.endpoint.as_deref(), options.region.as_deref(), options.profile.as_deref()];
    for text in texts.into_iter().flatten() {
        if text.len() > URL_BYTES_MAX || text.contains(|c: char| c.is_control()) {
            return Err(Error::invalid(format!(
                "a URL or option is longer than {URL_BYTES_MAX} bytes or holds control characters"
            )));
        }
        if text.trim().is_empty() {
            return Err(Error::invalid("an option is empty: leave it out instead"));
        }
    }
    for text in [Some(url), options.endpoint.as_deref()].into_iter().flatten() {
        let authority = text.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or(""));
        if authority.contains('@') {
            return Err(Error::invalid(
                "credentials can't stand in a URL: put them in the environment (AWS_ACCESS_KEY_ID, ..) or a profile of each process",
            ));
        }
    }
    if let Some(endpoint) = &options.endpoint
        && !(endpoint.starts_with("http://") || endpoint.starts_with("https://"))
    {
        return Err(Error::invalid(format!("endpoint {endpoint:?} is no URL: write it as in http://127.0.0.1:9000")));
    }
    let authority =
        options.endpoint.as_deref().and_then(|endpoint| endpoint.split_once("://")?.1.split(['/', '?', '#', '\\']).next());
    if let Some(authority) =
        authority.filter(|authority| !authority.is_ascii() || (!authority.starts_with('[') && authority.contains('%')))
    {
        return Err(Error::invalid(format!(
            "the endpoint {authority:?} is no plain host: write its name or address in ASCII, without escapes"
        )));
    }
    if let Some(authority) = authority.filter(|authority| names_link_local(authority)) {
        return Err(Error::invalid(format!(
            "the endpoint {authority:?} is a link-local address, where machines find credentials of their own: name a storage service"
        )));
    }
    check_scheme(url, options)?;
    check_numbers(options)
}

fn check_scheme(url: &str, options: &MountOptions) -> Result<(), Error> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    match scheme {
        "file" => {
            if !rest.starts_with('/') {
                return Err(Error::invalid(format!("{url:?} names no folder: write an absolute path, as in file:///mnt/nas")));
            }
            let meant_for_buckets = options.endpoint.is_some()
                || options.region.is_some()
                || options.profile.is_some()
                || options.anonymous
                || options.virtual_host;
            if meant_for_buckets {
                return Err(Error::invalid(format!(
                    "{url:?} is a folder: endpoint, region, profile, anonymous and virtual-host are for buckets; leave them out"
                )));
            }
        }
        "s3" | "s3a" | "gs" | "az" | "azure" => {
            if rest.is_empty() || rest.starts_with('/') {
                return Err(Error::invalid(format!("{url:?} names no bucket: write it as in {scheme}://bucket/prefix")));
            }
            if options.anonymous && options.profile.is_some() {
                return Err(Error::invalid("anonymous requests take no profile: choose one of the two"));
            }
        }
        _ => {
            return Err(Error::invalid(format!(
                "{url:?} is of no known kind: write s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or file:///folder"
            )));
        }
    }
    Ok(())
}

fn check_numbers(options: &MountOptions) -> Result<(), Error> {
    if let Some(bandwidth) = options.bandwidth.filter(|bandwidth| bandwidth.bytes_per_sec() < BANDWIDTH_MIN) {
        return Err(Error::invalid(format!("a bandwidth of {bandwidth} is too little to work with: 80kbit is the least")));
    }
    if let Some(burst) = options.burst.filter(|burst| burst.0 < BURST_MIN) {
        return Err(Error::invalid(format!("a burst of {burst} is too little to work with: 4KiB is the least")));
    }
    if options.discover.is_some_and(|period| period < DISCOVER_MIN) {
        return Err(Error::invalid("discovery more often than once a second would only list: 1s is the least"));
    }
    Ok(())
}
