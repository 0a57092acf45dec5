//! Functions, types and constants of the interface, as `lpf-c/include` declares them.
//!
//! The headers document them. Each function checks its arguments, enters the process of its context, and returns
//! a code; none unwinds into the program.

mod bsplib;
mod collectives;
mod constants;
mod core;
mod talpf;
mod threads;
mod types;

pub use self::bsplib::*;
pub use self::collectives::*;
pub use self::constants::*;
pub use self::core::*;
pub use self::talpf::*;
pub use self::threads::*;
pub use self::types::*;
