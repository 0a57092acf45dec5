//! Probes: what is known of a message before it is received.

use std::future::poll_fn;
use std::task::{Poll, Waker};

use crate::buffer::BufferMut;
use crate::communicator::{Communicator, Traffic};
use crate::error::Error;
use crate::rank::Rank;
use crate::request::Request;
use crate::select::Select;
use crate::status::Status;
use crate::tag::Tag;
use crate::transport::{MessageId, Probed};

/// A message that a matched probe has taken. Only [`Message::irecv`] and [`Message::recv`] can
/// receive it; a message that is dropped is lost.
#[derive(Debug)]
#[must_use = "a message that is dropped is lost"]
pub struct Message {
    communicator: Communicator,
    id: Option<MessageId>,
    status: Status,
}

impl Message {
    /// Returns the source, tag and length of the message.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Starts to receive the message.
    pub fn irecv<B: BufferMut>(mut self, buffer: B) -> Request<B> {
        match self.id.take() {
            Some(id) => self.communicator.start_matched(buffer, id),
            None => unreachable!("taken here, where the message ends, and when it drops"),
        }
    }

    /// Receives the message and waits for it.
    pub async fn recv<B: BufferMut>(self, buffer: B) -> Result<(B, Status), Error> {
        self.irecv(buffer).await
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.communicator.transport().discard(id);
        }
    }
}

impl Communicator {
    /// Returns the status of the message that a receive of this source and tag would take, if it
    /// has arrived.
    pub fn iprobe(
        &self,
        source: impl Into<Select<Rank>>,
        tag: impl Into<Select<Tag>>,
    ) -> Result<Option<Status>, Error> {
        let probed = self.try_probe(source.into(), tag.into(), false, None)?;
        Ok(probed.map(|probed| probed.status))
    }

    /// Waits for a message and returns its status. As [`Communicator::iprobe`].
    pub async fn probe(
        &self,
        source: impl Into<Select<Rank>>,
        tag: impl Into<Select<Tag>>,
    ) -> Result<Status, Error> {
        Ok(self.wait_for_one(source.into(), tag.into(), false).await?.status)
    }

    /// Takes the message that a receive of this source and tag would take, if it has arrived: no
    /// other receive or probe can see it any more.
    pub fn improbe(
        &self,
        source: impl Into<Select<Rank>>,
        tag: impl Into<Select<Tag>>,
    ) -> Result<Option<Message>, Error> {
        let probed = self.try_probe(source.into(), tag.into(), true, None)?;
        Ok(probed.map(|probed| self.message(&probed)))
    }

    /// Waits for a message and takes it. As [`Communicator::improbe`].
    pub async fn mprobe(
        &self,
        source: impl Into<Select<Rank>>,
        tag: impl Into<Select<Tag>>,
    ) -> Result<Message, Error> {
        let probed = self.wait_for_one(source.into(), tag.into(), true).await?;
        Ok(self.message(&probed))
    }

    fn message(&self, probed: &Probed) -> Message {
        Message { communicator: self.clone(), id: probed.message, status: probed.status }
    }

    fn try_probe(
        &self,
        source: Select<Rank>,
        tag: Select<Tag>,
        take: bool,
        waker: Option<&Waker>,
    ) -> Result<Option<Probed>, Error> {
        let wanted = self.wanted(Traffic::PointToPoint, source, tag)?;
        let transport = self.transport();
        transport.progress();
        transport.probe(&wanted, take, waker)
    }

    async fn wait_for_one(
        &self,
        source: Select<Rank>,
        tag: Select<Tag>,
        take: bool,
    ) -> Result<Probed, Error> {
        poll_fn(|cx| match self.try_probe(source, tag, take, Some(cx.waker())) {
            Ok(None) => {
                talpf_runtime::note_wait("a message to probe");
                Poll::Pending
            }
            Ok(Some(probed)) => Poll::Ready(Ok(probed)),
            Err(error) => Poll::Ready(Err(error)),
        })
        .await
    }
}
