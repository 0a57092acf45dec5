//! Sampled values: the latest value that one rank has written, for others, outside rounds.
//!
//! Each reader has three buffers in its memory. The writer fills one while the reader reads another;
//! both swap theirs for the third (`exchange.rs`). So neither waits, and no value is torn.
//!
//! ```text
//! in one process    SampleWriter ── copy, swap ──► buffers ◄── swap, copy ── SampleReader
//!
//! between two       SampleWriter ── put into the writer's buffer, its number ──► swap
//!                        ▲  a value that is written meanwhile waits,              │
//!                        │  in place of the one before                            │
//!                        └────────── number of the next buffer ◄──────────────────┘
//! ```
//!
//! Between processes the [`Arrivals`] of the reader swap for the writer, when its
//! notification comes, and answer with the buffer that is free then. The answer depends on no program:
//! a reader that takes no values has the latest one all the same. A writer has one put under way to
//! each reader, and keeps one value at most, in [`Outgoing`].
//!
//! **Threads.** An end is used by one thread at a time. The word of the exchange has one owner on each
//! side: the writer, or the table of notifications under its lock, and the reader.
//!
//! Deliberately absent: several writers, and a history.

mod arrivals;
mod buffers;
mod exchange;
mod message;
mod outgoing;
mod reader;
mod writer;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use bytemuck::Pod;
use talpf_runtime::Array;

use self::arrivals::Arrivals;
use self::buffers::Buffers;
use self::exchange::BUFFERS;
use self::outgoing::Outgoing;
use crate::all_gather::Call;
use crate::call_arguments::{CallArguments, sorted_ranks};
use crate::context::Context;
use crate::error::{EndError, Error};
use crate::numbers::Rank;
use crate::registration::Registration;
use crate::slot::Use;

pub use self::reader::SampleReader;
pub use self::writer::SampleWriter;

/// A value of one rank that others sample, at one rank: its writing end, a reading end, both or none.
/// Made by [`Context::sampled_value`].
///
/// ```
/// use futures::StreamExt;
/// use talpf::{Config, Context, Error, exec};
///
/// // Rank 0 writes the progress of its work; the others read it whenever they like.
/// let last = exec(Config { ranks: 3, ..Config::default() }, async |ctx: Context| {
///     let progress = ctx.sampled_value(0, 1..ctx.size(), [0u64; 2]).await?;
///     if let Some(mut writer) = progress.writer {
///         for step in 1..=100 {
///             writer.write([step, step * step])?;
///         }
///     }
///     let mut last = [0; 2];
///     if let Some(mut reader) = progress.reader {
///         let [step, square] = reader.latest();
///         assert_eq!(square, step * step);
///         while let Some(progress) = reader.next().await {
///             let [step, square] = progress?;
///             assert_eq!(square, step * step);
///         }
///         last = reader.latest();
///     }
///     Ok::<_, Error>(last)
/// })?;
/// assert_eq!(last[2], [100, 10_000]);
/// # Ok::<(), Error>(())
/// ```
///
/// **Source**: `Stream` of the runtime of the MPPA-256 (Dupont de Dinechin et al., 2013);
/// communication by sampling (Benveniste et al., 2007).
pub struct SampledValue<T: Pod + Send + Sync> {
    /// The writing end, at the writer.
    pub writer: Option<SampleWriter<T>>,
    /// The reading end, if this rank is a reader.
    pub reader: Option<SampleReader<T>>,
    rank: Rank,
}

impl<T: Pod + Send + Sync> SampledValue<T> {
    /// Takes the writing end.
    ///
    /// **Errors**: this rank is not the writer, or the end was taken.
    pub fn take_writer(&mut self) -> Result<SampleWriter<T>, Error> {
        self.writer.take().ok_or_else(|| self.has_no("writer of this sampled value"))
    }

    /// Takes the reading end.
    ///
    /// **Errors**: this rank is no reader, or the end was taken.
    pub fn take_reader(&mut self) -> Result<SampleReader<T>, Error> {
        self.reader.take().ok_or_else(|| self.has_no("reader of this sampled value"))
    }

    fn has_no(&self, end: &'static str) -> Error {
        Error::End(EndError::NoEnd { rank: self.rank, end })
    }
}

impl Context {
    /// Makes a value that `writer` writes and `readers` sample, which is `initial` at first. The
    /// writer may be a reader, too.
    ///
    /// Collective: every rank calls it with the same arguments, in the same order among its
    /// collective calls. Each reader begins with its own `initial`.
    ///
    /// **Completion**: all ranks have their ends.
    /// **Errors**: no such rank; no room for a slot ([`Context::resize_memory_register`]); arguments
    /// that differ, which names the rank and both values. All ranks have an error then.
    /// **Cost**: two exchanges between all ranks. At a reader three values, and a slot as long as the
    /// rank has an end; those of a reader that was dropped before its writer until the run ends.
    pub async fn sampled_value<T: Pod + Send + Sync>(
        &self,
        writer: impl Into<Rank>,
        readers: impl IntoIterator<Item = impl Into<Rank>>,
        initial: T,
    ) -> Result<SampledValue<T>, Error> {
        let (call, rank, writer) = (Call::SampledValue, self.rank(), writer.into());
        let notifications = self.notifications();
        let readers = sorted_ranks(readers, self.size());
        let checked = sorted_ranks([writer], self.size()).and(readers);
        let own = checked.map(|readers| {
            let arguments = CallArguments::new(call)
                .with("writer", writer.0.into())
                .with_item::<T>()
                .with_ranks("number of readers", "digest of the readers", &readers);
            // That of values here, and that of credits.
            let id = notifications.add_listener();
            notifications.add_listener();
            (arguments.to_bytes(id), (arguments, readers, id))
        });
        let ((arguments, readers, id), all) = self.world().all_gather(rank, call, own).await?;
        let ids = arguments.compare(&all)?;
        let is_reader = readers.binary_search(&rank).is_ok();
        let values = if is_reader { vec![initial; BUFFERS] } else { Vec::new() };
        let array = Array::new(self.group(), values, BUFFERS)?.named(call.name());
        let reader = is_reader.then(|| {
            let (buffers, back, front) = Buffers::new(array.clone());
            let credits = (writer, ids[writer.index()].wrapping_add(1));
            let arrivals = Arrivals::new(notifications, (buffers, back), credits, id);
            notifications.set_listener(id, Arc::<Arrivals<T>>::clone(&arrivals));
            (arrivals, front)
        });
        // Until the run ends if this fails: another rank may have failed in the call.
        let slot = self.register_if(Ok(()), &array, Use::Raw, call).await?;
        let registration = Registration::new(self.sender(), &slot.slot);
        let reader =
            reader.map(|(arrivals, front)| SampleReader::new(arrivals, front, &registration));
        let writer = (rank == writer).then(|| {
            let (mut direct, mut others) = (Vec::new(), Vec::new());
            for reader in readers {
                let there = ids[reader.index()];
                let known = notifications.direct(reader, there).and_then(|listener| {
                    let listener: Arc<dyn Any + Send + Sync> = listener;
                    let arrivals = listener.downcast::<Arrivals<T>>().ok()?;
                    let back = arrivals.take_back()?;
                    Some((arrivals, back))
                });
                match known {
                    Some(known) => direct.push(known),
                    None => others.push((reader, there)),
                }
            }
            let memory = (&slot, &registration);
            let outgoing = Outgoing::new(notifications, memory, id + 1, others);
            if !outgoing.is_empty() {
                notifications.set_listener(id + 1, Arc::<Outgoing<T>>::clone(&outgoing));
            }
            SampleWriter::new(notifications, direct, outgoing)
        });
        Ok(SampledValue { writer, reader, rank })
    }
}

impl<T: Pod + Send + Sync> fmt::Debug for SampledValue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ends = [self.writer.is_some(), self.reader.is_some()];
        write!(f, "SampledValue (writer, reader: {ends:?})")
    }
}
