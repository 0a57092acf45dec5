//! Reductions: folds of the elements of all ranks, or of those up to each rank.
//!
//! Both fold in the order of the ranks, from rank 0 on: `((x0 op x1) op x2) op ...`. So a result
//! is, bit for bit, that of a loop over the ranks, the same at every rank, in every run, for every
//! length.

use std::marker::PhantomData;

use bytemuck::Pod;
use talpf_runtime::Region;
use talpf_runtime::operator::Operator;

use super::LONG;
use super::member::Member;
use crate::all_gather::Call;
use crate::context::Context;
use crate::error::Error;
use crate::lane::Lane;
use crate::one_sided::OneSided;

/// A reduction of which all ranks get the result: each element is the fold of that element of all
/// ranks.
///
/// **Ordering**: folds in the order of the ranks, from rank 0 on, so the bits of a result are the
/// same at every rank and in every run, also of sums of floats. The operator need not be
/// commutative.
///
/// ```
/// use talpf::{Allreduce, Config, Error, exec};
/// use talpf_runtime::Array;
/// use talpf_runtime::operator::Sum;
///
/// // Numbers that grow by their sum over all ranks: once spawned, twice replayed.
/// let numbers = exec(Config { ranks: 3, ..Config::default() }, async |ctx| {
///     let number = Array::new(ctx.group(), vec![1u64; 1], 1)?;
///     let sum = Allreduce::new(&ctx, ctx.lane(1)?, 1, Sum).await?;
///     sum.run(&ctx, &number.all(), &number.all())?;
///     ctx.iterate(2, |step| sum.run(step, &number.all(), &number.all()))?;
///     let read = ctx.group().task("read").input(&number.all());
///     Ok::<_, Error>(read.run(|number| number[0])?.await?)
/// })?;
/// assert_eq!(numbers, [27; 3]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Allreduce<T: Pod + Send + Sync, O> {
    reduction: Reduction<T, O>,
}

impl<T: Pod + Send + Sync, O: Operator<T>> Allreduce<T, O> {
    /// Makes a reduction of `len` elements of each rank, which keeps `lane` and a slot until it is
    /// dropped. Collective: every rank gives the same arguments.
    ///
    /// **Errors**: those of [`Context::register_global`]; arguments that differ, which name the
    /// rank and both values; a lane of another rank. All ranks may go on then.
    pub async fn new(
        context: &Context,
        lane: Lane,
        len: usize,
        operator: O,
    ) -> Result<Self, Error> {
        let reduction = Reduction::new(context, Call::Allreduce, lane, len, operator).await?;
        Ok(Allreduce { reduction })
    }

    /// Declares a run in a scope, which reads `input` and writes `output`; both may be one region.
    /// The lane of the scope is not used. Ranks declare the runs of a collective in the same order.
    ///
    /// **Completion**: returns at once. Tasks that use the regions wait for the run by their
    /// dependencies; `input` is free once it is copied.
    /// **Errors**: regions of other lengths; a scope of another rank; as a spawn.
    pub fn run<'r>(
        &'r self,
        scope: &impl OneSided<'r>,
        input: &Region<'r, T>,
        output: &Region<'r, T>,
    ) -> Result<(), Error> {
        let last = self.reduction.member.ranks - 1;
        self.reduction.run(scope, (input, output), move |_| last)
    }
}

/// An inclusive scan: each rank gets the fold of the elements of the ranks up to itself.
///
/// **Ordering**: as [`Allreduce`], whose result is that of the last rank.
#[derive(Debug)]
pub struct Scan<T: Pod + Send + Sync, O> {
    reduction: Reduction<T, O>,
}

impl<T: Pod + Send + Sync, O: Operator<T>> Scan<T, O> {
    /// Makes a scan of `len` elements of each rank. Collective: every rank gives the same
    /// arguments.
    ///
    /// **Errors**: as [`Allreduce::new`].
    pub async fn new(
        context: &Context,
        lane: Lane,
        len: usize,
        operator: O,
    ) -> Result<Self, Error> {
        let reduction = Reduction::new(context, Call::Scan, lane, len, operator).await?;
        Ok(Scan { reduction })
    }

    /// Declares a run, which reads `input` and writes `output`; both may be one region.
    ///
    /// **Completion**, **Errors**: as [`Allreduce::run`].
    pub fn run<'r>(
        &'r self,
        scope: &impl OneSided<'r>,
        input: &Region<'r, T>,
        output: &Region<'r, T>,
    ) -> Result<(), Error> {
        self.reduction.run(scope, (input, output), |rank| rank)
    }
}

/// A reduction of which each rank gets the fold of the ranks up to one of them.
#[derive(Debug)]
struct Reduction<T: Pod + Send + Sync, O> {
    member: Member<T>,
    /// Number of elements of a block, if each rank folds a block.
    block: Option<usize>,
    operator: PhantomData<fn(O)>,
}

impl<T: Pod + Send + Sync, O: Operator<T>> Reduction<T, O> {
    async fn new(
        context: &Context,
        call: Call,
        lane: Lane,
        len: usize,
        _operator: O,
    ) -> Result<Self, Error> {
        let ranks = context.size() as usize;
        let is_long = len * ranks * size_of::<T>() > LONG && len >= ranks && ranks > 1;
        let block = is_long.then(|| len.div_ceil(ranks));
        let elements = |ranks| block.map_or(ranks * len, |block| len + ranks * block);
        let member = Member::new(context, call, (lane, len, None), elements).await?;
        Ok(Reduction { member, block, operator: PhantomData })
    }

    /// Declares a run, in which rank r gets the fold of the ranks up to `last(r)`.
    fn run<'r>(
        &'r self,
        scope: &impl OneSided<'r>,
        (input, output): (&Region<'r, T>, &Region<'r, T>),
        last: impl Fn(usize) -> usize,
    ) -> Result<(), Error> {
        let member = &self.member;
        member.check_length("input", input, member.len)?;
        member.check_length("output", output, member.len)?;
        if member.len == 0 {
            return Ok(());
        }
        let scope = &member.scope(scope)?;
        member.copy(scope, input, &member.part(0..member.len))?;
        match self.block {
            None => self.fold_gathered(scope, output, last(member.rank)),
            Some(block) => self.fold_blocks(scope, output, block, last),
        }
    }

    /// Declares the gather of all elements at all ranks, and their fold at each.
    fn fold_gathered<'r>(
        &'r self,
        scope: &impl OneSided<'r>,
        output: &Region<'r, T>,
        last: usize,
    ) -> Result<(), Error> {
        let Member { rank, ranks, len, .. } = self.member;
        self.member.gather_blocks(scope, len)?;
        let all = self.member.part(0..ranks * len);
        let task = self.member.task(scope, "reduce", ranks * len).input(&all).output(output);
        Ok(task.spawn(move |all, mut output| {
            let block = |of: usize| &all[(of + ranks - rank) % ranks * len..][..len];
            output.copy_from_slice(block(0));
            (1..=last).for_each(|of| combine::<T, O>(&mut output, block(of)));
        })?)
    }

    /// Declares the exchange of blocks, the fold of one block at each rank, and the exchange of the
    /// results. The array has the input, which the results replace, and then the block of this rank
    /// from every rank.
    fn fold_blocks<'r>(
        &'r self,
        scope: &impl OneSided<'r>,
        output: &Region<'r, T>,
        block: usize,
        last: impl Fn(usize) -> usize,
    ) -> Result<(), Error> {
        let member = &self.member;
        let Member { rank, ranks, len, .. } = *member;
        let of_input = |rank: usize| (rank * block).min(len)..((rank + 1) * block).min(len);
        let own = of_input(rank);
        let row = |rank: usize| len + rank * block..len + rank * block + own.len();
        for to in member.others() {
            let part = of_input(to);
            if !part.is_empty() {
                member.put(scope, part, (to, len + rank * block))?;
            }
        }
        let arrivals = if own.is_empty() { 0 } else { ranks - 1 };
        let rows = len..len + ranks * block;
        member.end_round(scope, arrivals, rows.clone())?;
        if !own.is_empty() {
            let (width, own_last) = (own.len(), last(rank));
            let task = member.task(scope, "reduce", ranks * width);
            let task = task.inout(&member.part(rows)).inout(&member.part(own.clone()));
            task.spawn(move |mut rows, mut own| {
                rows[rank * block..][..width].copy_from_slice(&own);
                for rank in 1..ranks {
                    let (before, row) = rows.split_at_mut(rank * block);
                    let before = &before[(rank - 1) * block..][..width];
                    combine_right::<T, O>(before, &mut row[..width]);
                }
                own.copy_from_slice(&rows[own_last * block..][..width]);
            })?;
            for to in member.others() {
                member.put(scope, row(last(to)), (to, own.start))?;
            }
        }
        let owners = member.others().filter(|rank| !of_input(*rank).is_empty()).count();
        member.end_round(scope, owners, 0..len)?;
        member.copy(scope, &member.part(0..len), output)
    }
}

/// `left = left op right`, element by element.
fn combine<T: Copy, O: Operator<T>>(left: &mut [T], right: &[T]) {
    left.iter_mut().zip(right).for_each(|(left, right)| O::combine(left, *right));
}

/// `right = left op right`, element by element.
fn combine_right<T: Copy, O: Operator<T>>(left: &[T], right: &mut [T]) {
    for (left, right) in left.iter().zip(right) {
        let mut folded = *left;
        O::combine(&mut folded, *right);
        *right = folded;
    }
}
