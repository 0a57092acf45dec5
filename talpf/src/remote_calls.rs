//! Remote calls: requests of several ranks that one rank answers, on queues.
//!
//! Requests take the queue from all clients to the server, and answers a queue back to each client. A
//! client has one call at a time, so an answer needs no number: it is that of the last request. A call
//! that is dropped is over all the same, and the next one takes its answer first.

use std::fmt;
use std::future::Future;

use bytemuck::Pod;
use futures::{SinkExt, StreamExt};

use crate::context::Context;
use crate::error::{Error, QueueError};
use crate::numbers::Rank;
use crate::queue::{QueueReceiver, QueueSender};

/// Number of requests of a client that are under way.
const CALLS: usize = 1;

/// Calls of several ranks to one, at one rank: as a client, as the server, both or none. Made by
/// [`Context::remote_calls`].
///
/// ```
/// use talpf::{Config, Context, Error, exec};
///
/// // Rank 0 adds up what the others call it with, and answers with the sum so far.
/// let ends = exec(Config { ranks: 3, ..Config::default() }, async |ctx: Context| {
///     let calls = ctx.remote_calls::<u64, u64>(0, 1..ctx.size()).await?;
///     let mut sum = 0;
///     if let Some(server) = calls.server {
///         let add = |_client, number| {
///             sum += number;
///             std::future::ready(sum)
///         };
///         server.serve(add).await?;
///     }
///     if let Some(mut client) = calls.client {
///         assert!(client.call(20).await? < client.call(1).await?);
///     }
///     Ok::<_, Error>(sum)
/// })?;
/// assert_eq!(ends, [42, 0, 0]);
/// # Ok::<(), Error>(())
/// ```
///
/// **Source**: active messages (von Eicken et al., 1992).
#[derive(Debug)]
pub struct RemoteCalls<Q: Pod + Send + Sync, A: Pod + Send + Sync> {
    /// The end that calls, if this rank is a client.
    pub client: Option<CallClient<Q, A>>,
    /// The end that answers, at the server.
    pub server: Option<CallServer<Q, A>>,
}

/// The calling end of [`RemoteCalls`].
pub struct CallClient<Q: Pod + Send + Sync, A: Pod + Send + Sync> {
    requests: QueueSender<Q>,
    answers: QueueReceiver<A>,
    /// `true` while a request has no answer.
    is_under_way: bool,
}

/// The answering end of [`RemoteCalls`].
pub struct CallServer<Q: Pod + Send + Sync, A: Pod + Send + Sync> {
    requests: QueueReceiver<Q>,
    /// The senders of the clients, in the order of their ranks.
    answers: Vec<(Rank, QueueSender<A>)>,
}

impl<Q: Pod + Send + Sync, A: Pod + Send + Sync> CallClient<Q, A> {
    /// Calls the server and returns its answer.
    ///
    /// **Completion**: the answer has come. If the future is dropped before, the server may have got the request.
    /// **Errors**: a server that has ended ([`QueueError::ReceiverDropped`], [`QueueError::Failed`]); a run
    /// that has failed ([`QueueError::Failed`]).
    pub async fn call(&mut self, request: Q) -> Result<A, Error> {
        if self.is_under_way {
            self.requests.flush().await?;
            self.answer().await?;
        }
        self.is_under_way = true;
        self.requests.send(request).await?;
        self.answer().await
    }

    async fn answer(&mut self) -> Result<A, Error> {
        let answer = self.answers.next().await;
        self.is_under_way = false;
        let (rank, receiver) = (self.answers.receiver(), self.requests.receiver());
        answer.unwrap_or(Err(Error::Queue(QueueError::ReceiverDropped { rank, receiver })))
    }
}

impl<Q: Pod + Send + Sync, A: Pod + Send + Sync> CallServer<Q, A> {
    /// Answers requests by `answer`, one after another in the order in which they come, until every
    /// client is dropped. `answer` also gets the client.
    ///
    /// **Errors**: a client lost in a panic, after the others have ended; a run that has failed
    /// ([`QueueError::Failed`]).
    pub async fn serve<F>(mut self, mut answer: impl FnMut(Rank, Q) -> F) -> Result<(), Error>
    where
        F: Future<Output = A> + Send,
    {
        let mut ended = Ok(());
        while let Some(request) = self.requests.next().await {
            let source = self.requests.source();
            let answered = match request.map(|request| source.map(|client| (client, request))) {
                Ok(Some((client, request))) => {
                    let answer = answer(client, request).await;
                    self.send(client, answer).await
                }
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            };
            ended = ended.and(answered);
        }
        ended
    }

    /// Sends an answer, unless its client is gone.
    async fn send(&mut self, client: Rank, answer: A) -> Result<(), Error> {
        let Ok(place) = self.answers.binary_search_by_key(&client, |(rank, _)| *rank) else {
            return Ok(());
        };
        match self.answers[place].1.send(answer).await {
            Err(Error::Queue(QueueError::ReceiverDropped { .. })) => Ok(()),
            sent => sent,
        }
    }
}

impl Context {
    /// Makes calls of `clients` to `server`, with requests `Q` and answers `A`. The server may be a
    /// client, too: it serves in another task then.
    ///
    /// Collective: every rank calls it with the same arguments, in the same order among its
    /// collective calls.
    ///
    /// **Completion**: all ranks have their ends.
    /// **Errors**: as [`Context::remote_queue`].
    /// **Cost**: a [`RemoteQueue`](crate::RemoteQueue) to the server, and one to each client.
    pub async fn remote_calls<Q: Pod + Send + Sync, A: Pod + Send + Sync>(
        &self,
        server: impl Into<Rank>,
        clients: impl IntoIterator<Item = impl Into<Rank>>,
    ) -> Result<RemoteCalls<Q, A>, Error> {
        let server = server.into();
        let mut clients: Vec<Rank> = clients.into_iter().map(Into::into).collect();
        clients.sort_unstable();
        clients.dedup();
        let requests = self.remote_queue::<Q>(server, clients.iter().copied(), CALLS).await?;
        let (mut senders, mut receiver) = (Vec::new(), None);
        for client in clients {
            let answers = self.remote_queue::<A>(client, [server], CALLS).await?;
            senders.extend(answers.sender.map(|sender| (client, sender)));
            receiver = receiver.or(answers.receiver);
        }
        let client = requests.sender.zip(receiver).map(|(requests, answers)| CallClient {
            requests,
            answers,
            is_under_way: false,
        });
        let server = requests.receiver.map(|requests| CallServer { requests, answers: senders });
        Ok(RemoteCalls { client, server })
    }
}

impl<Q: Pod + Send + Sync, A: Pod + Send + Sync> fmt::Debug for CallClient<Q, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallClient of {:?}", self.requests)
    }
}

impl<Q: Pod + Send + Sync, A: Pod + Send + Sync> fmt::Debug for CallServer<Q, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallServer of {:?}", self.requests)
    }
}
