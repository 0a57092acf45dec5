//! Lookahead of a program that spawns its tasks step by step.

use std::collections::VecDeque;
use std::sync::Arc;

use super::GroupInner;
use crate::error::Error;

/// Steps of a program that overlap, made by [`Group::lookahead`](super::Group::lookahead).
#[must_use = "a lookahead bounds nothing unless each step begins with it"]
pub struct Lookahead {
    group: Arc<GroupInner>,
    steps: usize,
    /// Tasks of the group that were spawned before each of the last steps.
    spawned_before: VecDeque<u64>,
}

impl Lookahead {
    pub(super) fn new(group: &Arc<GroupInner>, steps: usize) -> Self {
        Lookahead { group: Arc::clone(group), steps: steps.max(1), spawned_before: VecDeque::new() }
    }

    /// Begins a step. With `steps` steps that overlap, waits until as many tasks of the group are
    /// complete as were spawned before the last `steps` steps, of which this is one. The caller must
    /// not hold regions or locks that those tasks need.
    ///
    /// **Errors**: a task of the group has failed, or the group is cancelled, which the next
    /// [`Group::wait`](super::Group::wait) returns as well; a hang. **Cost**: reads the counts of
    /// every worker.
    pub async fn step(&mut self) -> Result<(), Error> {
        self.group.check_failure()?;
        self.spawned_before.push_back(self.group.tally.members_spawned());
        if self.spawned_before.len() > self.steps {
            self.spawned_before.pop_front();
            self.group.until_completed(self.spawned_before[0]).await?;
        }
        Ok(())
    }
}
