//! The problems of calibrations and predictions.

use talpf_apps::Error;
use talpf_apps::gauss_seidel::GaussSeidel;
use talpf_apps::heat::{self, default_sources};
use talpf_apps::jacobi::Jacobi;
use talpf_apps::kmeans::{self, Kmeans};
use talpf_apps::mandelbrot::{self, Mandelbrot};
use talpf_apps::matmul::{self, Matmul};
use talpf_apps::nbody::{self, Nbody, Particles};
use talpf_apps::run::{App, Problem};

/// Problem that is run.
pub(super) struct Sample<A: App> {
    pub(super) problem: A::Problem,
}

/// Application with problems to calibrate and to predict.
pub(super) trait Samples: App {
    /// Returns a problem with large tasks, and one with small ones.
    fn calibrated(quick: bool) -> Result<[Sample<Self>; 2], Error>;

    /// Returns problems of other sizes.
    fn predicted(quick: bool) -> Result<[Sample<Self>; 2], Error>;
}

impl<A: App> Sample<A> {
    /// Returns the parameters of the problem.
    pub(super) fn text(&self) -> String {
        let parameters = self.problem.parameters().into_iter();
        let parameters = parameters.map(|(name, value)| format!("{name} {value}"));
        parameters.collect::<Vec<_>>().join(" ")
    }
}

/// Returns samples of problems with these extents and blocks, or an eighth of them.
fn of<A: App>(
    quick: bool,
    sizes: [[usize; 3]; 2],
    steps: usize,
    problem: impl Fn([usize; 3], usize) -> Result<A::Problem, Error>,
) -> Result<[Sample<A>; 2], Error> {
    let sample = |sizes: [usize; 3]| -> Result<Sample<A>, Error> {
        let (sizes, steps) = match quick {
            true => (sizes.map(|size| (size / 8).max(1)), 2),
            false => (sizes, steps),
        };
        Ok(Sample { problem: problem(sizes, steps)? })
    };
    let [first, second] = sizes;
    Ok([sample(first)?, sample(second)?])
}

fn heat([rows, cols, block]: [usize; 3], steps: usize) -> Result<heat::Problem, Error> {
    heat::Problem::new(rows, cols, block, steps, default_sources())
}

fn particles([count, block, _]: [usize; 3], steps: usize) -> Result<nbody::Problem, Error> {
    nbody::Problem::new(Particles::generate(count, block, 1), steps, false, 1)
}

fn product([size, block, _]: [usize; 3], steps: usize) -> Result<matmul::Problem, Error> {
    matmul::Problem::new(size, block, steps)
}

fn clusters([points, clusters, block]: [usize; 3], steps: usize) -> Result<kmeans::Problem, Error> {
    kmeans::Problem::new(points, clusters, block, steps)
}

fn picture([size, limit, block]: [usize; 3], steps: usize) -> Result<mandelbrot::Problem, Error> {
    mandelbrot::Problem::new(size, limit, block, steps)
}

impl Samples for Jacobi {
    fn calibrated(quick: bool) -> Result<[Sample<Self>; 2], Error> {
        of(quick, [[2048, 2048, 32], [2048, 2048, 8]], 40, heat)
    }

    fn predicted(quick: bool) -> Result<[Sample<Self>; 2], Error> {
        of(quick, [[2560, 2048, 16], [3072, 3072, 16]], 30, heat)
    }
}

impl Samples for GaussSeidel {
    fn calibrated(quick: bool) -> Result<[Sample<Self>; 2], Error> {
        of(quick, [[1280, 1536, 256], [1280, 1536, 64]], 40, heat)
    }

    fn predicted(quick: bool) -> Result<[Sample<Self>; 2], Error> {
        of(quick, [[1536, 1536, 128], [1024, 2048, 128]], 30, heat)
    }
}

impl Samples for Nbody {
    fn calibrated(quick: bool) -> Result<[Sample<Self>; 2], Error> {
        of(quick, [[2048, 128, 8], [2048, 32, 8]], 15, particles)
    }

    fn predicted(quick: bool) -> Result<[Sample<Self>; 2], Error> {
        of(quick, [[3072, 64, 8], [4096, 256, 8]], 8, particles)
    }
}

impl Samples for Matmul {
    fn calibrated(quick: bool) -> Result<[Sample<Self>; 2], Error> {
        of(quick, [[1024, 128, 8], [1024, 32, 8]], 6, product)
    }

    fn predicted(quick: bool) -> Result<[Sample<Self>; 2], Error> {
        of(quick, [[768, 64, 8], [1280, 80, 8]], 6, product)
    }
}

impl Samples for Kmeans {
    fn calibrated(quick: bool) -> Result<[Sample<Self>; 2], Error> {
        of(quick, [[1 << 16, 16, 4096], [1 << 16, 16, 256]], 20, clusters)
    }

    fn predicted(quick: bool) -> Result<[Sample<Self>; 2], Error> {
        of(quick, [[1 << 16, 32, 1024], [1 << 17, 16, 2048]], 20, clusters)
    }
}

impl Samples for Mandelbrot {
    fn calibrated(quick: bool) -> Result<[Sample<Self>; 2], Error> {
        of(quick, [[256, 500, 16], [256, 500, 1]], 8, picture)
    }

    fn predicted(quick: bool) -> Result<[Sample<Self>; 2], Error> {
        of(quick, [[384, 500, 4], [256, 1000, 8]], 8, picture)
    }
}
