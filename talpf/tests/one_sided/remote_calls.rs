//! Remote calls: every request gets its own answer, whoever calls at the same time, and ends that are
//! gone are errors.

use std::future::ready;

use futures::future::poll_immediate;
use talpf::{Error, QueueError, Rank};

use crate::common;

#[test]
fn every_request_gets_its_answer() {
    for (ranks, workers) in [(2, 1), (2, 2), (5, 2)] {
        let ends = common::run(common::config(ranks, workers), |ctx| async move {
            let calls = ctx.remote_calls::<u64, [u64; 2]>(0, 1..ranks).await?;
            let mut served = 0;
            if let Some(server) = calls.server {
                let answer = |client: Rank, request| {
                    served += 1;
                    ready([u64::from(client.0), request + 1])
                };
                server.serve(answer).await?;
            }
            if let Some(mut client) = calls.client {
                for request in 0..200 {
                    let answer = client.call(request).await?;
                    assert_eq!(answer, [u64::from(ctx.rank().0), request + 1]);
                }
            }
            Ok(served)
        });
        assert_eq!(ends.unwrap()[0], 200 * (ranks - 1), "{ranks} ranks");
    }
}

/// An answer may await tasks of the server.
#[test]
fn answers_of_tasks() {
    let ends = common::run(common::config(3, 1), |ctx| async move {
        let calls = ctx.remote_calls::<u64, u64>(2, [0, 1]).await?;
        let group = ctx.group().clone();
        if let Some(server) = calls.server {
            let answer = move |_, request: u64| {
                let task = group.task("square").run(move || request * request);
                async move { task.unwrap().await.unwrap() }
            };
            server.serve(answer).await?;
        }
        match calls.client {
            Some(mut client) => client.call(u64::from(ctx.rank().0) + 5).await,
            None => Ok(0),
        }
    });
    assert_eq!(ends.unwrap(), [25, 36, 0]);
}

#[test]
fn a_call_that_is_dropped_does_not_answer_the_next() {
    let ends = common::run(common::config(2, 1), |ctx| async move {
        let calls = ctx.remote_calls::<u64, u64>(0, [1]).await?;
        if let Some(server) = calls.server {
            // Not before the client has dropped its call.
            ctx.notifications().wait(0).await?;
            server.serve(|_, request| ready(10 * request)).await?;
        }
        if let Some(mut client) = calls.client {
            let begun = poll_immediate(client.call(1)).await;
            assert!(begun.is_none(), "nobody serves");
            ctx.notifications().notify(0, 0, 0).await?;
            assert_eq!(client.call(2).await?, 20);
            assert_eq!(client.call(3).await?, 30);
        }
        Ok(())
    });
    ends.unwrap();
}

#[test]
fn a_server_that_is_gone_is_an_error() {
    let ends = common::run(common::config(2, 1), |ctx| async move {
        let calls = ctx.remote_calls::<u64, u64>(0, [1]).await?;
        drop(calls.server);
        if let Some(mut client) = calls.client {
            for _ in 0..2 {
                let error = client.call(1).await.unwrap_err();
                let of_server = |receiver: Rank| receiver == Rank(0);
                assert!(
                    matches!(error, Error::Queue(QueueError::ReceiverDropped { receiver, .. }) if of_server(receiver)),
                    "{error:?}"
                );
            }
        }
        Ok(())
    });
    ends.unwrap();
}

#[test]
fn clients_that_are_gone_end_the_server() {
    let ends = common::run(common::config(3, 2), |ctx| async move {
        let calls = ctx.remote_calls::<u64, u64>(0, 1..3).await?;
        if let Some(server) = calls.server {
            server.serve(|_, request| ready(request)).await?;
        }
        if let Some(mut client) = calls.client {
            // The answer may be there or not.
            drop(poll_immediate(client.call(1)).await);
        }
        Ok(())
    });
    ends.unwrap();
}
