//! The figures of chapter 7 that are reproduced: applications, sizes and versions.
//!
//! The text gives no sizes. Those here follow from what it says of tasks: Jacobi has 128 tasks for each of
//! 32 ranks (figure 7.2); a rank multiplies 16 blocks of rows at a time on 32 ranks (figure 7.17); the
//! particles of 32 ranks are a little more chains than 31 cores (figure 7.14); Gauss-Seidel lacks
//! parallelism on more than 8 ranks (figure 7.7). Gauss-Seidel is also run in the size of the reference
//! input, 32 x 32 blocks, with which no rank has a wavefront for its cores. Steps are few, as a step in virtual time is like the
//! next.

use talpf_apps::heat::{self, default_sources};
use talpf_apps::run::Variant::{
    self, Lpf, TalpfCached, TalpfCachedAck, TalpfCachedBarrier, TalpfDefault, TalpfGet, Tampi,
};
use talpf_apps::{Error, matmul, nbody};

use super::statements::{self, Statement};

/// Figure of the thesis.
pub(super) struct Figure {
    pub(super) number: &'static str,
    pub(super) app: AppName,
    pub(super) scaling: Scaling,
    /// Versions of the figure. The first, on one rank, is the base.
    pub(super) versions: &'static [Variant],
    /// Variants that the figure does not have.
    pub(super) further: &'static [Variant],
    /// Statements of the text on the figure.
    pub(super) statements: &'static [Statement],
}

/// Application of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AppName {
    Jacobi,
    /// Of a size that follows from the text.
    GaussSeidel,
    /// Of the reference input.
    GaussSeidelReference,
    Nbody,
    NbodyWithPriorities,
    Matmul,
}

/// Rule by which a problem grows with the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scaling {
    Strong,
    Weak,
}

/// Size of all problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    Full,
    Quick,
}

/// Problem of a point.
pub(super) enum Problem {
    Jacobi(heat::Problem),
    GaussSeidel(heat::Problem),
    Nbody(nbody::Problem),
    Matmul(matmul::Problem),
}

// Table 7.1.
const JACOBI: &[Variant] = &[TalpfDefault, TalpfCached, Tampi];
const GAUSS_SEIDEL: &[Variant] = &[TalpfDefault, Tampi];
const RING: &[Variant] = &[TalpfDefault, TalpfCachedBarrier, TalpfCachedAck, Tampi];
const RING_WITH_GET: &[Variant] =
    &[TalpfDefault, TalpfCachedBarrier, TalpfCachedAck, TalpfGet, Tampi];

macro_rules! figure {
    ($number:literal, $app:ident, $scaling:ident, $versions:ident, $further:expr, $statements:ident) => {
        Figure {
            number: $number,
            app: AppName::$app,
            scaling: Scaling::$scaling,
            versions: $versions,
            further: $further,
            statements: statements::$statements,
        }
    };
}

/// All figures, in the order of the text.
pub(super) static FIGURES: [Figure; 12] = [
    figure!("7.1", Jacobi, Strong, JACOBI, &[Lpf], JACOBI_STRONG),
    figure!("7.3", Jacobi, Weak, JACOBI, &[Lpf], JACOBI_WEAK),
    figure!("7.7", GaussSeidel, Strong, GAUSS_SEIDEL, &[Lpf], GAUSS_SEIDEL_STRONG),
    figure!("7.7", GaussSeidelReference, Strong, GAUSS_SEIDEL, &[Lpf], GAUSS_SEIDEL_STRONG),
    figure!("7.8", GaussSeidel, Weak, GAUSS_SEIDEL, &[Lpf], GAUSS_SEIDEL_WEAK),
    figure!("7.8", GaussSeidelReference, Weak, GAUSS_SEIDEL, &[Lpf], GAUSS_SEIDEL_WEAK),
    figure!("7.9", Nbody, Strong, RING, &[TalpfCached], NBODY_STRONG),
    figure!("7.10", Nbody, Weak, RING, &[TalpfCached], NBODY_WEAK),
    figure!("7.12", NbodyWithPriorities, Strong, RING_WITH_GET, &[TalpfCached], PRIORITIES),
    figure!("7.13", NbodyWithPriorities, Weak, RING_WITH_GET, &[TalpfCached], PRIORITIES),
    figure!("7.15", Matmul, Strong, RING, &[TalpfCached], MATMUL_STRONG),
    figure!("7.16", Matmul, Weak, RING, &[TalpfCached], MATMUL_WEAK),
];

impl AppName {
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Jacobi => "Jacobi",
            Self::GaussSeidel => "Gauss-Seidel",
            Self::GaussSeidelReference => "Gauss-Seidel of the reference size",
            Self::Nbody => "N-body",
            Self::NbodyWithPriorities => "N-body with priorities",
            Self::Matmul => "Matrix multiplication",
        }
    }
}

impl Scaling {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Strong => "strong scaling",
            Self::Weak => "weak scaling",
        }
    }
}

impl Size {
    /// Returns the numbers of ranks.
    pub(super) fn ranks(self) -> &'static [usize] {
        match self {
            Self::Full => &[1, 2, 4, 8, 16, 32],
            Self::Quick => &[1, 2, 4, 8],
        }
    }

    /// Returns a number of blocks. Quick problems have as many for each of the most ranks.
    fn blocks(self, full: usize) -> usize {
        match self {
            Self::Full => full,
            Self::Quick => full / 4,
        }
    }

    /// Returns a number of steps.
    fn steps(self, full: usize) -> usize {
        match self {
            Self::Full => full,
            Self::Quick => (full / 8).max(2),
        }
    }
}

impl Figure {
    /// Returns the variants in the order in which they are drawn.
    pub(super) fn variants(&self) -> impl Iterator<Item = Variant> {
        self.versions.iter().chain(self.further).copied()
    }

    /// Returns the points, variant by variant.
    pub(super) fn points(&self, size: Size) -> Vec<(Variant, usize)> {
        let of = |variant| size.ranks().iter().map(move |ranks| (variant, *ranks));
        self.variants().flat_map(of).collect()
    }

    /// Returns the problem on a number of ranks.
    pub(super) fn problem(&self, size: Size, ranks: usize) -> Result<Problem, Error> {
        let is_weak = self.scaling == Scaling::Weak;
        let heat = |rows: usize, cols: usize, block: usize, steps: usize| {
            heat::Problem::new(rows * block, cols * block, block, steps, default_sources())
        };
        Ok(match self.app {
            AppName::Jacobi => {
                let (cols, steps) = (size.blocks(64), size.steps(20));
                let rows = if is_weak { size.blocks(16) * ranks } else { cols };
                Problem::Jacobi(heat(rows, cols, 256, steps)?.in_single_blocks(true))
            }
            AppName::GaussSeidel => {
                // Enough steps that the first and the last ones, in which some ranks wait, are few.
                let (cols, steps) = (size.blocks(128), size.steps(50));
                let rows = if is_weak { size.blocks(32) * ranks } else { size.blocks(256) };
                Problem::GaussSeidel(heat(rows, cols, 64, steps)?.in_single_blocks(true))
            }
            AppName::GaussSeidelReference => {
                // 16384 x 16384 in blocks of 512, where the work does not grow.
                let (cols, steps) = (size.blocks(32), size.steps(50));
                let rows = if is_weak { size.blocks(4) * ranks } else { cols };
                Problem::GaussSeidel(heat(rows, cols, 512, steps)?.in_single_blocks(true))
            }
            AppName::Nbody | AppName::NbodyWithPriorities => {
                let doublings = [4, 16].iter().filter(|least| ranks >= **least).count();
                let blocks =
                    if is_weak { size.blocks(256) << doublings } else { size.blocks(1024) };
                let particles = nbody::Particles::generate(blocks * 64, 64, 1);
                let has_priorities = self.app == AppName::NbodyWithPriorities;
                Problem::Nbody(nbody::Problem::new(particles, 2, has_priorities, 1)?)
            }
            AppName::Matmul => {
                let doublings = usize::from(ranks >= 8);
                let blocks = if is_weak { size.blocks(256) << doublings } else { size.blocks(512) };
                Problem::Matmul(matmul::Problem::new(blocks * 32, 32, size.steps(4))?)
            }
        })
    }
}

impl Problem {
    /// Returns the parameters, as in results.
    pub(super) fn parameters(&self) -> Vec<(&'static str, usize)> {
        use talpf_apps::run::Problem as _;
        match self {
            Self::Jacobi(problem) | Self::GaussSeidel(problem) => problem.parameters(),
            Self::Nbody(problem) => problem.parameters(),
            Self::Matmul(problem) => problem.parameters(),
        }
    }
}
