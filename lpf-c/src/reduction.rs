//! Reductions over processes, whose results are there after the next sync.
//!
//! Each process puts a copy of its element, or of its array, into its queue. During the sync those who want the
//! result read the copies of all, and fold them in the order of the processes: all get the same bits.
#![allow(unsafe_code, reason = "operators of the program")]

use std::ffi::c_void;

use talpf_primitives::assert_nothing_held;

use crate::error::Result;
use crate::memory::Address;
use crate::misuse::Misuse;
use crate::scratch::Scratch;
use crate::selection::Selection;

/// Function of the program that folds `n` elements into a value.
pub(crate) type Reducer = unsafe extern "C" fn(n: usize, array: *const c_void, value: *mut c_void);

/// Function of the program that combines `n` elements with as many others.
pub(crate) type Combiner =
    unsafe extern "C" fn(n: usize, combine: *const c_void, into: *mut c_void);

/// Operator of the program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operator {
    Reduce(Reducer),
    /// For so many elements.
    Combine(Combiner, usize),
}

/// Call of a collective, named alike on all processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) selection: Selection,
    /// Number of the collective among those of its selection.
    pub(crate) collective: u32,
    /// Number of the call in its superstep.
    pub(crate) call: u32,
}

/// Contribution of a process to a reduction.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) call: Call,
    pub(crate) bytes: Scratch,
}

/// Reduction whose result this process wants.
#[derive(Debug)]
pub(crate) struct Reduction {
    pub(crate) call: Call,
    pub(crate) operator: Operator,
    pub(crate) result: Address,
}

impl Reduction {
    /// Folds the contributions of all processes, in their order, and writes the result.
    pub(crate) fn carry_out<'s>(
        &self,
        snapshots: impl Fn(usize) -> Option<&'s Snapshot>,
    ) -> std::result::Result<(), Misuse> {
        let selection = self.call.selection;
        let snapshot = |index| snapshots(selection.pid(index)).ok_or(Misuse::CollectiveMismatch);
        let first = &snapshot(0)?.bytes;
        let others: Vec<&Scratch> = (1..selection.size())
            .map(|index| snapshot(index).map(|snapshot| &snapshot.bytes))
            .collect::<std::result::Result<_, _>>()?;
        if others.iter().any(|other| other.size() != first.size()) {
            return Err(Misuse::CollectiveMismatch);
        }
        let mut value = Scratch::default();
        fits(value.reset(first.size()));
        value.append_scratch(first);
        assert_nothing_held("an operator of the program");
        match self.operator {
            Operator::Reduce(reducer) if !others.is_empty() => {
                let mut array = Scratch::default();
                fits(array.reset(first.size() * others.len()));
                others.iter().for_each(|other| array.append_scratch(other));
                let value = value.as_mut_ptr().cast();
                // SAFETY: The operator is one of the program, for elements of this size.
                unsafe { reducer(others.len(), array.as_ptr().cast(), value) };
            }
            Operator::Reduce(_) => {}
            Operator::Combine(combiner, elements) => {
                for other in others {
                    let value = value.as_mut_ptr().cast();
                    // SAFETY: The operator is one of the program, for arrays of this size.
                    unsafe { combiner(elements, other.as_ptr().cast(), value) };
                }
            }
        }
        // SAFETY: The program has passed memory of that size for the result, valid until the sync has ended.
        unsafe { value.write_to(self.result) };
        Ok(())
    }
}

/// Expects memory for what was there before in another process.
fn fits(result: Result<()>) {
    result.expect("memory for the elements of a reduction");
}
