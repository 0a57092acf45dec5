//! Applications of TALPF, each in every variant of its parallel execution, and the parts that the
//! `talpf` command is made of.
//!
//! What an application computes and how it is run are kept apart: a kernel (such as
//! [`jacobi::kernel`]) knows no communication, a variant knows no arithmetic. [`run`] holds what
//! is the same for all applications.
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
pub mod jacobi;
pub mod matmul;
pub mod matmul_g;
pub mod matrix;
pub mod memory;
pub mod nbody;
pub mod picture;
pub mod run;
mod share;
mod text_file;

pub use error::Error;
pub use matrix::Matrix;
