//! Task-aware two-sided messages.
//!
//! [`exec()`] runs a program on several ranks. Each has the world [`Communicator`], sends and
//! receives over it, and spawns tasks into its group. Calls that wait suspend the calling task
//! only. [`iwait()`] instead binds an operation to the running task, which then completes, and
//! releases its regions, when the operation has ended. Buffers move into the operation and come
//! back when it has ended, so nothing else can use them meanwhile.
//!
//! ```
//! use talpf_runtime::Array;
//! use tampi_shim::{Config, Error, Rank, Tag, exec, iwait};
//!
//! // Every value goes once round a ring of ranks; nothing waits but the last line.
//! let ends = exec(Config { ranks: 4, ..Config::default() }, async |world| {
//!     let (rank, ranks) = (world.rank().0, world.size());
//!     let (next, previous) = (Rank((rank + 1) % ranks), Rank((rank + ranks - 1) % ranks));
//!     let mine = Array::new(world.group(), vec![rank], 1)?;
//!     let inbox = Array::new(world.group(), vec![0u32], 1)?;
//!     for _ in 0..ranks {
//!         let (to, from) = (world.clone(), world.clone());
//!         let send = world.group().task("send").input(&mine.all());
//!         send.spawn(move |mine| iwait(to.isend(mine, next, Tag(0))).unwrap())?;
//!         let receive = world.group().task("receive").output(&inbox.all());
//!         receive.spawn(move |inbox| iwait(from.irecv(inbox, previous, Tag(0))).unwrap())?;
//!         let copy = world.group().task("copy").input(&inbox.all()).output(&mine.all());
//!         copy.spawn(|inbox, mut mine| mine[0] = inbox[0])?;
//!     }
//!     Ok::<_, Error>(world.group().task("read").input(&mine.all()).run(|mine| mine[0])?.await?)
//! })?;
//! assert_eq!(ends, [0, 1, 2, 3]);
//! # Ok::<(), Error>(())
//! ```

mod buffer;
mod collective;
mod communicator;
mod config;
mod contexts;
mod control_plane;
mod costs;
mod derive;
mod error;
mod exec;
mod foreign;
mod iwait;
mod located;
mod matching;
pub mod operator;
mod point_to_point;
mod probe;
mod protocols;
mod rank;
mod rank_group;
mod request;
mod select;
mod statistics;
mod status;
mod tag;
mod ticket;
mod tracer;
mod transport;

pub use self::buffer::{Buffer, BufferMut};
pub use self::collective::Arrival;
pub use self::communicator::Communicator;
pub use self::config::Config;
pub use self::costs::Costs;
pub use self::error::Error;
pub use self::exec::exec;
pub use self::iwait::{iwait, iwait_status, iwaitall, iwaitall_statuses};
pub use self::located::Located;
pub use self::operator::Operator;
pub use self::probe::Message;
pub use self::protocols::Protocols;
pub use self::rank::Rank;
pub use self::rank_group::{Comparison, RankGroup};
pub use self::request::Request;
pub use self::select::{ANY_SOURCE, ANY_TAG, Select};
pub use self::statistics::Statistics;
pub use self::status::Status;
pub use self::tag::Tag;
#[cfg(feature = "mpi")]
pub use self::transport::mpi;
