//! Communicators: groups of ranks whose messages match only among themselves.
#![allow(unsafe_code, reason = "starts operations on memory that it keeps with them")]

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use talpf_runtime::Group;

use crate::buffer::{Buffer, BufferMut};
use crate::contexts::Contexts;
use crate::error::Error;
use crate::rank::{Rank, WorldRank};
use crate::request::Request;
use crate::select::Select;
use crate::statistics::Statistics;
use crate::tag::Tag;
use crate::tracer::Tracer;
use crate::transport::{
    ContextId, Members, MessageId, Outgoing, Peer, SendMode, Start, Transport, Wanted,
};

/// A group of ranks that exchange messages among themselves. Clones refer to the same communicator.
#[derive(Clone)]
pub struct Communicator {
    inner: Arc<Inner>,
}

struct Inner {
    transport: Arc<dyn Transport>,
    group: Group,
    context: ContextId,
    rank: Rank,
    members: Members,
    /// Number of collectives started so far.
    collectives: AtomicU32,
    contexts: Arc<Contexts>,
    /// `true` if there are more ranks than cores.
    is_oversubscribed: bool,
    tracer: Option<Arc<Tracer>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.transport.communicator_freed(self.context);
    }
}

/// Class of a message. Each class is matched in a context of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Traffic {
    PointToPoint,
    Collective,
}

impl Communicator {
    /// Creates a communicator with the contexts `context` and `context + 1`.
    pub(crate) fn new(
        transport: Arc<dyn Transport>,
        group: Group,
        context: ContextId,
        rank: Rank,
        members: Members,
    ) -> Result<Self, Error> {
        let world = members.get(rank.index()).copied();
        let contexts = Contexts::of_rank(world.unwrap_or(WorldRank(rank.0)), context);
        Self::with_contexts(transport, group, context, rank, members, Arc::new(contexts))
    }

    fn with_contexts(
        transport: Arc<dyn Transport>,
        group: Group,
        context: ContextId,
        rank: Rank,
        members: Members,
        contexts: Arc<Contexts>,
    ) -> Result<Self, Error> {
        transport.communicator_created(context, rank, &members)?;
        let collectives = AtomicU32::new(0);
        let is_oversubscribed = members.len() > talpf_runtime::cores();
        let tracer = Tracer::new(&group, context, rank, &members);
        let inner = Inner {
            transport,
            group,
            context,
            rank,
            members,
            collectives,
            contexts,
            is_oversubscribed,
            tracer,
        };
        Ok(Communicator { inner: Arc::new(inner) })
    }

    /// Creates another communicator of this rank, with other members.
    pub(crate) fn derived(
        &self,
        context: ContextId,
        rank: Rank,
        members: Members,
    ) -> Result<Self, Error> {
        let Inner { transport, group, contexts, .. } = &*self.inner;
        let (transport, contexts) = (Arc::clone(transport), Arc::clone(contexts));
        Self::with_contexts(transport, group.clone(), context, rank, members, contexts)
    }

    /// Returns the calling rank's number in this communicator.
    #[inline]
    pub fn rank(&self) -> Rank {
        self.inner.rank
    }

    /// Returns the number of ranks.
    #[inline]
    pub fn size(&self) -> u32 {
        self.inner.members.len() as u32
    }

    /// Returns the group that the tasks and arrays of this rank belong to.
    pub fn group(&self) -> &Group {
        &self.inner.group
    }

    pub(crate) fn members(&self) -> &Members {
        &self.inner.members
    }

    pub(crate) fn contexts(&self) -> &Contexts {
        &self.inner.contexts
    }

    /// Returns `true` if there are more ranks than cores, so that a rank that polls for messages
    /// keeps a core from the ranks that send them.
    pub(crate) fn is_oversubscribed(&self) -> bool {
        self.inner.is_oversubscribed
    }

    /// Returns the tag of the next collective.
    pub(crate) fn next_collective(&self) -> Tag {
        Tag(self.inner.collectives.fetch_add(1, Ordering::Relaxed) & Tag::MAX.0)
    }

    /// Returns the counters of this rank's transport, over all communicators.
    pub fn statistics(&self) -> Statistics {
        self.inner.transport.statistics()
    }

    pub(crate) fn transport(&self) -> &Arc<dyn Transport> {
        &self.inner.transport
    }

    /// Returns the context of a class of messages.
    #[inline]
    pub(crate) fn context(&self, traffic: Traffic) -> ContextId {
        match traffic {
            Traffic::PointToPoint => self.inner.context,
            Traffic::Collective => ContextId(self.inner.context.0 + 1),
        }
    }

    /// Returns the member with this rank.
    ///
    /// **Errors**: no such rank.
    #[inline]
    pub(crate) fn peer(&self, rank: Rank) -> Result<Peer, Error> {
        match self.inner.members.get(rank.index()) {
            Some(&world) => Ok(Peer { rank, world }),
            None => Err(Error::NoSuchRank { rank, ranks: self.size() }),
        }
    }

    /// Resolves the arguments of a receive or probe.
    #[inline]
    pub(crate) fn wanted(
        &self,
        traffic: Traffic,
        source: Select<Rank>,
        tag: Select<Tag>,
    ) -> Result<Wanted, Error> {
        let source = match source {
            Select::Any => Select::Any,
            Select::Only(rank) => Select::Only(self.peer(rank)?),
        };
        if let Select::Only(tag) = tag {
            check_tag(tag)?;
        }
        Ok(Wanted { context: self.context(traffic), source, tag, is_awaited: false })
    }

    /// Starts a send of `buffer`. Always inlined, as is [`Communicator::start_receive`]: a value
    /// written word by word and then copied in larger pieces stalls until the words are stored.
    #[inline(always)]
    pub(crate) fn start_send<B: Buffer>(
        &self,
        traffic: Traffic,
        mode: SendMode,
        mut buffer: B,
        destination: Rank,
        tag: Tag,
    ) -> Request<B> {
        let checked = check_tag(tag).and_then(|()| self.peer(destination));
        let start = match checked {
            Ok(destination) => {
                let context = self.context(traffic);
                let message = Outgoing { context, source: self.rank(), destination, tag, mode };
                let layout = buffer.layout();
                let tracer = self.inner.tracer.as_ref();
                let tracer = tracer.filter(|_| traffic == Traffic::PointToPoint);
                let call = tracer.map(|tracer| (tracer, tracer.call(&message, layout.bytes())));
                // SAFETY: the request keeps the buffer, unused, until the send has ended.
                let start = unsafe { self.inner.transport.send(&message, layout) };
                if let Some((tracer, call)) = call {
                    tracer.sent(call);
                }
                start
            }
            Err(error) => Start::failed(error),
        };
        Request::new(buffer, start, &self.inner.transport)
    }

    /// Starts a receive into `buffer`.
    #[inline(always)]
    pub(crate) fn start_receive<B: BufferMut>(
        &self,
        traffic: Traffic,
        mut buffer: B,
        (source, tag): (Select<Rank>, Select<Tag>),
        is_awaited: bool,
    ) -> Request<B> {
        if let (Traffic::PointToPoint, Some(tracer)) = (traffic, &self.inner.tracer) {
            tracer.posts(tag);
        }
        let start = match self.wanted(traffic, source, tag) {
            Ok(mut wanted) => {
                wanted.is_awaited = is_awaited;
                // SAFETY: the request keeps the buffer, unused, until the receive has ended.
                unsafe { self.inner.transport.receive(&wanted, buffer.layout()) }
            }
            Err(error) => Start::failed(error),
        };
        let start = match &self.inner.tracer {
            Some(tracer) if traffic == Traffic::PointToPoint => tracer.follow(start),
            _ => start,
        };
        Request::new(buffer, start, &self.inner.transport).on_failure(B::undefined)
    }

    /// Starts to receive a message that a matched probe has taken.
    pub(crate) fn start_matched<B: BufferMut>(
        &self,
        mut buffer: B,
        message: MessageId,
    ) -> Request<B> {
        // SAFETY: the request keeps the buffer, unused, until the receive has ended.
        let start = unsafe { self.inner.transport.receive_matched(message, buffer.layout()) };
        self.request(buffer, Ok(self.traced(Traffic::PointToPoint, start))).on_failure(B::undefined)
    }

    /// Has the tracer, if there is one, record the end of a receive.
    #[inline]
    fn traced(&self, traffic: Traffic, start: Start) -> Start {
        match (traffic, &self.inner.tracer) {
            (Traffic::PointToPoint, Some(tracer)) => tracer.follow(start),
            _ => start,
        }
    }

    #[inline]
    pub(crate) fn request<B: Send + 'static>(
        &self,
        buffer: B,
        started: Result<Start, Error>,
    ) -> Request<B> {
        let start = started.unwrap_or_else(Start::failed);
        Request::new(buffer, start, &self.inner.transport)
    }
}

#[inline]
fn check_tag(tag: Tag) -> Result<(), Error> {
    if tag > Tag::MAX {
        let (value, limit) = (u64::from(tag.0), u64::from(Tag::MAX.0));
        return Err(Error::Limit { what: "tag", value, limit });
    }
    Ok(())
}

impl fmt::Debug for Communicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rank, size, context) = (self.rank(), self.size(), self.inner.context.0);
        write!(f, "Communicator {context} ({rank} of {size})")
    }
}
