//! Ways that Forebay does not go, each by the smallest program that goes it, beside the smallest that goes as Forebay does: what there would be
//! to win (`docs/limits.md`).

use std::fs::{File, read_to_string};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use forebay_bench_harness::cpu::ThreadTime;
use forebay_bench_harness::{Bar, Figure, median};
use forebay_types::Result;
use memmap2::{Advice, MmapMut, MmapOptions};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rustix::fs::MemfdFlags;

use crate::bytes_of::sum;
use crate::reads::keep;

const ROUNDS: usize = 5;
/// Memory that is sent from, and looked at.
const BYTES: usize = 1 << 30;
/// What is sent at once, and how it is said.
const PIECES: [(usize, &str); 2] = [(64 << 10, "64 KiB"), (1 << 20, "1 MiB")];
/// Bytes of one look at random, and looks.
const LOOK_BYTES: usize = 64 << 10;
const LOOKS: usize = 20_000;

/// GB a second, and processor seconds a GB of the thread that sends.
type Sent = (f64, f64);

/// Sending out of the tier's kind of memory without a copy, and that memory in huge pages.
pub(crate) fn limits() -> Result<Vec<Figure>> {
    let mut figures = sending()?;
    figures.extend(huge_pages()?);
    Ok(figures)
}

/// `sendfile` from a memfd beside `send` from memory, over loopback TCP to who takes it and drops it.
fn sending() -> io::Result<Vec<Figure>> {
    let (memory, mut file) = (vec![7; BYTES], memfd(MemfdFlags::CLOEXEC)?);
    file.write_all(&memory)?;
    let mut figures = Vec::new();
    for (piece, said) in PIECES {
        let (mut files, mut copies) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            copies.push(sent(|socket, at| socket.write_all(&memory[at..at + piece]), piece)?);
            files.push(sent(|socket, at| send_file(socket, &file, at, piece), piece)?);
        }
        let which: [fn(&Sent) -> f64; 2] = [|run| run.0, |run| run.1];
        for ((what, unit), which) in [("rate", "GB/s"), ("sender's CPU", "s/GB")].into_iter().zip(which) {
            let of = |runs: &[Sent]| median(runs.iter().map(which).collect());
            let what = format!("sendfile of {said} from a memfd, loopback TCP: {what}");
            figures.push(Figure::new(what, of(&files), unit, "sent from memory", of(&copies), Bar::Nothing));
        }
    }
    Ok(figures)
}

/// Sends all bytes, so many at once.
fn sent(mut send: impl FnMut(&mut TcpStream, usize) -> io::Result<()>, piece: usize) -> io::Result<Sent> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut socket = TcpStream::connect(listener.local_addr()?)?;
    let (mut taker, _) = listener.accept()?;
    let taking = std::thread::spawn(move || -> io::Result<usize> {
        let (mut buffer, mut taken) = (vec![0; 1 << 20], 0);
        while taken < BYTES {
            match taker.read(&mut buffer)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => taken += read,
            }
        }
        Ok(taken)
    });
    let (began, busy) = (Instant::now(), ThreadTime::now());
    for at in (0..BYTES).step_by(piece) {
        send(&mut socket, at)?;
    }
    let busy = busy.elapsed();
    let taken = taking.join().expect("who takes does not panic")?;
    let gb = taken as f64 / 1e9;
    Ok((gb / began.elapsed().as_secs_f64(), busy.as_secs_f64() / gb))
}

fn send_file(socket: &TcpStream, file: &File, at: usize, bytes: usize) -> io::Result<()> {
    let (mut at, end) = (at as u64, (at + bytes) as u64);
    while at < end {
        let left = (end - at) as usize;
        if rustix::fs::sendfile(socket, file, Some(&mut at), left)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

/// One's own memory of the tier's kind in huge pages, transparent ones and those that are set aside, beside pages of 4 KiB.
fn huge_pages() -> io::Result<Vec<Figure>> {
    let small = mapped(MemfdFlags::CLOEXEC, Some(Advice::NoHugePage))?;
    let before = shared_huge_bytes()?;
    let transparent = mapped(MemfdFlags::CLOEXEC, Some(Advice::HugePage))?;
    let came = shared_huge_bytes()?.saturating_sub(before);
    let what = "memory with the advice for huge pages: share that has them";
    let mut figures = vec![Figure::alone(what, came as f64 * 100.0 / BYTES as f64, "%", Bar::Nothing)];
    let mut kinds = vec![("transparent huge pages", transparent)];
    // Without pages that the system sets aside there are none.
    if let Ok(aside) = mapped(MemfdFlags::CLOEXEC | MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB, None) {
        kinds.push(("huge pages set aside", aside));
    }
    for (name, huge) in kinds {
        for (what, unit, look) in
            [("scan", "GB/s", scanned as fn(&[u8]) -> f64), ("64 KiB at random, consumed", "us", at_random as fn(&[u8]) -> f64)]
        {
            let (mut ours, mut peers) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                peers.push(look(&small));
                ours.push(look(&huge));
            }
            let what = format!("{what}, {name}");
            figures.push(Figure::new(what, median(ours), unit, "pages of 4 KiB", median(peers), Bar::Nothing));
        }
    }
    Ok(figures)
}

/// GB a second of adding all of it up.
fn scanned(memory: &[u8]) -> f64 {
    let began = Instant::now();
    keep(sum(memory));
    memory.len() as f64 / 1e9 / began.elapsed().as_secs_f64()
}

/// Microseconds a look, the same places each time.
fn at_random(memory: &[u8]) -> f64 {
    let mut random = StdRng::seed_from_u64(7);
    let places: Vec<usize> = (0..LOOKS).map(|_| random.random_range(0..BYTES / LOOK_BYTES) * LOOK_BYTES).collect();
    let began = Instant::now();
    places.iter().for_each(|at| keep(sum(&memory[*at..at + LOOK_BYTES])));
    began.elapsed().as_secs_f64() * 1e6 / LOOKS as f64
}

fn memfd(flags: MemfdFlags) -> io::Result<File> {
    Ok(rustix::fs::memfd_create("limits", flags)?.into())
}

/// Memory that is filled; an error where the system has no pages of the kind.
#[allow(unsafe_code, reason = "the file is this program's alone")]
fn mapped(flags: MemfdFlags, advice: Option<Advice>) -> io::Result<MmapMut> {
    let file = memfd(flags)?;
    file.set_len(BYTES as u64)?;
    // SAFETY: nobody else has the descriptor, so that the file stays as it is while it is mapped.
    let mut map = unsafe { MmapOptions::new().len(BYTES).map_mut(&file)? };
    if let Some(advice) = advice {
        map.advise(advice)?;
    }
    map.fill(7);
    Ok(map)
}

/// Memory of files that are shared, in huge pages, of all of the system.
fn shared_huge_bytes() -> io::Result<u64> {
    let all = read_to_string("/proc/meminfo")?;
    let said = all.lines().find_map(|line| line.strip_prefix("ShmemHugePages:")?.split_whitespace().next()?.parse::<u64>().ok());
    Ok(said.unwrap_or_default() << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_sent_from_where_it_is_asked_for_to_its_end() {
        let mut file = memfd(MemfdFlags::CLOEXEC).unwrap();
        file.write_all(b"0123456789").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        send_file(&socket, &file, 3, 5).unwrap();
        assert!(send_file(&socket, &file, 8, 5).is_err(), "there are two more");
        drop(socket);
        let mut came = String::new();
        listener.accept().unwrap().0.read_to_string(&mut came).unwrap();
        assert_eq!(came, "3456789");
    }
}
