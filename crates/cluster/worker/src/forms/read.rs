//! Reads of cells.

use std::sync::Arc;
use std::time::Duration;

use forebay_protocol::AccessWay;
use forebay_types::{Cell, CellSource, HotForm, MountId, ObjectVersion, PageRun, Result, TextForm};

use super::Forms;
use crate::origin::Obtained;
use crate::read::{Answer, Reader, answer};
use crate::signals::{Made, ServedFrom};

impl Forms {
    /// All of a cell if it is in the DRAM tier; else the wish is noted, and what is wished for often enough is made.
    pub(crate) async fn read_cell(
        &self,
        reader: Reader<'_>,
        version: ObjectVersion,
        form: Option<Arc<TextForm>>,
        cell: Cell,
    ) -> Result<Option<Answer>> {
        let began = forebay_runtime::now();
        let Some(source) = self.source(version, form).await? else { return Ok(None) };
        let (Some((id, _)), Some(index)) = (source.place(cell), cell.index()) else { return Ok(None) };
        let named = source.named();
        self.wishes.asked(reader.operation, named, cell);
        let Some((pinned, bytes)) = self.origin.store.pin_whole(id) else {
            self.wishes.wish(reader.operation, named, cell, id);
            return Ok(None);
        };
        let bytes = u64::from(bytes);
        let run = PageRun::covering(0..bytes).expect("no segment is empty");
        let mut answer = answer(reader, Obtained::Whole(pinned), run, 0..bytes);
        answer.hit = true;
        let took = began.elapsed();
        self.count(named.mount, bytes, took);
        self.room.read(bytes, took);
        self.signals.popularity.learn(id, named, index);
        self.signals.popularity.read(reader.operation, id, 1, bytes, took);
        self.signals.accessed.made(&Made {
            operation: Some(reader.operation),
            object: (named.mount, &named.key),
            start: 0,
            bytes,
            times: 1,
            way: AccessWay::Decoded,
        });
        Ok(Some(answer))
    }

    /// Counts a read that decoded columns of a mount have answered.
    pub(super) fn count(&self, mount: MountId, bytes: u64, took: Duration) {
        let door = self.origin.mounts.find(mount);
        let mount = door.as_ref().map(|door| &*door.reads);
        self.signals.meters.read(mount, 1, bytes, bytes);
        self.signals.meters.took(mount, ServedFrom::Dram, took);
    }

    /// What cells that are asked for are made of; none where there are none.
    pub(super) async fn source(&self, version: ObjectVersion, form: Option<Arc<TextForm>>) -> Result<Option<CellSource>> {
        let door = self.origin.mount(version.mount).await?;
        if door.mount.options.hot_form != HotForm::Table {
            return Ok(None);
        }
        Ok(match form {
            Some(form) => {
                form.check()?;
                self.learn(&form);
                Some(CellSource::text(version, form))
            }
            None => version.has_cells().then(|| CellSource::parquet(version)),
        })
    }
}
