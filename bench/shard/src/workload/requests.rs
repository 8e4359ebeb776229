//! A service's log, made up: what there are few of comes often, as agents and routes do, and what is by chance there (traces, times, numbers in
//! messages) is by chance here.

use std::io::Write;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::Records;
use super::zipf::Zipf;

/// The attributes of a request.
const ATTRIBUTES: [&str; 14] = [
    "time", "level", "service", "pod", "client", "user", "method", "path", "status", "bytes", "micros", "agent", "trace",
    "message",
];
const SERVICES: [&str; 8] = ["checkout", "catalog", "search", "accounts", "payments", "images", "shipping", "gateway"];
const ROUTES: [(&str, &str); 10] = [
    ("GET", "/api/v2/products/"),
    ("GET", "/api/v2/search/results/"),
    ("GET", "/static/images/thumbnails/"),
    ("GET", "/api/v2/customers/orders/"),
    ("POST", "/api/v2/carts/items/"),
    ("PUT", "/api/v2/carts/items/"),
    ("POST", "/api/v2/payments/authorizations/"),
    ("GET", "/api/v2/shipments/tracking/"),
    ("DELETE", "/api/v2/carts/items/"),
    ("GET", "/health/ready/"),
];
const STATUS: [&str; 6] = ["200", "304", "201", "404", "500", "503"];
const PODS: usize = 48;
const AGENTS: usize = 60;
const CLIENTS: usize = 60_000;
const USERS: usize = 250_000;

/// What chance has drawn of each request.
struct Chance {
    random: StdRng,
    services: Zipf,
    routes: Zipf,
    agents: Zipf,
    clients: Zipf,
    users: Zipf,
}

impl Records {
    /// The first requests whose values together take at least `values_bytes`: 300 to 400 bytes each.
    pub(crate) fn requests(values_bytes: usize) -> Self {
        let zipf = |items| Zipf::new(items, 0.99);
        let mut chance = Chance {
            random: StdRng::seed_from_u64(47),
            services: zipf(SERVICES.len()),
            routes: zipf(ROUTES.len()),
            agents: zipf(AGENTS),
            clients: zipf(CLIENTS),
            users: zipf(USERS),
        };
        let mut records = Self::of(&ATTRIBUTES, values_bytes);
        let (mut key, mut micros) = (0, 0);
        while records.bytes.len() < values_bytes {
            key += chance.random.random_range(1..8u64);
            micros += chance.random.random_range(1..4_000u64);
            records.keys.push(key);
            records.push_request(&mut chance, micros);
        }
        records
    }

    fn push_request(&mut self, chance: &mut Chance, at: u64) {
        let Chance { random, services, routes, agents, clients, users } = chance;
        let (service, (method, path)) = (SERVICES[services.draw(random)], ROUTES[routes.draw(random)]);
        let (pod, agent, client) = (random.random_range(0..PODS), agents.draw(random), scattered(clients.draw(random)));
        // Most that can go wrong does not.
        let status = STATUS[random.random_range(0..300usize).saturating_sub(270) / 5];
        let level = if status < "400" { "info" } else { "error" };
        let took = 2f64.powf(random.random_range(8.0..18.0)) as u64;
        let (id, rows, shown) =
            (random.random_range(0..2_000_000u32), random.random_range(0..500u32), random.random_range(0..50u32));
        let (bytes, trace) = (random.random_range(120..60_000u32), random.random::<u128>());
        let second = at / 1_000_000;
        self.text(format_args!(
            "2026-03-{:02}T{:02}:{:02}:{:02}.{:06}Z",
            1 + second / 86_400,
            second / 3600 % 24,
            second / 60 % 60,
            second % 60,
            at % 1_000_000
        ));
        self.text(format_args!("{level}"));
        self.text(format_args!("{service}"));
        self.text(format_args!("{service}-{:08x}-{pod}", scattered(pod) >> 32));
        self.text(format_args!("10.{}.{}.{}", client >> 8 & 255, client >> 16 & 255, client >> 24 & 255));
        self.text(format_args!("u{:07}", users.draw(random)));
        self.text(format_args!("{method}"));
        self.text(format_args!("{path}{id}"));
        self.text(format_args!("{status}"));
        self.text(format_args!("{bytes}"));
        self.text(format_args!("{took}"));
        self.text(format_args!(
            "Mozilla/5.0 ({}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{}.0.0.0 Safari/537.36",
            ["Windows NT 10.0; Win64; x64", "Macintosh; Intel Mac OS X 10_15_7", "Linux; Android 10; K"][agent % 3],
            140 - agent / 3
        ));
        self.text(format_args!("{trace:032x}"));
        self.text(format_args!(
            "{method} {path}{id} answered {status} in {took} us: {shown} of {rows} rows shown, {bytes} bytes sent"
        ));
    }

    fn text(&mut self, text: std::fmt::Arguments<'_>) {
        self.bytes.write_fmt(text).expect("a vector takes everything");
        self.ends.push(u32::try_from(self.bytes.len()).expect("less than 4 GiB"));
    }
}

/// Numbers that lie anywhere, the same ones each time.
fn scattered(number: usize) -> u64 {
    xxhash_rust::xxh3::xxh3_64(&(number as u64).to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_as_large_as_they_say_and_the_same_each_time() {
        let records = Records::requests(200_000);
        let mean = records.values_bytes() / records.len();
        assert!((300..400).contains(&mean), "{mean} bytes");
        assert!(records.keys.is_sorted() && records.attributes.len() == ATTRIBUTES.len());
        assert_eq!(records.row(records.len() - 1), Records::requests(200_000).row(records.len() - 1));
        // As readers of JSON take them, without a copy.
        assert!(records.bytes.iter().all(|byte| (0x20..0x7f).contains(byte) && !b"\"\\".contains(byte)));
    }
}
