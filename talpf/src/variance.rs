//! Handles of one type of elements that do not pass for handles of another one, whatever the
//! lifetimes in it: what is written through one would be read through the other.
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
