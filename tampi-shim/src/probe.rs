//! Looking at messages before they are received.

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

/// A message that a matched probe has taken. Only [`Message::irecv`] can receive it; dropped, it is
/// lost.
#[derive(Debug)]
#[must_use = "a message that is dropped is lost"]
pub struct Message {
    communicator: Communicator,
    id: Option<MessageId>,
    status: Status,
}

impl Message {
    /// What is known of it.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Starts its receive.
    pub fn irecv<B: BufferMut>(mut self, buffer: B) -> Request<B> {
        match self.id.take() {
            Some(id) => self.communicator.start_matched(buffer, id),
            None => unreachable!("taken here, where the message ends, and when it drops"),
        }
    }

    /// Receives it.
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
    /// Says what message a receive of this source and tag would take, if there is one.
    pub fn iprobe(
        &self,
        source: impl Into<Select<Rank>>,
        tag: impl Into<Select<Tag>>,
    ) -> Result<Option<Status>, Error> {
        let probed = self.look(source.into(), tag.into(), false, None)?;
        Ok(probed.map(|probed| probed.status))
    }

    /// As [`Communicator::iprobe`], and waits for a message.
    pub async fn probe(
        &self,
        source: impl Into<Select<Rank>>,
        tag: impl Into<Select<Tag>>,
    ) -> Result<Status, Error> {
        Ok(self.wait_for_one(source.into(), tag.into(), false).await?.status)
    }

    /// Takes the message that a receive of this source and tag would take, if there is one: no
    /// other receive or probe will see it.
    pub fn improbe(
        &self,
        source: impl Into<Select<Rank>>,
        tag: impl Into<Select<Tag>>,
    ) -> Result<Option<Message>, Error> {
        let probed = self.look(source.into(), tag.into(), true, None)?;
        Ok(probed.map(|probed| self.message(&probed)))
    }

    /// As [`Communicator::improbe`], and waits for a message.
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

    fn look(
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
        poll_fn(|cx| match self.look(source, tag, take, Some(cx.waker())) {
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
