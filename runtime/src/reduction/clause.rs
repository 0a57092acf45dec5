//! The clauses that declare reductions.

use std::marker::PhantomData;
use std::sync::Arc;

use super::operator::Operator;
use super::{Contribution, Member, Reduction, Ticket};
use crate::data::{Mode, Region};
use crate::dependency::{Declared, Joins};
use crate::guard::Cursor;
use crate::task::{Append, Clause, IntoAccess, TaskBuilder};

/// A clause of one reduction access, handed to the body as a [`Reduction`].
pub struct Reduced<'a, T: 'static, D> {
    declared: Declared<'a>,
    contribution: Arc<dyn Contribution<T>>,
    marker: PhantomData<fn() -> D>,
}

impl<'a, T: Send + Sync + 'static, D> Reduced<'a, T, D> {
    fn new<O: Operator<T>>(region: &Region<'a, T, D>) -> Self {
        let declared = Declared::new(region, Mode::Reduction);
        Reduced { declared, contribution: Arc::new(Ticket::<T, O>::new()), marker: PhantomData }
    }
}

impl<'a, T: Send + Sync + 'static, D: 'static> Clause<'a> for Reduced<'a, T, D> {
    type Guard = Reduction<T, D>;
    type Shape = Member<T>;

    fn shape(&self) -> Member<T> {
        Member::new(&self.contribution)
    }

    fn count(&self) -> usize {
        1
    }

    fn declare(&self, each: &mut impl FnMut(&Declared<'a>)) {
        each(&self.declared);
    }

    fn joins(&self, _: usize) -> Option<&dyn Joins> {
        Some(&*self.contribution)
    }

    fn guard(member: Member<T>, cursor: &mut Cursor) -> Reduction<T, D> {
        Reduction::new(member, cursor.next_open())
    }

    fn fill(guard: &mut Reduction<T, D>) {
        guard.fill();
    }
}

/// A clause of several reduction accesses, handed to the body as a `Vec` of [`Reduction`]s.
pub struct ManyReduced<'a, T: 'static, D>(Vec<Reduced<'a, T, D>>);

impl<'a, T: Send + Sync + 'static, D: 'static> Clause<'a> for ManyReduced<'a, T, D> {
    type Guard = Vec<Reduction<T, D>>;
    type Shape = Vec<Member<T>>;

    fn shape(&self) -> Vec<Member<T>> {
        self.0.iter().map(Reduced::shape).collect()
    }

    fn count(&self) -> usize {
        self.0.len()
    }

    fn declare(&self, each: &mut impl FnMut(&Declared<'a>)) {
        self.0.iter().for_each(|reduced| reduced.declare(each));
    }

    fn joins(&self, nth: usize) -> Option<&dyn Joins> {
        self.0.get(nth)?.joins(0)
    }

    fn guard(members: Vec<Member<T>>, cursor: &mut Cursor) -> Vec<Reduction<T, D>> {
        members.into_iter().map(|member| Reduced::guard(member, cursor)).collect()
    }

    fn fill(guards: &mut Vec<Reduction<T, D>>) {
        guards.iter_mut().for_each(Reduction::fill);
    }
}

impl<'a, C, A, S> TaskBuilder<'a, C, A, S> {
    /// Declares that the task reduces values into a region, or several: it gets a private copy of
    /// each, and may run at the same time as other tasks that reduce into exactly this region with
    /// the same operator. All others are ordered before or after it, and see the region with every copy combined.
    ///
    /// If the operator is not associative and commutative, the result depends on the order of the
    /// tasks, unless the operator is [`InOrder`](crate::operator::InOrder).
    ///
    /// **Cost**: a copy for every worker that runs such a task, combined whenever none of them is
    /// open; one allocation a task and region.
    pub fn reduction<'r, X, O>(self, regions: X, _operator: O) -> TaskBuilder<'a, C::Longer, A, S>
    where
        X: IntoAccess<'r, Element: Send + Sync + 'static>,
        O: Operator<X::Element>,
        C: Append<ReductionClause<'r, X>>,
    {
        self.with(regions.into_clause(|region| Reduced::new::<O>(region), ManyReduced))
    }
}

/// The clause of regions `X` that are reduced.
type ReductionClause<'r, X> = <X as IntoAccess<'r>>::Clause<
    Reduced<'r, <X as IntoAccess<'r>>::Element, <X as IntoAccess<'r>>::Dim>,
    ManyReduced<'r, <X as IntoAccess<'r>>::Element, <X as IntoAccess<'r>>::Dim>,
>;
