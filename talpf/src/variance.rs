//! Tests that handles are invariant in the type of their elements, whatever the lifetimes in it: a
//! value written through one handle would be read with another type.
//!
//! ```compile_fail,E0308
//! # use talpf::MemorySlot;
//! fn widen(slot: MemorySlot<for<'a> fn(&'a str)>) -> MemorySlot<fn(&'static str)> {
//!     slot
//! }
//! ```
//!
//! ```compile_fail,E0308
//! # use talpf::RemoteRegion;
//! type Wide<'s> = RemoteRegion<'s, fn(&'static str)>;
//! fn widen<'s>(region: RemoteRegion<'s, for<'a> fn(&'a str)>) -> Wide<'s> {
//!     region
//! }
//! ```
//!
//! ```compile_fail,E0308
//! # use talpf::DoubleBufferedChannel;
//! type Wide = DoubleBufferedChannel<fn(&'static str)>;
//! fn widen(channel: DoubleBufferedChannel<for<'a> fn(&'a str)>) -> Wide {
//!     channel
//! }
//! ```
//!
//! ```compile_fail,E0308
//! # use talpf::Link;
//! type Wide<'s> = Link<'s, fn(&'static str)>;
//! fn widen<'s>(link: Link<'s, for<'a> fn(&'a str)>) -> Wide<'s> {
//!     link
//! }
//! ```
