//! Shared memory: arrays divided into tiles, and regions of them.
//!
//! [`Array`], [`Matrix`] and [`Token`] own memory that tasks share. A [`Region`] names a part of
//! one; declaring it to a task is the only way to reach the memory (rule R1). Elements are handed
//! out as [guards](crate::In), never as plain references.

mod array;
mod core;
mod invariant;
mod label;
mod live;
mod matrix;
mod memory;
mod mode;
mod owner;
mod rect;
mod region;
mod tiling;
mod token;

pub use self::array::Array;
pub(crate) use self::core::ArrayCore;
pub(crate) use self::invariant::Invariant;
pub use self::label::ArrayLabel;
pub use self::matrix::Matrix;
pub use self::memory::{Allocation, ArrayMemory};
pub use self::mode::Mode;
pub use self::rect::Rect;
pub(crate) use self::rect::bounds;
pub use self::region::Region;
pub(crate) use self::tiling::Tiles;
pub use self::tiling::Tiling;
pub use self::token::Token;
