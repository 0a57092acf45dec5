//! End of a run with a tolerance: the rule that all variants follow, so that they end after the
//! same step.
//!
//! The steps are cut into *periods* of [`PERIOD`] steps, the last of which may be shorter. The
//! *residual* of a period is the largest absolute change of a cell in its last step. A run ends with
//! the first period that follows one whose residual is at most the tolerance, or with the last step
//! of the problem. So the ranks have a period of steps to spawn while they find out the residual of
//! the period before, and none of them waits for it if the others are less than a period behind.

use std::ops::Range;

use ndarray::ArrayView2;
use parking_lot::Mutex;
use pulp::Arch;

use super::Problem;

/// Number of steps between two residuals, and from a residual to the end that it causes. Even, so
/// that matrices that alternate do so across periods. In Gauss-Seidel rank 0 is half a step ahead
/// for each other rank, so a period is enough for 32 ranks.
pub(crate) const PERIOD: usize = 16;

/// End of a run with a tolerance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Convergence {
    /// Number of steps that were computed.
    pub steps: usize,
    /// Largest absolute change of a cell in the last step.
    pub residual: f64,
}

/// Periods of a run.
pub(crate) struct Periods {
    tolerance: Option<f64>,
    /// Number of steps after which the run ends.
    limit: usize,
    /// Period that has begun last.
    period: Range<usize>,
}

impl Problem {
    /// Returns the periods of a run; without a tolerance it is one period, without a residual.
    pub(crate) fn periods(&self) -> Periods {
        Periods { tolerance: self.tolerance(), limit: self.steps(), period: 0..0 }
    }
}

impl Periods {
    /// Begins the next period, if there is one, and returns its steps.
    pub(crate) fn begin(&mut self) -> Option<Range<usize>> {
        let first = self.period.end;
        let most = if self.tolerance.is_some() { PERIOD } else { self.limit };
        let end = self.limit.min(first + most);
        (first < end).then(|| {
            self.period = first..end;
            first..end
        })
    }

    /// Returns `true` if the periods have residuals.
    pub(crate) fn have_residuals(&self) -> bool {
        self.tolerance.is_some()
    }

    /// Returns `true` if the residual of the period before decides if the run ends with the period
    /// that has begun.
    pub(crate) fn may_end(&self) -> bool {
        self.have_residuals() && self.period.start > 0 && self.period.end < self.limit
    }

    /// Lets the run end with the period that has begun, if `residual`, that of the period before,
    /// is at most the tolerance.
    pub(crate) fn end_if_small(&mut self, residual: f64) {
        if self.tolerance.is_some_and(|tolerance| residual <= tolerance) {
            self.limit = self.period.end;
        }
    }

    /// Returns the number of steps of the periods that have begun.
    pub(crate) fn steps(&self) -> usize {
        self.period.end
    }
}

impl Convergence {
    /// Appends the end of a run with a tolerance to the cells of a rank.
    pub(crate) fn append(end: Option<Self>, mut cells: Vec<f64>) -> Vec<f64> {
        // A number of steps is below 2^53.
        cells.extend(end.iter().flat_map(|end| [end.steps as f64, end.residual]));
        cells
    }

    /// Takes the end of a run from the cells of a rank, where [`Convergence::append`] left it.
    pub(super) fn take_from(cells: &mut Vec<f64>) -> Option<Self> {
        let [steps, residual] = *cells.last_chunk()?;
        cells.truncate(cells.len() - 2);
        Some(Self { steps: steps as usize, residual })
    }
}

/// Largest changes in the parts of the workers of a team, for the last two periods.
pub(crate) struct TeamChanges {
    changes: [Vec<Mutex<f64>>; 2],
}

impl TeamChanges {
    pub(crate) fn new(workers: usize) -> Self {
        let changes = || (0..workers).map(|_| Mutex::default()).collect();
        Self { changes: [changes(), changes()] }
    }

    /// Ends a period of `worker` in which its cells have changed by `change`, and decides about the
    /// end of the run. The team has a barrier in every period, before this call.
    ///
    /// A change is written after the last barrier of its period, and read after that of the next
    /// one; it is replaced after one more.
    pub(crate) fn end_period(&self, periods: &mut Periods, worker: usize, change: f64) {
        let [newest, before] = self.slots(periods);
        *newest[worker].lock() = change;
        if periods.may_end() {
            periods.end_if_small(largest(before));
        }
    }

    /// Returns the end of the run, if it has a tolerance, once all workers have ended.
    pub(crate) fn convergence(&self, periods: &Periods) -> Option<Convergence> {
        let [newest, _] = self.slots(periods);
        let end = || Convergence { steps: periods.steps(), residual: largest(newest) };
        periods.have_residuals().then(end)
    }

    /// Returns the changes of the period that has begun, and of the period before.
    fn slots(&self, periods: &Periods) -> [&[Mutex<f64>]; 2] {
        let newest = periods.period.start / PERIOD % 2;
        [&self.changes[newest], &self.changes[1 - newest]]
    }
}

fn largest(changes: &[Mutex<f64>]) -> f64 {
    changes.iter().map(|change| *change.lock()).fold(0.0, f64::max)
}

/// Returns the largest absolute difference of two cells at the same position; 0 without cells.
///
/// **Panics** if the shapes differ, or the cells of a row are not adjacent.
pub(crate) fn largest_change(old: ArrayView2<'_, f64>, new: ArrayView2<'_, f64>) -> f64 {
    assert_eq!(old.dim(), new.dim(), "the shapes are equal");
    Arch::new().dispatch(|| {
        old.rows().into_iter().zip(new.rows()).fold(0.0, |largest: f64, (old, new)| {
            let [old, new] = [old, new].map(|row| row.to_slice().expect("adjacent cells"));
            largest.max(largest_of_row(old, new))
        })
    })
}

/// Number of maxima that are kept side by side, so that they fill vectors.
const MAXIMA: usize = 32;

#[inline(always)]
fn largest_of_row(old: &[f64], new: &[f64]) -> f64 {
    let keep_larger = |largest: &mut f64, old: &f64, new: &f64| {
        let change = (new - old).abs();
        *largest = if change > *largest { change } else { *largest };
    };
    let mut largest = [0.0; MAXIMA];
    let (old_chunks, old_rest) = old.as_chunks::<MAXIMA>();
    let (new_chunks, new_rest) = new.as_chunks::<MAXIMA>();
    for (old, new) in old_chunks.iter().zip(new_chunks) {
        for index in 0..MAXIMA {
            keep_larger(&mut largest[index], &old[index], &new[index]);
        }
    }
    for (largest, (old, new)) in largest.iter_mut().zip(old_rest.iter().zip(new_rest)) {
        keep_larger(largest, old, new);
    }
    largest.into_iter().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Matrix;
    use crate::heat::default_sources;

    /// Returns the steps of a run of at most `limit` whose residuals halve from 1 on.
    fn steps(limit: usize, tolerance: Option<f64>) -> usize {
        let problem = Problem::new(1, 1, 1, limit, default_sources()).unwrap();
        let mut periods = problem.until(tolerance).unwrap().periods();
        let mut before = 2.0;
        while periods.begin().is_some() {
            if periods.may_end() {
                periods.end_if_small(before);
            }
            before /= 2.0;
        }
        periods.steps()
    }

    #[test]
    fn a_run_ends_a_period_after_the_residual_was_small() {
        assert_eq!(steps(1000, Some(1.0)), 2 * PERIOD);
        assert_eq!(steps(1000, Some(0.99)), 3 * PERIOD);
        assert_eq!(steps(1000, Some(0.5)), 3 * PERIOD);
        assert_eq!(steps(1000, Some(0.25)), 4 * PERIOD);
    }

    #[test]
    fn a_run_ends_with_its_last_step_at_the_latest() {
        for limit in [1, PERIOD - 1, PERIOD, PERIOD + 1, 2 * PERIOD, 100] {
            assert_eq!(steps(limit, Some(0.0)), limit);
            assert_eq!(steps(limit, None), limit);
        }
        assert_eq!(steps(2 * PERIOD - 1, Some(1.0)), 2 * PERIOD - 1);
    }

    #[test]
    fn a_tolerance_is_a_number_of_at_least_0() {
        let until =
            |tolerance| Problem::new(1, 1, 1, 1, default_sources()).unwrap().until(Some(tolerance));
        for good in [0.0, -0.0, 1e-300, 1e300] {
            assert!(until(good).is_ok());
        }
        for (bad, text) in
            [(-1.0, "-1.0"), (-1e-300, "-1e-300"), (f64::NAN, "NaN"), (f64::INFINITY, "inf")]
        {
            let error = until(bad).unwrap_err().to_string();
            assert_eq!(error, format!("tolerance is {text}, expected a number of at least 0"));
        }
    }

    #[test]
    fn the_largest_change_is_found_wherever_it_is() {
        for cols in [1, 2, MAXIMA - 1, MAXIMA, MAXIMA + 1, 100] {
            for cell in 0..3 * cols {
                let old = Matrix::from_cells(vec![1.0; 3 * cols], cols);
                let mut cells = vec![1.25; 3 * cols];
                cells[cell] = -2.0;
                let new = Matrix::from_cells(cells, cols);
                assert_eq!(largest_change(old.view(), new.view()), 3.0);
            }
        }
        let none = Matrix::zeros(0, 3);
        assert_eq!(largest_change(none.view(), none.view()), 0.0);
    }
}
