//! Which addresses a mount may not name, since clouds hand out the machine's own credentials there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address reaches nothing but this link. Clouds answer there with the machine's own credentials, so that no storage
/// that others name may be there.
pub fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => {
            let mapped = address.to_ipv4_mapped().or_else(|| embedded(address));
            (address.segments()[0] & 0xffc0) == 0xfe80 || address == AWS_METADATA || mapped.is_some_and(|v4| v4.is_link_local())
        }
    }
}

/// Where AWS answers over IPv6: a unique local address by its form.
const AWS_METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// The address that a compatible (`::a.b.c.d`) or translated (`64:ff9b::a.b.c.d`) one stands for.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let parts = address.segments();
    let (high, low) = (parts[6].to_be_bytes(), parts[7].to_be_bytes());
    matches!(parts[..6], [0, 0, 0, 0, 0, 0] | [0x64, 0xff9b, 0, 0, 0, 0]).then(|| Ipv4Addr::new(high[0], high[1], low[0], low[1]))
}

/// Whether the authority of a URL (`host`, `host:port`, `[host]:port`) is such an address, in any of its spellings: those that
/// systems and clients read as numbers are read so here. A name is none, whatever it resolves to.
pub fn names_link_local(authority: &str) -> bool {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    // A zone (`fe80::1%eth0`) belongs to the machine.
    let host = host.split('%').next().unwrap_or_default().trim_end_matches('.');
    let address = host.parse::<Ipv6Addr>().ok().map(IpAddr::V6).or_else(|| numbers(host).map(IpAddr::V4));
    address.is_some_and(is_link_local)
}

/// Reads an IPv4 address of one to four numbers, decimal, octal or hexadecimal, the last of which fills what is left.
fn numbers(host: &str) -> Option<Ipv4Addr> {
    let parts = host.split('.').map(number).collect::<Option<Vec<u64>>>()?;
    let (last, first) = parts.split_last()?;
    let rest_bits = 32u32.checked_sub(8 * u32::try_from(first.len()).ok()?).filter(|bits| *bits > 0)?;
    if first.iter().any(|part| *part > 255) || *last >= 1u64 << rest_bits {
        return None;
    }
    let high = first.iter().enumerate().fold(0, |sum, (at, part)| sum | part << (24 - 8 * at));
    u32::try_from(high | last).ok().map(Ipv4Addr::from)
}

fn number(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    match lower.strip_prefix("0x") {
        Some("") => Some(0),
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None if lower.len() > 1 && lower.starts_with('0') => u64::from_str_radix(&lower, 8).ok(),
        None => lower.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_local_addresses_in_all_their_spellings() {
        let yes = [
            "169.254.169.254",
            "169.254.169.254:80",
            "169.254.169.254.",
            "169.254.0.1",
            "2852039166",
            "0xa9fea9fe",
            "0xA9.0xFE.0xA9.0xFE",
            "0251.0376.0251.0376",
            "169.254.43518",
            "169.16689662:8080",
            "[fe80::1]:9000",
            "[fe80::1%25eth0]",
            "[febf::1]",
            "[::ffff:169.254.169.254]",
            "[::ffff:a9fe:a9fe]:80",
            "[::169.254.169.254]",
            "[64:ff9b::169.254.169.254]",
            "[fd00:ec2::254]",
            "user@169.254.169.254",
        ];
        for host in yes {
            assert!(names_link_local(host), "{host}");
        }
        let no = [
            "127.0.0.1:9000",
            "localhost",
            "s3.amazonaws.com",
            "169.253.1.1",
            "170.254.1.1",
            "[::1]:9000",
            "[fd00::1]",
            "[fec0::1]",
            "10.0.0.1",
            "2130706433",
            "169.254.169.254.example.com",
            "",
            "1.2.3.4.5",
            "4294967296",
        ];
        for host in no {
            assert!(!names_link_local(host), "{host}");
        }
    }
}
