//! Reads, and how the worker stands when they are answered.

use std::sync::Arc;

use forebay_protocol::{DataReply, Hint, RangeSpec, SelectedRows, Span, WantedRows, encode};
use forebay_transport::{Response, Sent};
use forebay_types::{Cell, Key, MountId, ObjectVersion, Result, TextForm};

use super::{WorkerSession, reply};
use crate::read::{Answer, Current, Reader, WantedObject};
use crate::signals::Queued;

impl WorkerSession {
    pub(super) async fn read(&self, reader: Reader<'_>, version: &ObjectVersion, start: u64, len: u32) -> Result<Response> {
        let mut queued = self.rooms.signals.load.begin();
        let read = self.rooms.reads.version(reader, version, start, len).await?;
        let hint = self.turn(&mut queued, &read).await;
        Ok(with_answer(read, queued, |in_place| DataReply::Read { in_place, hint }))
    }

    pub(super) async fn read_latest(&self, reader: Reader<'_>, mount: MountId, key: &Key, range: RangeSpec) -> Result<Response> {
        let mut queued = self.rooms.signals.load.begin();
        let wanted = WantedObject { range, first: u32::MAX, attributes: None };
        let Current { info, start, len, answer, .. } = self.rooms.reads.current(reader, mount, key, wanted).await?;
        let hint = self.turn(&mut queued, &answer).await;
        Ok(with_answer(answer, queued, |in_place| DataReply::ReadLatest { info, start, len, in_place, hint }))
    }

    pub(super) async fn read_object(
        &self,
        reader: Reader<'_>,
        mount: MountId,
        key: &Key,
        wanted: WantedObject,
    ) -> Result<Response> {
        let mut queued = self.rooms.signals.load.begin();
        let Current { info, attributes, start, len, answer } = self.rooms.reads.current(reader, mount, key, wanted).await?;
        let (hint, hit) = (self.turn(&mut queued, &answer).await, answer.hit);
        let attributes = attributes.unwrap_or_default();
        Ok(with_answer(answer, queued, |in_place| DataReply::ReadObject { info, attributes, start, len, in_place, hint, hit }))
    }

    pub(super) async fn read_cell(
        &self,
        reader: Reader<'_>,
        version: ObjectVersion,
        form: Option<Arc<TextForm>>,
        cell: Cell,
    ) -> Result<Response> {
        let mut queued = self.rooms.signals.load.begin();
        Ok(match self.rooms.forms.read_cell(reader, version, form, cell).await? {
            Some(read) => {
                let hint = self.turn(&mut queued, &read).await;
                with_answer(read, queued, |in_place| DataReply::Read { in_place, hint })
            }
            None => reply(DataReply::NoCell { hint: self.turn(&mut queued, &Answer::default()).await }),
        })
    }

    pub(super) async fn select_rows(&self, wanted: WantedRows) -> Result<Response> {
        let mut queued = self.rooms.signals.load.begin();
        let Some(sending) = self.rooms.forms.select_rows(wanted).await? else {
            return Ok(reply(DataReply::NoCell { hint: self.turn(&mut queued, &Answer::default()).await }));
        };
        let (rows, fits, packed) = (sending.rows, sending.payload.is_some(), sending.packed);
        let answer = Answer { payload: sending.payload.into_iter().collect(), hit: true, ..Answer::default() };
        let hint = self.turn(&mut queued, &answer).await;
        Ok(with_answer(answer, queued, |_| DataReply::Selected(SelectedRows { rows, fits, hint, packed })))
    }

    /// Waits for an answer's turn to be sent; says how the worker stands then.
    async fn turn(&self, queued: &mut Queued, answer: &Answer) -> Hint {
        let signals = &self.rooms.signals;
        queued.found(answer.hit);
        queued.sends(signals.send(&answer.payload).await);
        Hint { queue: signals.load.queue().saturating_sub(1), routes: self.rooms.cluster.routes().version() }
    }
}

/// The read is under way until all of it is sent; one in place is over with its message.
fn with_answer(mut answer: Answer, mut queued: Queued, reply: impl FnOnce(Option<(u64, Span)>) -> DataReply) -> Response {
    queued.reads(answer.under_way.take());
    let sent = (!answer.payload.is_empty()).then(|| Box::new(queued) as Box<dyn Sent>);
    Response { meta: encode(&reply(answer.in_place)), payload: answer.payload, sent, ..Response::default() }
}
