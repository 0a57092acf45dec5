//! Applications of TALPF: heat diffusion with the Jacobi method, in every variant of its parallel
//! execution, and the parts that the `talpf` command is made of.
//!
//! What an application computes and how it is run are kept apart: a kernel
//! ([`jacobi::kernel`]) knows no communication, a variant ([`jacobi::serial`],
//! [`jacobi::fork_join`], [`jacobi::talpf`]) knows no arithmetic. Every variant of one problem gives the same bits.
//!
//! ```
//! use talpf_apps::jacobi::{self, Machine, Observer, Problem, Variant};
//! use talpf_apps::heat;
//!
//! let problem = Problem::new(40, 30, 16, 100, heat::default_sources())?;
//! let observer = Observer::default();
//! let serial = jacobi::run(Variant::Serial, &problem, Machine::ONE, &observer)?;
//! let parallel = jacobi::run(Variant::TalpfCached, &problem, Machine::new(3, 2)?, &observer)?;
//! assert_eq!(serial.matrix.first_difference(&parallel.matrix), None);
//! # Ok::<(), talpf_apps::Error>(())
//! ```

mod error;
pub mod heat;
pub mod jacobi;
pub mod matrix;
pub mod memory;
pub mod picture;

pub use error::Error;
pub use matrix::Matrix;
