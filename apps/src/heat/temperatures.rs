//! Result of a heat problem.

use std::ops::Deref;

use super::{Border, Convergence, Problem};
use crate::matrix::Matrix;
use crate::run::{Machine, Measure, Outcome};
use talpf::Decomposition;

/// Temperatures after the last step: the cells with their border (`(rows + 2) x (cols + 2)`), to
/// which it dereferences, and the end of a run with a tolerance.
#[derive(Clone, Debug)]
pub struct Temperatures {
    /// Cells with their border.
    pub matrix: Matrix,
    /// End of the run, if it has a tolerance.
    pub convergence: Option<Convergence>,
}

impl Problem {
    /// Assembles the result from the cells of all ranks, after which a run with a tolerance has
    /// [appended](Convergence::append) its end. A run without execution has no cells.
    pub(crate) fn temperatures(
        &self,
        parts: &Decomposition,
        border: &Border,
        machine: Machine,
        mut cells: Vec<Vec<f64>>,
    ) -> Temperatures {
        if !machine.executes() {
            return Temperatures { matrix: Matrix::from_cells(Vec::new(), 0), convergence: None };
        }
        let mut convergence = None;
        if self.tolerance().is_some() {
            cells.iter_mut().for_each(|cells| convergence = Convergence::take_from(cells));
        }
        Temperatures { matrix: self.assemble(parts, border, cells), convergence }
    }

    /// Returns the measures of a run with a tolerance.
    pub(crate) fn measures(&self, result: &Temperatures) -> Vec<Measure> {
        let Some((tolerance, end)) = self.tolerance().zip(result.convergence) else {
            return Vec::new();
        };
        let meaning = "largest change of a cell in the last step";
        vec![
            Measure { name: "tolerance", value: tolerance, meaning: "limit of the residual" },
            Measure { name: "residual", value: end.residual, meaning },
        ]
    }
}

impl Outcome for Temperatures {
    fn checksum(&self) -> f64 {
        self.matrix.checksum()
    }

    /// Hashes the end of a run with a tolerance as well.
    fn hash(&self) -> u64 {
        let hash = Outcome::hash(&self.matrix);
        self.convergence.map_or(hash, |end| {
            hash ^ end.residual.to_bits().rotate_left(1) ^ (end.steps as u64).rotate_left(32)
        })
    }

    fn difference(&self, expected: &Self) -> Option<(String, f64, f64)> {
        let differ = |place: &str, of: fn(&Convergence) -> f64| {
            let (found, expected) =
                (of(self.convergence.as_ref()?), of(expected.convergence.as_ref()?));
            (found.to_bits() != expected.to_bits()).then(|| (place.to_owned(), found, expected))
        };
        differ("the number of steps", |end| end.steps as f64)
            .or_else(|| differ("the residual", |end| end.residual))
            .or_else(|| self.matrix.difference(&expected.matrix))
    }

    fn picture(&self) -> Matrix {
        self.matrix.picture()
    }

    fn steps(&self) -> Option<usize> {
        self.convergence.map(|end| end.steps)
    }
}

impl Deref for Temperatures {
    type Target = Matrix;

    fn deref(&self) -> &Matrix {
        &self.matrix
    }
}
