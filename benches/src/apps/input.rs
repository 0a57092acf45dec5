//! Input files of the peers in C.

use talpf_apps::{Matrix, heat, matmul, nbody};

/// Problem that a peer can solve too.
pub(super) trait Input {
    /// Returns the problem size that the peer takes as its argument.
    fn size(&self) -> usize;

    /// Returns the contents of the peer's input file, in order.
    fn numbers(&self) -> Vec<f64>;
}

/// First and last row of the border, then its first and last column without the corners.
impl Input for heat::Problem {
    fn size(&self) -> usize {
        self.rows()
    }

    fn numbers(&self) -> Vec<f64> {
        let (border, last) = (self.border(), self.rows() + 1);
        let side = |first: (usize, usize), (rows, cols): (usize, usize)| {
            let mut part = Matrix::zeros(rows, cols);
            border.apply(first.0, first.1, part.view_mut());
            part.into_cells()
        };
        let (row, col) = ((1, last + 1), (last - 1, 1));
        [side((0, 0), row), side((last, 0), row), side((1, 0), col), side((1, last), col)].concat()
    }
}

/// All `x`, all `y`, all `z`, all masses, and the velocities in the order of the positions.
impl Input for nbody::Problem {
    fn size(&self) -> usize {
        self.particles().len()
    }

    fn numbers(&self) -> Vec<f64> {
        let all = |number: fn(nbody::Particle) -> [f64; 3]| {
            (0..3).flat_map(move |axis| self.particles().iter().map(move |p| number(p)[axis]))
        };
        let masses = self.particles().iter().map(|particle| particle.mass);
        all(|particle| particle.place)
            .chain(masses)
            .chain(all(|particle| particle.velocity))
            .collect()
    }
}

/// `A` and `B`, row by row.
impl Input for matmul::Problem {
    fn size(&self) -> usize {
        matmul::Problem::size(self)
    }

    fn numbers(&self) -> Vec<f64> {
        use matmul::kernel::{Factor, initial};
        let size = matmul::Problem::size(self);
        let of = |factor| initial(factor, 0..size, 0..size).into_cells();
        [of(Factor::A), of(Factor::B)].concat()
    }
}
