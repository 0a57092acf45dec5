//! Applications of TALPF, each in every variant of its parallel execution, and the parts of the
//! `talpf` command.
//!
//! The computation of an application is separate from its execution: a kernel (such as
//! [`jacobi::kernel`]) knows no communication, a variant knows no arithmetic. [`run`] has
//! everything that all applications share.
//!
//! ```
//! use talpf_apps::heat;
//! use talpf_apps::jacobi::Jacobi;
//! use talpf_apps::run::{Machine, Observer, Variant, run};
//!
//! let problem = heat::Problem::new(40, 30, 16, 100, heat::default_sources())?;
//! let observer = Observer::default();
//! let solve = |variant, machine| run::<Jacobi>(variant, &problem, machine, &observer);
//! let serial = solve(Variant::Serial, Machine::ONE)?.expect("a result");
//! let parallel = solve(Variant::TalpfCached, Machine::new(3, 2)?)?.expect("all ranks are here");
//! assert_eq!(serial.result.first_difference(&parallel.result), None);
//! # Ok::<(), talpf_apps::Error>(())
//! ```

pub mod caches;
mod error;
pub mod gauss_seidel;
pub mod heat;
pub mod histogram;
pub mod jacobi;
pub mod kmeans;
#[cfg(test)]
mod limit_tests;
pub mod mandelbrot;
pub mod matmul;
pub mod matmul_g;
pub mod matrix;
pub mod memory;
pub mod nbody;
mod partition;
pub mod picture;
mod random;
pub mod run;
mod text_file;

pub use error::Error;
pub use matrix::Matrix;
