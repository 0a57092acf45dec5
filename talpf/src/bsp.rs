//! Plain BSP: supersteps in which operations are only queued, and whose end opens every slot.
//!
//! A superstep takes two rounds of lane 0: in the first one every slot is exposed to gets, in the second one every
//! slot is a window for puts. So gets read what was there before any put. What a put reads is copied as the
//! superstep ends, and what a get reads is copied to its place between the rounds: no operation holds a region
//! while a window waits for it, and ranks may put whole arrays in a circle.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytemuck::Pod;
use smallvec::SmallVec;
use talpf_runtime::{Array, In, JoinHandle, Out, Region};

use crate::endpoint::INLINE_BYTES;
use crate::error::Error;
use crate::lane::Lane;
use crate::slot::{KeptRemote, RemoteRegion};
use crate::sync::SyncMode;
use crate::window::Kind;

/// Supersteps of the context of a rank, as in LPF: [`put`](Bsp::put) and [`get`](Bsp::get) queue, and
/// [`sync`](Bsp::sync) carries out. Made by
/// [`Context::bsp`](crate::Context::bsp). Arrays live for `'r`.
///
/// Operations of the context itself belong to the rounds of lane 0 that a superstep takes.
///
/// ```
/// use talpf::{Config, Error, exec};
/// use talpf_runtime::Array;
///
/// // Every rank passes its array on to the next one, and keeps what its own was.
/// let ends = exec(Config { ranks: 3, ..Config::default() }, async |ctx| {
///     let numbers = Array::new(ctx.group(), vec![ctx.rank().0; 1000], 1000)?;
///     let before = Array::new(ctx.group(), vec![0; 1000], 1000)?;
///     let slot = ctx.register_global(&numbers).await?;
///     let mut bsp = ctx.bsp();
///     bsp.put(&numbers.all(), slot.at((ctx.rank().0 + 1) % ctx.size(), 0))?;
///     bsp.get(slot.at(ctx.rank(), 0), &before.all())?;
///     bsp.sync().await?;
///     let read = ctx.group().task("read").input(&numbers.all()).input(&before.all());
///     Ok::<_, Error>(read.run(|numbers, before| (numbers[999], before[0]))?.await?)
/// })?;
/// assert_eq!(ends, [(2, 0), (0, 1), (1, 2)]);
/// # Ok::<(), Error>(())
/// ```
#[must_use = "operations are carried out by a sync"]
pub struct Bsp<'r> {
    lane: Lane,
    queued: Vec<Box<dyn Queued + 'r>>,
}

impl<'r> Bsp<'r> {
    pub(crate) fn new(lane: Lane) -> Self {
        Bsp { lane, queued: Vec::new() }
    }

    /// Queues a put of `from` to a region of a slot of
    /// [`register_global`](crate::Context::register_global).
    ///
    /// **Completion**: the next sync, which reads `from`.
    /// **Errors**: a full queue, which has room for as many operations as
    /// [`Context::resize_message_queue`](crate::Context::resize_message_queue) says; then nothing
    /// has changed, and the program may resize it.
    pub fn put<T, D>(
        &mut self,
        from: &Region<'r, T, D>,
        to: RemoteRegion<'_, T>,
    ) -> Result<(), Error>
    where
        T: Pod + Send + Sync,
        D: Send + Sync + 'static,
    {
        self.queue(Put { from: *from, to: KeptRemote::new(&to), copy: PutCopy::None })
    }

    /// Queues a get of a region of a slot of [`register_global`](crate::Context::register_global) into `to`.
    ///
    /// **Completion**, **Errors**: as [`Bsp::put`].
    pub fn get<T, D>(
        &mut self,
        from: RemoteRegion<'_, T>,
        to: &Region<'r, T, D>,
    ) -> Result<(), Error>
    where
        T: Pod + Send + Sync,
        D: Send + Sync + 'static,
    {
        self.queue(Get { from: KeptRemote::new(&from), to: *to, copy: None })
    }

    fn queue(&mut self, operation: impl Queued + 'r) -> Result<(), Error> {
        let limit = self.lane.at.sender().open_rounds.limit();
        if self.queued.len() >= limit as usize {
            let (value, limit) = (self.queued.len() as u64 + 1, u64::from(limit));
            return Err(Error::Limit { what: "number of queued operations", value, limit });
        }
        self.queued.push(Box::new(operation));
        Ok(())
    }

    /// Returns the number of queued operations.
    pub fn queued(&self) -> usize {
        self.queued.len()
    }

    /// Ends the superstep: carries out what all ranks have queued. All ranks call it.
    ///
    /// **Ordering**: gets read what was there before the puts; puts that overlap leave what some order of them
    /// leaves.
    /// **Completion**: all operations of this rank, and all that reach its slots; the queue is empty.
    /// **Errors**: an operation on elements that do not exist, a rank that failed. Each of them fails the run.
    /// **Cost**: two syncs with all slots as windows, and a copy of each operation.
    pub async fn sync(&mut self) -> Result<(), Error> {
        let mut queued = std::mem::take(&mut self.queued);
        queued.iter_mut().try_for_each(|operation| operation.begin(&self.lane))?;
        self.round(Kind::Read).await?;
        for operation in &mut queued {
            poll_fn(|cx| operation.poll_read(cx)).await?;
        }
        queued.iter_mut().try_for_each(|operation| operation.end(&self.lane))?;
        self.round(Kind::Write).await
    }

    /// Ends a round in which every slot is opened.
    async fn round(&self, kind: Kind) -> Result<(), Error> {
        let slots = self.lane.at.sender().slots.windows();
        let ended = {
            let sync = self.lane.sync(SyncMode::DEFAULT);
            slots.iter().fold(sync, |sync, slot| sync.open_whole(kind, slot.whole())).spawn()?
        };
        ended.await
    }
}

/// Operation that is queued.
trait Queued: Send + Sync {
    /// Begins the operation, before gets read.
    fn begin(&mut self, lane: &Lane) -> Result<(), Error>;

    /// Waits until the program's tasks may go on without what `end` needs.
    fn poll_read(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    /// Ends the operation, before puts are written.
    fn end(&mut self, lane: &Lane) -> Result<(), Error>;
}

/// Queued put.
struct Put<'r, T, D> {
    from: Region<'r, T, D>,
    to: KeptRemote<T>,
    copy: PutCopy<T>,
}

/// Copy of what a put has read.
enum PutCopy<T> {
    None,
    /// A few elements, which are being read.
    Reading(JoinHandle<Few<T>>),
    /// A few elements.
    Few(Few<T>),
    Many(Array<T>),
}

/// As many elements as a request carries itself.
type Few<T> = SmallVec<[T; 4]>;

impl<T: Pod + Send + Sync, D: Send + Sync + 'static> Queued for Put<'_, T, D> {
    fn begin(&mut self, lane: &Lane) -> Result<(), Error> {
        let task = lane.group().task("copy").input(&self.from);
        let longest = INLINE_BYTES.min(lane.at.sender().own.endpoint.max_transfer);
        if self.from.len().saturating_mul(size_of::<T>()) <= longest {
            let task = task.inline();
            let copy = |from: In<T, D>| from.row_slices().flatten().copied().collect();
            self.copy = PutCopy::Reading(task.run(copy)?);
            return Ok(());
        }
        let copy = array_like(lane, &self.from)?;
        let cols = self.from.rect().cols().max(1);
        task.output(&copy.all()).spawn(move |from: In<T, D>, mut to: Out<T>| {
            let rows = from.row_slices().zip(to.chunks_mut(cols));
            rows.for_each(|(from, to)| to.copy_from_slice(from));
        })?;
        self.copy = PutCopy::Many(copy);
        Ok(())
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if let PutCopy::Reading(reading) = &mut self.copy {
            self.copy = PutCopy::Few(ready!(Pin::new(reading).poll(cx))?);
        }
        Poll::Ready(Ok(()))
    }

    fn end(&mut self, lane: &Lane) -> Result<(), Error> {
        match &self.copy {
            PutCopy::Few(values) => drop(lane.round().put_copy(values, self.to.region())),
            PutCopy::Many(copy) => lane.put(&copy.all(), self.to.region())?,
            PutCopy::None | PutCopy::Reading(_) => {}
        }
        Ok(())
    }
}

/// Queued get.
struct Get<'r, T, D> {
    from: KeptRemote<T>,
    to: Region<'r, T, D>,
    /// Copy of what the operation has read.
    copy: Option<Array<T>>,
}

impl<T: Pod + Send + Sync, D: Send + Sync + 'static> Queued for Get<'_, T, D> {
    fn begin(&mut self, lane: &Lane) -> Result<(), Error> {
        let copy = array_like(lane, &self.to)?;
        lane.get(self.from.region(), &copy.all())?;
        self.copy = Some(copy);
        Ok(())
    }

    fn end(&mut self, lane: &Lane) -> Result<(), Error> {
        let Some(copy) = &self.copy else { return Ok(()) };
        let cols = self.to.rect().cols().max(1);
        let task = lane.group().task("copy").input(&copy.all()).output(&self.to);
        Ok(task.spawn(move |from: In<T>, mut to: Out<T, D>| {
            let rows = from.chunks(cols).zip(to.row_slices_mut());
            rows.for_each(|(from, to)| to.copy_from_slice(from));
        })?)
    }
}

/// Makes an array as long as a region.
fn array_like<T: Pod + Send + Sync, D>(
    lane: &Lane,
    region: &Region<'_, T, D>,
) -> Result<Array<T>, Error> {
    region.check()?;
    let len = region.len();
    Ok(Array::new(lane.group(), vec![T::zeroed(); len], len.max(1))?)
}
