//! Transfers: bytes of this process that peers read, and the pieces of them that were announced.
//!
//! A transfer has ended once no further piece is announced, and all pieces were answered.

use std::collections::VecDeque;

use super::{
    blocks::{BLOCKS, Blocks, Span},
    packet::Control,
};
use crate::CompletionStatus;

/// Transfers that have not ended, and the blocks that their pieces have.
pub(super) struct Transfers {
    pub(super) blocks: Blocks,
    /// Announcements that were not answered, by their first blocks.
    announced: Box<[Option<Announced>]>,
    /// Transfers, by number.
    all: Vec<Option<Transfer>>,
    /// Numbers of transfers that can be used again.
    free: Vec<u32>,
    /// Frames for which there was no room, the oldest first.
    pub(super) unsent: VecDeque<(u32, Control)>,
    /// Contexts and statuses of writes that have ended.
    pub(super) ended: Vec<(u64, CompletionStatus)>,
}

/// A piece that the peer was sent an announcement of.
#[derive(Clone, Copy)]
struct Announced {
    to: u32,
    transfer: u32,
    span: Span,
}

/// A transfer that has not ended.
struct Transfer {
    to: u32,
    purpose: Purpose,
    /// Pieces that were not answered.
    pieces: u32,
    /// Set once no further piece is announced.
    is_announced: bool,
    /// Status of the first piece that was refused.
    status: CompletionStatus,
}

/// Purpose of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A write with this context.
    Write(u64),
    /// A write whose end nobody wants to know.
    Cancelled,
    /// The answer to a read of the peer with this number.
    Read(u32),
}

impl Transfers {
    pub(super) fn new(processes: usize) -> Self {
        Self {
            blocks: Blocks::new(processes),
            announced: vec![None; BLOCKS].into_boxed_slice(),
            all: Vec::new(),
            free: Vec::new(),
            unsent: VecDeque::with_capacity(BLOCKS),
            ended: Vec::new(),
        }
    }

    /// Returns the number of transfers to a process with some purposes.
    pub(super) fn count(&self, to: u32, is_counted: impl Fn(Purpose) -> bool) -> usize {
        let all = self.all.iter().flatten();
        all.filter(|transfer| transfer.to == to && is_counted(transfer.purpose)).count()
    }

    pub(super) fn find(&self, to: u32, context: u64) -> Option<u32> {
        let is_it = |transfer: &Option<Transfer>| {
            let it = transfer.as_ref();
            it.is_some_and(|it| it.to == to && it.purpose == Purpose::Write(context))
        };
        self.all.iter().position(is_it).map(|number| number as u32)
    }

    pub(super) fn begin(&mut self, to: u32, purpose: Purpose) -> u32 {
        let (status, pieces, is_announced) = (CompletionStatus::Success, 0, false);
        let transfer = Some(Transfer { to, purpose, pieces, is_announced, status });
        if let Some(number) = self.free.pop() {
            self.all[number as usize] = transfer;
            return number;
        }
        self.all.push(transfer);
        self.all.len() as u32 - 1
    }

    fn of(&mut self, number: u32) -> Option<&mut Transfer> {
        self.all.get_mut(number as usize)?.as_mut()
    }

    /// Notes a piece that is announced.
    pub(super) fn announce(&mut self, number: u32, span: Span, is_last: bool) {
        let Some(transfer) = self.of(number) else { return };
        transfer.pieces += 1;
        transfer.is_announced = is_last;
        let to = transfer.to;
        self.announced[span.first as usize] = Some(Announced { to, transfer: number, span });
    }

    pub(super) fn is_announced(&self, number: u32) -> bool {
        self.all[number as usize].as_ref().is_none_or(|transfer| transfer.is_announced)
    }

    /// Notes that a piece was refused, or was not.
    pub(super) fn refuse(&mut self, number: u32, status: CompletionStatus) {
        if let Some(transfer) = self.of(number)
            && transfer.status == CompletionStatus::Success
        {
            transfer.status = status;
        }
    }

    /// Returns `true` if no further piece of a transfer is to be announced.
    pub(super) fn is_stopped(&self, number: u32) -> bool {
        let transfer = self.all[number as usize].as_ref();
        transfer.is_none_or(|transfer| transfer.status != CompletionStatus::Success)
    }

    /// Ends the announcements of a transfer that was refused. Its reader learns that no further piece comes.
    pub(super) fn stop(&mut self, number: u32) {
        let Some(transfer) = self.of(number) else { return };
        transfer.is_announced = true;
        if let Purpose::Read(read) = transfer.purpose {
            let refusal = (transfer.to, Control::ReadRefused { read });
            self.unsent.push_back(refusal);
        }
    }

    /// Ends those of some transfers of which all was answered.
    pub(super) fn end_announced(&mut self, is_one: impl Fn(u32) -> bool) {
        for (number, place) in (0..).zip(&mut self.all) {
            if !is_one(number) {
                continue;
            }
            let is_over = |transfer: &mut Transfer| transfer.is_announced && transfer.pieces == 0;
            let Some(ended) = place.take_if(is_over) else { continue };
            self.free.push(number);
            if let Purpose::Write(context) = ended.purpose {
                self.ended.push((context, ended.status));
            }
        }
    }

    /// Takes the answer to a piece. Returns `false` if there is none to this process.
    pub(super) fn answer(&mut self, from: u32, block: u32, status: CompletionStatus) -> bool {
        let place = self.announced.get_mut(block as usize);
        let answered = place.and_then(|place| place.take_if(|announced| announced.to == from));
        let Some(Announced { transfer, span, .. }) = answered else { return false };
        self.blocks.give_back(from, span);
        self.refuse(transfer, status);
        if let Some(transfer) = self.of(transfer) {
            transfer.pieces -= 1;
        }
        self.end_announced(|number| number == transfer);
        true
    }

    /// Forgets a write, of which no further piece is announced.
    pub(super) fn cancel(&mut self, number: u32) {
        if let Some(transfer) = self.of(number) {
            (transfer.purpose, transfer.is_announced) = (Purpose::Cancelled, true);
        }
        self.end_announced(|transfer| transfer == number);
    }

    /// Ends all transfers to a process that is lost, and passes the contexts of writes to `sink`. `is_gone` if it
    /// reads no more.
    pub(super) fn lose(&mut self, process: u32, is_gone: bool, mut sink: impl FnMut(u64)) {
        self.unsent.retain(|(to, _)| *to != process);
        for place in &mut self.announced {
            match place.take_if(|announced| announced.to == process) {
                // Who is silent may go on, and would read the bytes of a later announcement as those of this
                // one.
                Some(Announced { span, .. }) if !is_gone => self.blocks.give_up(process, span),
                Some(Announced { span, .. }) => self.blocks.give_back(process, span),
                None => {}
            }
        }
        for (number, place) in (0..).zip(&mut self.all) {
            let Some(lost) = place.take_if(|transfer| transfer.to == process) else { continue };
            self.free.push(number);
            if let Purpose::Write(context) = lost.purpose {
                sink(context);
            }
        }
    }
}
