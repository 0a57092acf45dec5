//! Point-to-point messages: sends and receives.

use crate::buffer::{Buffer, BufferMut};
use crate::communicator::{Communicator, Traffic};
use crate::error::Error;
use crate::rank::Rank;
use crate::request::Request;
use crate::select::Select;
use crate::status::Status;
use crate::tag::Tag;
use crate::transport::SendMode;

impl Communicator {
    /// Starts a send.
    ///
    /// Short messages that follow each other to one rank may be batched. A batch is posted when the
    /// first of its requests is awaited, bound or dropped, or when a task of this rank waits for
    /// another message; otherwise the polling task posts it.
    ///
    /// **Completion**: local: the buffer may be reused.
    #[inline(always)]
    pub fn isend<B: Buffer>(&self, buffer: B, destination: Rank, tag: Tag) -> Request<B> {
        self.start_send(Traffic::PointToPoint, SendMode::Standard, buffer, destination, tag)
    }

    /// Starts a synchronous send.
    ///
    /// **Completion**: a receive has taken the message, and the buffer may be reused.
    pub fn issend<B: Buffer>(&self, buffer: B, destination: Rank, tag: Tag) -> Request<B> {
        self.start_send(Traffic::PointToPoint, SendMode::Synchronous, buffer, destination, tag)
    }

    /// Starts a buffered send.
    ///
    /// **Completion**: local, without waiting for the receiver.
    /// **Errors**: no room for the copy of a message that cannot be sent yet.
    pub fn ibsend<B: Buffer>(&self, buffer: B, destination: Rank, tag: Tag) -> Request<B> {
        self.start_send(Traffic::PointToPoint, SendMode::Buffered, buffer, destination, tag)
    }

    /// Starts a receive.
    ///
    /// **Ordering**: messages of one source are matched in the order in which they were sent, to
    /// receives in the order in which these were started.
    /// **Completion**: the message is in the buffer, in its first bytes if it is shorter.
    /// **Errors**: a message longer than the buffer, with both lengths.
    #[inline(always)]
    pub fn irecv<B: BufferMut>(
        &self,
        buffer: B,
        source: impl Into<Select<Rank>>,
        tag: impl Into<Select<Tag>>,
    ) -> Request<B> {
        let from = (source.into(), tag.into());
        self.start_receive(Traffic::PointToPoint, buffer, from, false)
    }

    /// Sends and waits until the buffer may be reused. As [`Communicator::isend`].
    pub async fn send<B: Buffer>(
        &self,
        buffer: B,
        destination: Rank,
        tag: Tag,
    ) -> Result<B, Error> {
        Ok(self.isend(buffer, destination, tag).await?.0)
    }

    /// Sends and waits until a receive has taken the message. As [`Communicator::issend`].
    pub async fn ssend<B: Buffer>(
        &self,
        buffer: B,
        destination: Rank,
        tag: Tag,
    ) -> Result<B, Error> {
        Ok(self.issend(buffer, destination, tag).await?.0)
    }

    /// Sends without waiting for the receiver. As [`Communicator::ibsend`].
    pub async fn bsend<B: Buffer>(
        &self,
        buffer: B,
        destination: Rank,
        tag: Tag,
    ) -> Result<B, Error> {
        Ok(self.ibsend(buffer, destination, tag).await?.0)
    }

    /// Receives and waits for the message. As [`Communicator::irecv`].
    pub async fn recv<B: BufferMut>(
        &self,
        buffer: B,
        source: impl Into<Select<Rank>>,
        tag: impl Into<Select<Tag>>,
    ) -> Result<(B, Status), Error> {
        let from = (source.into(), tag.into());
        self.start_receive(Traffic::PointToPoint, buffer, from, true).await
    }

    /// Sends one message and receives another, both under way at once.
    pub async fn sendrecv<S: Buffer, R: BufferMut>(
        &self,
        (outgoing, destination, send_tag): (S, Rank, Tag),
        (incoming, source, receive_tag): (R, impl Into<Select<Rank>>, impl Into<Select<Tag>>),
    ) -> Result<(S, R, Status), Error> {
        let receive = self.irecv(incoming, source, receive_tag);
        let send = self.isend(outgoing, destination, send_tag);
        let (incoming, status) = receive.await?;
        Ok((send.await?.0, incoming, status))
    }
}
