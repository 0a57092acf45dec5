//! The types of declarations, for programs that are generic over them.
//!
//! A [`TaskBuilder`](crate::TaskBuilder) has a tuple of clauses, at most eight, and actions before
//! the body. Each clause is made by one of its methods and becomes one parameter of the body.
//!
//! ```
//! use talpf_runtime::clause::{Append, Before, Clause, One};
//! use talpf_runtime::{Array, Config, Error, In, Region, Runtime, TaskBuilder};
//!
//! /// Adds an access to any declaration.
//! fn after<'a, 'r, C, A>(
//!     task: TaskBuilder<'a, C, A>,
//!     flag: &Region<'r, bool>,
//! ) -> TaskBuilder<'a, C::Longer, A>
//! where
//!     C: Append<One<'r, In<bool>>>,
//! {
//!     task.input(flag)
//! }
//!
//! /// Spawns a task of any one clause.
//! fn spawn_noted<'r, C: Clause<'r>, A: Before>(
//!     task: TaskBuilder<'_, (C,), A>,
//!     body: impl FnOnce(C::Guard) + Send + 'static,
//! ) -> Result<(), Error> {
//!     task.spawn(|guard| body(guard))
//! }
//!
//! let runtime = Runtime::new(Config::default())?;
//! let flag = Array::new(&runtime, vec![true], 1)?;
//! spawn_noted(after(runtime.task("check"), &flag.all()), |flag| assert!(flag[0]))?;
//! runtime.wait_blocking()?;
//! # Ok::<(), Error>(())
//! ```

pub use crate::reduction::{ManyReduced, Reduced};
pub use crate::task::{Actions, Append, Before, Clause, Many, One};
