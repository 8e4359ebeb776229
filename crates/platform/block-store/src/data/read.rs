//! Pages from disk into the DRAM tier: claimed once for all who want them, verified, then published.

use std::sync::Arc;

use forebay_runtime::{Defect, planted};
use forebay_types::{PAGE_BYTES, PageRun, PageSet, Result, SegmentId};
use tokio::sync::OwnedSemaphorePermit;

use crate::core::{BlockPin, Core, Reservation, WritePages};
use crate::media::{Direction, SumGroups, page_sum};
use crate::table::{ClaimKind, DiskNo, Landing, PageBits, Place, SegmentRef, TierKind, by_block};

/// Pages of one block on their way from the disk tier into DRAM.
pub(crate) struct Load {
    core: Arc<Core>,
    segment: SegmentRef,
    id: SegmentId,
    disk: DiskNo,
    /// First page of the extent there.
    extent: u64,
    pages: Vec<WritePages>,
    landing: Arc<Landing>,
    /// What is given back before those who wait go on: none only while being dropped.
    held: Option<(Reservation, BlockPin)>,
    _permit: OwnedSemaphorePermit,
}

/// Loads pages, as `BlockStore::load` says.
pub(crate) async fn load(core: &Arc<Core>, id: SegmentId, run: PageRun) -> Result<()> {
    let Some(disk) = core.disk_of(id).filter(|disk| disk.health.is_on(Direction::Read) && !core.is_closed()) else {
        return Ok(());
    };
    let all = async {
        let mut landings = Vec::new();
        for (block, bits) in by_block(run) {
            if !core.is_on_disk_only(id, block, bits) {
                continue;
            }
            // Never closed: permits are taken as long as the store lives.
            let Ok(permit) = disk.pool.load_permits.clone().acquire_owned().await else { break };
            let (begun, others) = begin(core, id, block, bits, permit)?;
            landings.extend(others);
            if let Some(load) = begun {
                landings.push(load.landing.clone());
                core.disk(load.disk).pool.load(move || load.run());
            }
        }
        for landing in landings {
            landing.landed().await;
        }
        Ok(())
    };
    match forebay_runtime::time::timeout(core.patience, all).await {
        Ok(done) => done,
        Err(_) => {
            let millis = core.patience.as_millis();
            disk.health.failed(Direction::Read, true, format_args!("a read was not answered within {millis} ms"));
            Ok(())
        }
    }
}

/// Claims what is wanted of a block and only on disk; and whom to wait for besides, who has claimed some of it before.
fn begin(
    core: &Arc<Core>,
    id: SegmentId,
    block: u32,
    bits: PageBits,
    permit: OwnedSemaphorePermit,
) -> Result<(Option<Load>, Vec<Arc<Landing>>)> {
    let Some((segment, pin)) = core.pin_for_load(id, block, bits)? else { return Ok((None, Vec::new())) };
    let address = {
        let mut shard = core.table.of(segment);
        let entry = shard.get(segment);
        entry.dram.extent.expect("placed and pinned") + u64::from(pin.run.start)
    };
    let room = u64::from(bits.count()) + SumGroups::pages_of(address, u64::from(pin.run.len));
    let reservation = core.make_room(Place::Dram, room)?;
    let mut shard = core.table.of(segment);
    let entry = shard.get(segment);
    let mut wanted: PageSet = entry
        .present(TierKind::Disk, block)
        .and(bits)
        .without(entry.present(TierKind::Dram, block))
        .runs(block)
        .into_iter()
        .collect();
    let (Some(extent), disk) = (entry.disk.extent, entry.disk_no) else { return Ok((None, Vec::new())) };
    let mut others = Vec::new();
    for claim in entry.dram.claims.overlapping(pin.run) {
        // Those of fills and of punching end in a moment, or who fills is asked for the pages: whoever finds them missing asks again.
        if let ClaimKind::Load(landing) = &claim.kind {
            others.push(landing.clone());
        }
        wanted.remove(claim.run);
    }
    let landing = Arc::new(Landing::default());
    let kind = || ClaimKind::Load(landing.clone());
    let pages: Vec<_> = wanted.runs().into_iter().map(|run| WritePages::claim(core, &mut shard, segment, run, kind())).collect();
    drop(shard);
    if pages.is_empty() {
        return Ok((None, others));
    }
    let core = core.clone();
    Ok((Some(Load { core, segment, id, disk, extent, pages, landing, held: Some((reservation, pin)), _permit: permit }), others))
}

impl Load {
    /// Reads, verifies, publishes.
    pub fn run(mut self) {
        let began = forebay_runtime::now();
        for pages in std::mem::take(&mut self.pages) {
            self.read(pages);
        }
        let took = began.elapsed();
        if took > self.core.patience {
            let disk = self.core.disk(self.disk);
            disk.health.failed(Direction::Read, true, format_args!("a read took {} ms", took.as_millis()));
        }
    }

    fn spend(&mut self, pages: u64) {
        let (reservation, _) = self.held.as_mut().expect("held until dropped");
        reservation.spend(pages);
    }

    fn read(&mut self, mut pages: WritePages) {
        let core = self.core.clone();
        let disk = core.disk(self.disk);
        let run = pages.run();
        let start = self.extent + u64::from(run.start);
        let read = disk.file.read(start, pages.bytes()).and_then(|()| disk.sums.load(start, u64::from(run.len)));
        let sums = match read {
            Ok(sums) => sums,
            Err(error) => {
                core.disk_failed(disk, Direction::Read, false, &error);
                drop(pages);
                self.core.drop_unread(self.segment, run);
                return;
            }
        };
        let mut good = PageSet::new();
        for (index, bytes) in pages.bytes().chunks_exact(PAGE_BYTES as usize).enumerate() {
            let page = run.start + index as u32;
            if page_sum(self.id, page, bytes) == sums[index] || planted(Defect::DamageAdopted) {
                good.insert(PageRun { start: page, len: 1 });
            }
        }
        disk.health.succeeded(Direction::Read);
        if good.len() == run.len {
            self.spend(pages.publish(&sums));
            return;
        }
        let bad = run.len - good.len();
        tracing::warn!(segment = %self.id, pages = bad, "pages of the disk tier do not verify and are dropped");
        for part in pages.split(&good.runs()) {
            let at = (part.run().start - run.start) as usize;
            let sums = &sums[at..at + part.run().len as usize];
            self.spend(part.publish(sums));
        }
        good.missing(run).into_iter().for_each(|bad| self.core.drop_pages(TierKind::Disk, self.segment, bad));
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // Claims, room and pin are given back before those who wait look again.
        self.pages.clear();
        self.held = None;
        self.landing.land();
    }
}
