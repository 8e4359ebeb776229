//! What the world does to processes where they meet the network, and to the points of their code.

use std::collections::BTreeMap;

use super::disks;
use super::network::{Network, State};
use super::packet::{HostId, bit};
use super::points::Point;
use super::processes::change;

impl Network {
    /// A process takes nothing more from its connections, or does again.
    pub(crate) fn set_deaf(&self, host: HostId, is_deaf: bool) {
        let mut state = self.state().lock();
        change(&mut state.processes.deaf, host, is_deaf);
        if !state.processes.is_deaf(host) {
            state.wake_readers(host);
        }
    }

    /// A process gets no descriptors for connections any more, or does again.
    pub(crate) fn set_without_descriptors(&self, host: HostId, is_without: bool) {
        change(&mut self.state().lock().processes.without_descriptors, host, is_without);
    }

    /// A blocked link turns new connections away at once, as a firewall may, or no longer.
    pub(crate) fn set_refusing(&self, from: HostId, to: HostId, refuses: bool) {
        self.state().lock().links.set_refusing((from, to), refuses);
    }

    /// One in so many packets between two hosts is lost, in either direction, and its connection breaks with it; or that is over.
    pub(crate) fn set_breaking(&self, a: HostId, b: HostId, one_in: u32, is_breaking: bool) {
        let mut state = self.state().lock();
        for link in [(a, b), (b, a)] {
            state.links.set_breaking(link, one_in, is_breaking);
        }
    }

    /// When connections broke by that, and from whom to whom the packets were.
    pub(crate) fn breaks(&self) -> Vec<(u64, HostId, HostId)> {
        self.state().lock().links.breaks.clone()
    }

    /// A process ends behind so many packets more: nothing of what it still does has an effect. It is to be crashed as soon as that is seen.
    pub(crate) fn ends_behind(&self, host: HostId, packets: u32) {
        self.state().lock().processes.ends = Some((host, packets));
        disks::set_ended((packets == 0).then_some(host));
    }

    /// Whether that process has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.state().lock().processes.ends.is_some_and(|(_, left)| left == 0)
    }

    /// It is gone.
    pub(crate) fn forget_ended(&self) {
        self.state().lock().processes.ends = None;
        disks::set_ended(None);
    }

    /// From now on nothing happens at any point.
    pub(crate) fn calm(&self) {
        self.state().lock().points.is_calm = true;
    }

    /// All points that were passed.
    pub(crate) fn points(&self) -> BTreeMap<&'static str, Point> {
        self.state().lock().points.all.clone()
    }
}

impl State {
    /// Whether the process whose turn it is has ended.
    pub(super) fn turn_has_ended(&self) -> bool {
        self.processes.has_ended(self.hosts.turn)
    }

    /// Whether nothing that the process says arrives any more whose turn it is.
    pub(super) fn is_crashing(&self) -> bool {
        self.processes.crashing || self.turn_has_ended()
    }

    /// Who reads on a host looks again.
    fn wake_readers(&mut self, host: HostId) {
        self.pipes.values_mut().filter(|pipe| pipe.to == host).for_each(|pipe| pipe.wake());
        self.heard |= bit(host);
    }
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::sync::Arc;
    use std::task::{Poll, Waker};

    use rand::SeedableRng;
    use rand::rngs::StdRng;
    use tokio::io::ReadBuf;

    use super::*;
    use crate::outside::packet::PipeId;
    use crate::trace::Trace;

    /// A network, and what the first host reads, and writes to the other one.
    fn connected() -> (Network, PipeId, PipeId) {
        let names = vec!["one".to_owned(), "other".to_owned()];
        let network = Network::new(names, StdRng::seed_from_u64(7), Arc::new(Trace::new(false)));
        network.turn(1);
        network.state().lock().bind("other:7411").unwrap();
        network.turn(0);
        let (reads, writes, _hears) = network.state().lock().connect("other:7411").unwrap();
        network.deliver(1_000_000);
        (network, reads, writes)
    }

    fn write(network: &Network, pipe: PipeId, bytes: &[u8]) -> bool {
        let written = network.state().lock().write(pipe, Waker::noop(), &[IoSlice::new(bytes)]);
        matches!(written, Poll::Ready(Ok(_)))
    }

    fn read(network: &Network, pipe: PipeId) -> Option<usize> {
        let mut bytes = [0; 64];
        let mut into = ReadBuf::new(&mut bytes);
        match network.state().lock().read(pipe, Waker::noop(), &mut into) {
            Poll::Ready(read) => read.is_ok().then(|| into.filled().len()),
            Poll::Pending => None,
        }
    }

    #[test]
    fn who_takes_nothing_finds_all_of_it_later() {
        let (network, _, writes) = connected();
        for is_deaf in [true, true, false] {
            network.set_deaf(1, is_deaf);
        }
        assert!(write(&network, writes, b"first"));
        network.deliver(2_000_000);
        assert_eq!(read(&network, writes), None, "as long as one of both lasts");
        network.set_deaf(1, false);
        assert_eq!(read(&network, writes), Some(5));
    }

    #[test]
    fn who_has_no_descriptors_gets_no_connection_and_keeps_those_it_has() {
        let (network, _, writes) = connected();
        network.set_without_descriptors(0, true);
        let refused = network.state().lock().connect("other:7411").unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EMFILE));
        assert!(write(&network, writes, b"on"));
        network.set_without_descriptors(0, false);
        network.turn(1);
        network.set_without_descriptors(1, true);
        let accept = || network.state().lock().accept("other:7411", Waker::noop());
        assert!(matches!(accept(), Poll::Ready(Err(error)) if error.raw_os_error() == Some(libc::EMFILE)));
        network.set_without_descriptors(1, false);
        assert!(matches!(accept(), Poll::Ready(Ok(_))), "who came waits for it");
        network.set_without_descriptors(1, true);
        assert!(accept().is_pending(), "nobody has come");
    }

    #[test]
    fn a_packet_that_is_lost_has_its_connection_break_and_no_other_one() {
        let (network, _, writes) = connected();
        network.set_breaking(1, 0, 1, true);
        network.set_breaking(0, 1, 1_000_000, true);
        assert!(write(&network, writes, b"first"));
        network.deliver(2_000_000);
        assert_eq!((read(&network, writes), network.breaks()), (None, vec![(2_000_000, 0, 1)]));
        assert!(!write(&network, writes, b"more"), "who wrote hears of it too");
        network.set_breaking(1, 0, 1, false);
        let (_, writes, _hears) = network.state().lock().connect("other:7411").unwrap();
        network.deliver(3_000_000);
        assert!(write(&network, writes, b"again"));
        network.deliver(4_000_000);
        assert_eq!((read(&network, writes), network.breaks().len()), (Some(5), 1), "one in a million is not this one");
    }

    #[test]
    fn a_process_that_ends_between_two_packets_has_sent_the_first_alone() {
        let (network, _, writes) = connected();
        network.ends_behind(0, 2);
        assert!(write(&network, writes, b"one") && !network.has_ended());
        assert!(write(&network, writes, b"two") && network.has_ended());
        assert!(!write(&network, writes, b"three") && network.state().lock().turn_has_ended());
        network.deliver(2_000_000);
        assert_eq!(read(&network, writes), Some(6));
        network.turn(1);
        assert!(!network.state().lock().turn_has_ended(), "the other one has not");
        network.forget_ended();
        network.turn(0);
        assert!(!network.state().lock().turn_has_ended());
    }
}
