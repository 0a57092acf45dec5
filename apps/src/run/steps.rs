//! Overlapping steps of a rank.

use std::collections::VecDeque;
use std::iter;

use talpf::SyncHandle;
use talpf_runtime::{JoinHandle, Token};

use super::{Observer, Progress, RankContext};
use crate::Error;

/// Default number of steps that a rank spawns before it waits for the end of the first of them.
/// Enough to have work while data is in flight; more costs memory and caches.
const LOOKAHEAD: usize = 4;

/// Spawned steps of one rank that have not ended.
pub(crate) struct Steps {
    /// Tokens that the tasks of a step read and its end writes, so that the end comes after them.
    tokens: Vec<Token>,
    spawned: usize,
    under_way: VecDeque<SpawnedStep>,
    /// Counter of steps, at rank 0 for all.
    progress: Option<Progress>,
}

struct SpawnedStep {
    computed: JoinHandle<()>,
    exchanged: Vec<SyncHandle>,
}

impl Steps {
    pub(crate) fn new(ctx: &RankContext, observer: &Observer) -> Result<Self, Error> {
        Self::overlapping(LOOKAHEAD, ctx, observer)
    }

    /// Creates steps of which up to `lookahead` overlap.
    pub(crate) fn overlapping(
        lookahead: usize,
        ctx: &RankContext,
        observer: &Observer,
    ) -> Result<Self, Error> {
        let tokens = iter::repeat_with(|| Token::new(ctx.group())).take(lookahead);
        Ok(Self {
            tokens: tokens.collect::<Result<_, _>>()?,
            spawned: 0,
            under_way: VecDeque::with_capacity(lookahead),
            progress: (ctx.rank() == 0).then(|| observer.progress.clone()),
        })
    }

    /// Waits until one more step may be spawned. Returns the token that its tasks need as input.
    pub(crate) async fn begin(&mut self) -> Result<Token, Error> {
        if self.under_way.len() == self.tokens.len() {
            self.end_of_first().await?;
        }
        Ok(self.token())
    }

    /// Returns the token that the tasks of the step being spawned, or of the next one, need as
    /// input.
    pub(crate) fn token(&self) -> Token {
        self.tokens[self.spawned % self.tokens.len()].clone()
    }

    /// Ends the spawning of a step, with the syncs that belong to it.
    pub(crate) fn end(
        &mut self,
        ctx: &RankContext,
        exchanged: impl IntoIterator<Item = SyncHandle>,
    ) -> Result<(), Error> {
        let token = &self.tokens[self.spawned % self.tokens.len()];
        let end = ctx.group().task("step").inline().inout(&token.region());
        let exchanged = exchanged.into_iter().collect();
        self.under_way.push_back(SpawnedStep { computed: end.run(|_| ())?, exchanged });
        self.spawned += 1;
        Ok(())
    }

    /// Waits for all steps, and for the messages of the last of them.
    pub(crate) async fn finish(mut self, ctx: &RankContext) -> Result<(), Error> {
        while !self.under_way.is_empty() {
            self.end_of_first().await?;
        }
        match ctx {
            RankContext::OneSided(..) => Ok(()),
            RankContext::TwoSided(_) => Ok(ctx.group().wait().await?),
        }
    }

    /// Waits until all tasks of the oldest step are complete and its rounds have ended.
    async fn end_of_first(&mut self) -> Result<(), Error> {
        if let Some(step) = self.under_way.pop_front() {
            step.computed.await?;
            for sync in step.exchanged {
                sync.await?;
            }
            if let Some(progress) = &self.progress {
                progress.advance();
            }
        }
        Ok(())
    }
}
