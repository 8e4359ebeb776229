//! One machine as several with a link of 1 Gbit/s each, by network namespaces, for what loopback can't show.

use std::process::Command;

/// Machines with a link of 1 Gbit/s each: network namespaces behind shaped pairs of devices. Needs root, `ip` and `tc`.
pub struct Links {
    /// Tells the names of this run from those of another.
    run: u32,
    count: usize,
}

/// Bytes a second that a link carries, headers among them.
pub const LINK_BITS: u64 = 1_000_000_000;

impl Links {
    pub fn new(count: usize) -> Self {
        let links = Self { run: std::process::id() % 10_000, count };
        must("sysctl -qw net.ipv4.ip_forward=1");
        for at in 0..count {
            let (name, here, there) = (links.name(at), format!("h{}", links.name(at)), format!("t{}", links.name(at)));
            must(&format!("ip netns add {name}"));
            must(&format!("ip link add {here} type veth peer name {there}"));
            must(&format!("ip link set {there} netns {name}"));
            must(&format!("ip addr add {}/24 dev {here}", links.gateway(at)));
            must(&format!("ip link set {here} up"));
            must(&format!("ip -n {name} addr add {}/24 dev {there}", links.address(at)));
            must(&format!("ip -n {name} link set {there} up"));
            must(&format!("ip -n {name} link set lo up"));
            must(&format!("ip -n {name} route add default via {}", links.gateway(at)));
        }
        links.shape(true);
        links
    }

    /// Gives the links their bandwidth, or all that there is.
    pub fn shape(&self, shaped: bool) {
        for at in 0..self.count {
            let (name, here) = (self.name(at), format!("h{}", self.name(at)));
            if shaped {
                let tbf = format!("root tbf rate {LINK_BITS}bit burst 512kb latency 20ms");
                must(&format!("tc qdisc replace dev {here} {tbf}"));
                must(&format!("ip netns exec {name} tc qdisc replace dev t{name} {tbf}"));
            } else {
                must(&format!("tc qdisc del dev {here} root"));
                must(&format!("ip netns exec {name} tc qdisc del dev t{name} root"));
            }
        }
    }

    /// The address of a machine.
    pub fn address(&self, at: usize) -> String {
        format!("10.77.{}.2", at + 1)
    }

    /// The address by which a machine reaches this process.
    pub fn gateway(&self, at: usize) -> String {
        format!("10.77.{}.1", at + 1)
    }

    /// What runs this program on a machine.
    pub fn run(&self, at: usize, arguments: &[&str]) -> Command {
        let program = std::env::current_exe().unwrap();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name(at)]).arg(program).args(arguments);
        command
    }

    fn name(&self, at: usize) -> String {
        format!("fb{}{at}", self.run)
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        for at in 0..self.count {
            // The pair of devices goes with it.
            let _ = Command::new("ip").args(["netns", "del", &self.name(at)]).status();
        }
    }
}

fn must(line: &str) {
    let mut words = line.split(' ');
    let status = Command::new(words.next().unwrap()).args(words).status().unwrap();
    assert!(status.success(), "{line}: {status}; links need root, ip and tc");
}
