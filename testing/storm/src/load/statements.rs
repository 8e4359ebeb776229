//! Statements over files that nobody changes, in the process that asks and on executors, each by a command of the binary: each answer is
//! known.

use std::io::{self, Error};
use std::sync::Arc;
use std::time::Duration;

use forebay_client::{Client, NodeErrorKind};
use forebay_demo::S3Server;
use forebay_oracle::history::{Call, Door, Failure, Recorder, What};
use forebay_oracle::load::{GIVEN_UP_AFTER, Shared, cut, given_up, pause};
use forebay_oracle::{Rule, Violation};
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::doors;
use crate::cluster::{Cluster, Commands, FRESH};

const FILES: u64 = 4;
const ROWS: u64 = 5_000;
/// Words of a file.
const WORDS: u64 = 7;
/// Clients of each kind.
const LOCAL: usize = 1;
const DISTRIBUTED: usize = 2;
const ASK_PAUSE: Duration = Duration::from_millis(200);
/// The first statement waits for scheduler and executors.
const BEGINS_WITHIN: Duration = Duration::from_secs(60);
/// After a fault's end, and when the scheduler is killed after its begin, statements are answered within this time.
const BACK_WITHIN_US: u64 = 15_000_000;
/// Where what passes between stages is, and how long it may stay.
const SHUFFLE: &str = "/tmp/shuffle";
const SHUFFLE_GOES_WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The files are small: without this no statement would go to executors.
const DISTRIBUTES: &[(&str, &str)] = &[("FOREBAY_DISTRIBUTE_FROM", "0B")];
const STATEMENTS: usize = 3;

/// A load that runs.
pub struct Statements {
    asker: Asker,
    clients: JoinSet<()>,
    client: Client,
}

#[derive(Clone)]
struct Asker {
    commands: Commands,
    shared: Arc<Shared>,
    wrong: Arc<Mutex<Vec<Violation>>>,
}

impl Statements {
    /// Stores the files, waits until the first statement is answered, then starts all clients.
    pub(super) async fn start(cluster: &Cluster, store: &S3Server, seed: u64) -> io::Result<Self> {
        let outside = doors::store(store)?;
        for file in 0..FILES {
            let at = Path::from(format!("{FRESH}/t/{file}.csv"));
            outside.put(&at, PutPayload::from_bytes(csv().into())).await.map_err(Error::other)?;
        }
        let client = cluster.client(false).await?;
        let asker = Asker { commands: cluster.commands(), shared: Arc::default(), wrong: Arc::default() };
        match asker.commands.run(&arguments(0, Door::Executors), DISTRIBUTES, BEGINS_WITHIN).await? {
            Some(ran) if ran.stdout == answer(0) => {}
            other => return Err(Error::other(format!("the first statement is not answered: {other:?}"))),
        }
        let (mut clients, mut chance) = (JoinSet::new(), StdRng::seed_from_u64(seed));
        let doors = std::iter::repeat_n(Door::Local, LOCAL).chain(std::iter::repeat_n(Door::Executors, DISTRIBUTED));
        for door in doors {
            clients.spawn(asker.clone().run(door, StdRng::seed_from_u64(chance.random())));
        }
        Ok(Self { asker, clients, client })
    }

    pub(super) fn recorder(&self) -> &Recorder {
        &self.asker.shared.recorder
    }

    /// Ends all clients; nothing that passed between stages stays.
    pub(super) async fn end(mut self) -> io::Result<(Recorder, Vec<Violation>)> {
        super::end(&self.asker.shared, &mut self.clients).await?;
        let mut violations = std::mem::take(&mut *self.asker.wrong.lock());
        violations.extend(shuffle_left(&self.client).await);
        let Asker { shared, .. } = self.asker;
        Ok((super::recorded(shared)?, violations))
    }
}

impl Asker {
    async fn run(self, door: Door, mut chance: StdRng) {
        while self.shared.goes_on() {
            self.ask(chance.random_range(0..STATEMENTS), door).await;
            pause(&mut chance, ASK_PAUSE).await;
        }
    }

    async fn ask(&self, number: usize, door: Door) {
        let begin_us = self.shared.recorder.now_us();
        let ran = self.commands.run(&arguments(number, door), DISTRIBUTES, GIVEN_UP_AFTER).await;
        let failure = |kind: &str, said: &str| Some(Failure { kind: kind.to_owned(), message: cut(said), no_effect: true });
        let error = match ran {
            Ok(Some(ran)) if ran.code == Some(0) => {
                if ran.stdout != answer(number) {
                    self.wrong(
                        Rule::OneVersion,
                        format!("{door:?} at {begin_us} us: {} is {:?}", statement(number), cut(&ran.stdout)),
                    );
                }
                None
            }
            Ok(Some(ran)) if ran.code == Some(1) => failure("failed", &ran.stderr),
            Ok(Some(ran)) => {
                self.wrong(Rule::StaysUp, format!("{door:?} at {begin_us} us ended with {:?}: {}", ran.code, cut(&ran.stderr)));
                failure("ended", &ran.stderr)
            }
            Ok(None) => Some(given_up()),
            Err(error) => failure("not started", &error.to_string()),
        };
        self.shared.recorder.add(begin_us, door, What::Read { key: number as u32, start: 0, seen: None }, error);
    }

    fn wrong(&self, rule: Rule, what: String) {
        self.wrong.lock().push(Violation::new(rule, what));
    }
}

/// How soon after a fault's end statements were answered again, in microseconds, and what does not hold of that.
pub fn back(calls: &[Call], struck_us: u64, healed_us: u64, has_standby: bool) -> (Option<u64>, Vec<Violation>) {
    let first = |door: Door, from_us: u64| {
        let right = calls.iter().filter(|call| call.door == door && call.begin_us >= from_us && call.error.is_none());
        right.map(|call| call.end_us - from_us).min()
    };
    let doors = [Door::Local, Door::Executors];
    let back_us =
        doors.map(|door| first(door, healed_us)).into_iter().try_fold(0, |back_us, door| door.map(|us| back_us.max(us)));
    let mut violations = Vec::new();
    let mut late = |what: String| violations.push(Violation::new(Rule::Recovers, what));
    if back_us.is_none_or(|back_us| back_us > BACK_WITHIN_US) {
        late(format!("statements are answered {back_us:?} us after the fault's end"));
    }
    let taken_over_us = first(Door::Executors, struck_us);
    if has_standby && taken_over_us.is_none_or(|us| us > BACK_WITHIN_US) {
        late(format!("a scheduler that stood by answers {taken_over_us:?} us after the other one was killed"));
    }
    let failed = calls.iter().find(|call| call.begin_us > healed_us + BACK_WITHIN_US && call.error.is_some());
    if let Some(call) = failed {
        late(format!("{:?} fails at {} us, {} us after the fault's end", call.door, call.begin_us, call.begin_us - healed_us));
    }
    (back_us, violations)
}

/// Waits until nothing is left of what passed between stages, and takes its folder away.
async fn shuffle_left(client: &Client) -> Option<Violation> {
    let nodes = client.nodes();
    let empty = async {
        loop {
            match nodes.list(SHUFFLE, None, 10).await {
                Ok((left, _)) if !left.is_empty() => {}
                Ok(_) => break,
                Err(error) if error.kind == NodeErrorKind::NotFound => break,
                // Asked again.
                Err(_) => {}
            }
            sleep(LOOK_EVERY).await;
        }
    };
    if timeout(SHUFFLE_GOES_WITHIN, empty).await.is_err() {
        return Some(Violation::new(Rule::NothingLeft, format!("{SHUFFLE} has something of jobs that are over")));
    }
    // Where no statement had stages there is none.
    let _ = nodes.delete(SHUFFLE, false).await;
    None
}

/// A statement's command.
fn arguments(number: usize, door: Door) -> Vec<&'static str> {
    let alone: &[&str] = if door == Door::Local { &["--scheduler", "off"] } else { &[] };
    [&["sql", "--csv"], alone, &[statement(number)]].concat()
}

fn statement(number: usize) -> &'static str {
    match number {
        0 => "select count(*) as n, max(square) as m from '/fresh/t/*.csv'",
        1 => "select word, count(*) as n from '/fresh/t/*.csv' group by word order by word",
        _ => "select count(distinct n) as n, sum(square) as s from '/fresh/t/*.csv' where word = 'word-3'",
    }
}

fn answer(number: usize) -> String {
    match number {
        0 => format!("n,m\n{},{}\n", FILES * ROWS, (ROWS - 1) * (ROWS - 1)),
        1 => {
            let count = |word: u64| FILES * (0..ROWS).filter(|n| n % WORDS == word).count() as u64;
            let rows: String = (0..WORDS).map(|word| format!("word-{word},{}\n", count(word))).collect();
            format!("word,n\n{rows}")
        }
        _ => {
            let of_word = || (0..ROWS).filter(|n| n % WORDS == 3);
            format!("n,s\n{},{}\n", of_word().count(), FILES * of_word().map(|n| n * n).sum::<u64>())
        }
    }
}

fn csv() -> String {
    let rows: String = (0..ROWS).map(|n| format!("{n},{},word-{}\n", n * n, n % WORDS)).collect();
    format!("n,square,word\n{rows}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(door: Door, begin_us: u64, end_us: u64, fails: bool) -> Call {
        let error = fails.then(|| Failure { kind: "failed".to_owned(), message: String::new(), no_effect: true });
        Call { begin_us, end_us, door, what: What::Read { key: 0, start: 0, seen: None }, error }
    }

    #[test]
    fn statements_are_back_when_both_ways_answer_and_fail_no_more() {
        let second = 1_000_000;
        let (struck, healed) = (10 * second, 20 * second);
        let local = call(Door::Local, 21 * second, 22 * second, false);
        let on_executors = |begin: u64, end: u64| call(Door::Executors, begin * second, end * second, false);
        let judged = |calls: &[Call], has_standby| back(calls, struck, healed, has_standby);
        assert_eq!(judged(&[local.clone(), on_executors(12, 19), on_executors(23, 25)], true), (Some(5 * second), Vec::new()));
        let without_standby = judged(&[local.clone(), on_executors(30, 31)], false);
        assert_eq!(without_standby, (Some(11 * second), Vec::new()));
        assert_eq!(judged(&[local.clone(), on_executors(30, 31)], true).1.len(), 1, "nobody took over in time");
        assert_eq!(judged(std::slice::from_ref(&local), false).1.len(), 1, "executors answer no more");
        let late = call(Door::Local, 36 * second, 37 * second, true);
        assert_eq!(judged(&[local, on_executors(21, 22), late], false).1.len(), 1, "it fails when all is well");
    }

    #[test]
    fn answers_are_those_of_the_rows() {
        assert_eq!(answer(0), "n,m\n20000,24990001\n");
        assert!(answer(1).starts_with("word,n\nword-0,2860\nword-1,2860\nword-2,2856\n"), "{}", answer(1));
        assert_eq!(csv().lines().count() as u64, ROWS + 1);
    }
}
