//! Misuse of a channel is an error that says what is wrong, and ends the run on every rank.

use std::time::Duration;

use super::{LANE, Ring, refused};
use crate::common;
use talpf::{DoubleBufferedChannel, Error, Link, Rank};

/// Makes a channel of other links at rank 1 than at the others.
fn refused_links(
    what: &str,
    links: impl for<'a> Fn(&'a Ring) -> Vec<Link<'a, u64>> + Copy + Send + 'static,
) -> Error {
    refused(what, move |ctx, wrong| async move {
        let ring = Ring::arrays(&ctx, 4).await?;
        let links = if wrong { links(&ring) } else { vec![ring.link(0), ring.link(1)] };
        ctx.double_buffered_channel(ctx.lane(LANE)?, &links).await.map(drop)
    })
}

#[test]
fn links_that_do_not_match() {
    let error = refused_links("one too few", |ring| vec![ring.link(0)]);
    common::says(&error, &["number of links to the other rank is ", "at rank "]);
    let error =
        refused_links("one too many", |ring| vec![ring.link(0), ring.link(1), ring.link(1)]);
    common::says(&error, &["overlaps another buffer"]);
    let error = refused_links("shorter", |ring| {
        let buffers = [ring.inbox.region(0..3), ring.inbox.region(4..7)];
        vec![Link { peer: Rank(0), buffers }, ring.link(1)]
    });
    common::says(&error, &["number of elements of a buffer is ", "3", "4", "at rank "]);
    let error = refused_links("of two lengths", |ring| {
        let buffers = [ring.inbox.region(0..4), ring.inbox.region(4..7)];
        vec![Link { peer: Rank(0), buffers }, ring.link(1)]
    });
    common::says(
        &error,
        &["link 0: a region of array ", "has not as many elements as the other buffer"],
    );
    let error = refused_links("to nobody", |ring| vec![Link { peer: Rank(9), ..ring.link(0) }]);
    common::says(&error, &["rank 9 does not exist"]);
    let error = refused_links("outside", |ring| {
        let buffers = [ring.inbox.region(0..4), ring.inbox.region(16..20)];
        vec![Link { peer: Rank(0), buffers }, ring.link(1)]
    });
    common::says(&error, &["elements 16..20 of slot", "at rank 1 do not exist: the slot has 16"]);
    let error = refused_links("not registered", |ring| {
        let buffers = [ring.values.tile(0), ring.values.tile(1)];
        vec![Link { peer: Rank(0), buffers }, ring.link(1)]
    });
    common::says(&error, &["is not registered: "]);
}

#[test]
fn elements_of_another_size() {
    let error = refused("u32", |ctx, wrong| async move {
        let (wide, narrow) = (common::array(&ctx, vec![0u64; 8])?, vec![0u32; 8]);
        let narrow = common::array(&ctx, narrow)?;
        ctx.register_global(&wide).await?;
        ctx.register_global(&narrow).await?;
        let peer = Rank([1, 0, 2][ctx.rank().0 as usize]);
        if wrong {
            let buffers = [narrow.region(0..4), narrow.region(4..8)];
            ctx.double_buffered_channel(ctx.lane(LANE)?, &[Link { peer, buffers }]).await.map(drop)
        } else {
            let buffers = [wide.region(0..4), wide.region(4..8)];
            ctx.double_buffered_channel(ctx.lane(LANE)?, &[Link { peer, buffers }]).await.map(drop)
        }
    });
    common::says(&error, &["bytes of an element is ", "8", "4", "at rank "]);
}

#[test]
fn ranks_that_call_different_things() {
    let error = refused("another lane", |ctx, wrong| async move {
        let lane = if wrong { 4 } else { LANE };
        ctx.double_buffered_channel::<u64>(ctx.lane(lane)?, &[]).await.map(drop)
    });
    common::says(&error, &["number of the lane is ", "3", "4", "at rank "]);
    let error = refused("a registration", |ctx, wrong| async move {
        let array = common::array(&ctx, vec![0u64])?;
        match wrong {
            true => ctx.register_global(&array).await.map(drop),
            false => ctx.double_buffered_channel::<u64>(ctx.lane(LANE)?, &[]).await.map(drop),
        }
    });
    common::says(
        &error,
        &["this rank calls", "where rank", "double_buffered_channel", "register_global"],
    );
}

#[test]
fn a_lane_belongs_to_the_channel_alone() {
    let error = refused("used before", |ctx, wrong| async move {
        if wrong {
            drop(ctx.lane(LANE)?.round());
        }
        ctx.double_buffered_channel::<u64>(ctx.lane(LANE)?, &[]).await.map(drop)
    });
    common::says(&error, &["lane 3 was used before"]);
    let error = refused("lane 0", |ctx, wrong| async move {
        let lane = if wrong { 0 } else { LANE };
        ctx.double_buffered_channel::<u64>(ctx.lane(lane)?, &[]).await.map(drop)
    });
    common::says(&error, &["lane 0 was used before"]);
    let taken = "lane 3 is or was one of a double-buffered channel";
    let error = refused("taken twice", |ctx, wrong| async move {
        let _first = ctx.double_buffered_channel::<u64>(ctx.lane(LANE)?, &[]).await?;
        let lane = if wrong { LANE } else { 5 };
        ctx.double_buffered_channel::<u64>(ctx.lane(lane)?, &[]).await.map(drop)
    });
    common::says(&error, &[taken]);
    let error = refused("taken again", |ctx, wrong| async move {
        drop(ctx.double_buffered_channel::<u64>(ctx.lane(LANE)?, &[]).await?);
        ctx.lane(if wrong { LANE } else { 5 }).map(drop)
    });
    common::says(&error, &[taken]);
}

#[test]
fn puts_that_are_missing_or_wrong() {
    let error = refused("missing", |ctx, wrong| async move {
        let mut ring = Ring::new(&ctx, 4).await?;
        for round in 0..3 {
            if wrong && round == 2 {
                ring.put(0)?;
                return ring.channel().sync().map(drop);
            }
            ring.round(&ctx, round, 0, Duration::ZERO)?;
        }
        ctx.group().wait().await.map_err(Error::from)
    });
    common::says(&error, &["lane 3 round 2: 0 puts on link 1, expected one in every round"]);
    let error = refused("twice", |ctx, wrong| async move {
        let mut ring = Ring::new(&ctx, 4).await?;
        if wrong {
            ring.put(0)?;
            ring.put(0)?;
        }
        ring.round(&ctx, 0, 0, Duration::ZERO)?;
        ctx.group().wait().await.map_err(Error::from)
    });
    common::says(&error, &["lane 3 round 0: 2 puts on link 0, expected one in every round"]);
    let put = |what: &str, put: fn(&mut DoubleBufferedChannel<u64>, &Ring) -> Result<(), Error>| {
        refused(what, move |ctx, wrong| async move {
            let mut ring = Ring::new(&ctx, 4).await?;
            if wrong {
                let mut channel = ring.channel.take().expect("made by `new`");
                return put(&mut channel, &ring);
            }
            ring.round(&ctx, 0, 0, Duration::ZERO)?;
            ctx.group().wait().await.map_err(Error::from)
        })
    };
    let error = put("buffer of this round", |channel, ring| {
        channel.put(0, &ring.values.tile(0), &ring.buffer(0, 0))
    });
    common::says(&error, &["link 0: a region of array ", "is not its buffer for the next round"]);
    let error = put("buffer of another link", |channel, ring| {
        channel.put(1, &ring.values.tile(0), &ring.buffer(0, 1))
    });
    common::says(&error, &["link 1: a region of array ", "is not its buffer for the next round"]);
    let error = put("no such link", |channel, ring| {
        channel.put(2, &ring.values.tile(0), &ring.buffer(0, 1))
    });
    common::says(&error, &["link 2 does not exist, the channel has 2"]);
    let error = put("too short", |channel, ring| {
        channel.put(0, &ring.values.region(0..3), &ring.buffer(0, 1))
    });
    common::says(&error, &["number of elements to put on a link is 3, expected at least 4"]);
}
