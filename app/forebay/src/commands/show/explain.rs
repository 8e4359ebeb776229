//! `forebay explain`.

use forebay_api::{Explained, ExplainedSegment};
use forebay_client::Client;
use forebay_types::{Mount, Validate, format_bytes, format_duration};

use crate::cli::ExplainArgs;
use crate::exit::Outcome;
use crate::output::Output;
use crate::tree::no_object;

/// Says where an object is, why, and what reading it would cost now.
pub(crate) async fn run(client: &Client, args: ExplainArgs) -> Outcome {
    let explained = match Explained::of(client, &args.path).await {
        Ok(explained) => explained,
        Err(error) => return Err(no_object(client, &args.path, error).await.into()),
    };
    let mut output = Output::new(args.json);
    if args.json {
        output.record(&explained)?;
    } else {
        let mount = client.mount(args.path.mount()).await?;
        output.lines(&lines(&explained, &mount))?;
    }
    output.finish()
}

fn lines(explained: &Explained, mount: &Mount) -> Vec<String> {
    let believed = match mount.options.validate {
        Validate::Always => "shared storage is asked at every open whether it is still this one".to_string(),
        Validate::Ttl(ttl) => format!("shared storage is asked again when {} have passed", format_duration(ttl)),
        Validate::Immutable => "objects of this mount never change, so shared storage is not asked again".to_string(),
    };
    let mut lines = vec![
        explained.path.clone(),
        format!(
            "  size     {} ({} bytes), {} segments",
            format_bytes(explained.bytes),
            explained.bytes,
            explained.segments.len()
        ),
        format!("  version  {}; {believed}", explained.version),
        format!("  storage  {}", explained.storage),
    ];
    if explained.hot_form {
        lines.push("  form     as it is; columns that are read often are kept decoded as well (hot-form)".to_string());
    }
    lines.extend(explained.segments.iter().flat_map(of_segment));
    lines.push(cost(explained));
    lines
}

fn of_segment(segment: &ExplainedSegment) -> Vec<String> {
    let asked: Vec<_> = segment.asked.iter().map(|asked| format!("{} {} %", asked.worker, asked.percent)).collect();
    let why = match (segment.routed_by, segment.asked.is_empty()) {
        (_, true) => "no worker is there: clients read shared storage".to_string(),
        ("table", _) => format!("by the routing table, since it is read much: {}", asked.join(", ")),
        _ => format!("by hashing: {}", segment.asked[0].worker),
    };
    let mut lines = vec![format!("  segment {} of {}, asked for {why}", segment.segment, format_bytes(segment.bytes))];
    lines.extend(segment.held.iter().map(|there| {
        let kept = if there.kept { ", kept" } else { "" };
        let (dram, disk) = (format_bytes(there.dram_bytes), format_bytes(there.disk_bytes));
        format!("    {} has {} ({dram} in DRAM, {disk} on disk{kept})", there.worker, format_bytes(there.bytes))
    }));
    if segment.held.is_empty() {
        lines.push("    no worker has any of it".to_string());
    }
    lines
}

fn cost(explained: &Explained) -> String {
    match (explained.missing_bytes, explained.missing_secs) {
        (0, _) => "  to read all of it now, nothing comes from shared storage".to_string(),
        (bytes, None) => format!("  to read all of it now, {} come from shared storage", format_bytes(bytes)),
        (bytes, Some(secs)) => {
            format!("  to read all of it now, {} come from shared storage, {secs:.1} s by the mount's bound", format_bytes(bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_api::{AskedWorker, HeldThere};

    use super::*;

    #[test]
    fn a_segment_says_who_is_asked_and_who_has_it() {
        let asked = |worker: &str, percent| AskedWorker { worker: worker.to_string(), percent };
        let there = HeldThere { worker: "a:1".to_string(), bytes: 4 << 20, dram_bytes: 1 << 20, disk_bytes: 4 << 20, kept: true };
        let mut segment = ExplainedSegment {
            segment: 1,
            bytes: 8 << 20,
            routed_by: "hashing",
            asked: vec![asked("a:1", 100)],
            held: vec![there],
        };
        let said = of_segment(&segment).join("\n");
        assert!(said.contains("segment 1 of 8.00 MiB, asked for by hashing: a:1"), "{said}");
        assert!(said.contains("a:1 has 4.00 MiB (1.00 MiB in DRAM, 4.00 MiB on disk, kept)"), "{said}");
        (segment.routed_by, segment.held) = ("table", Vec::new());
        segment.asked = vec![asked("a:1", 80), asked("b:1", 20)];
        let said = of_segment(&segment).join("\n");
        assert!(said.contains("a:1 80 %, b:1 20 %") && said.contains("no worker has any of it"), "{said}");
        segment.asked.clear();
        assert!(of_segment(&segment)[0].contains("clients read shared storage"));
    }
}
