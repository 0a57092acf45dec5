//! Tests of the matcher against two vectors that are searched from the front.

use proptest::prelude::*;

use super::*;
use crate::rank::Rank;
use crate::select::Select;
use crate::tag::Tag;
use crate::transport::ContextId;

#[derive(Clone, Debug)]
enum Step {
    Arrive(Key),
    Receive(Wanted),
    Probe(Wanted),
    /// Cancels the receive that was started so many receives ago.
    Cancel(usize),
}

#[derive(Clone, Copy, Debug)]
struct Wanted {
    context: ContextId,
    source: Select<Rank>,
    tag: Select<Tag>,
}

impl Wanted {
    fn takes(&self, key: &Key) -> bool {
        self.context == key.context && self.source.takes(key.source) && self.tag.takes(key.tag)
    }

    fn selection(&self) -> Selection {
        Selection::new(self.context, self.source, self.tag)
    }
}

#[derive(Default)]
struct Linear {
    receives: Vec<(usize, Wanted)>,
    messages: Vec<(usize, Key)>,
}

impl Linear {
    fn arrive(&mut self, key: Key, number: usize) -> Option<usize> {
        let found = self.receives.iter().position(|(_, wanted)| wanted.takes(&key));
        if found.is_none() {
            self.messages.push((number, key));
        }
        found.map(|index| self.receives.remove(index).0)
    }

    fn is_alone(&self, key: &Key) -> bool {
        let alike = self.messages.iter().any(|(_, other)| other == key);
        !alike && !self.receives.iter().any(|(_, wanted)| wanted.takes(key))
    }

    fn first(&self, wanted: &Wanted) -> Option<usize> {
        self.messages.iter().position(|(_, key)| wanted.takes(key))
    }

    fn receive(&mut self, wanted: Wanted, number: usize) -> Option<usize> {
        let found = self.first(&wanted);
        if found.is_none() {
            self.receives.push((number, wanted));
        }
        found.map(|index| self.messages.remove(index).0)
    }
}

fn key() -> impl Strategy<Value = Key> {
    (0..2u32, 0..3u32, 0..3u32).prop_map(|(context, source, tag)| Key {
        context: ContextId(context),
        source: Rank(source),
        tag: Tag(tag),
    })
}

fn wanted() -> impl Strategy<Value = Wanted> {
    (key(), prop::bool::weighted(0.3), prop::bool::weighted(0.3)).prop_map(
        |(key, any_source, any_tag)| Wanted {
            context: key.context,
            source: if any_source { Select::Any } else { Select::Only(key.source) },
            tag: if any_tag { Select::Any } else { Select::Only(key.tag) },
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => key().prop_map(Step::Arrive),
        4 => wanted().prop_map(Step::Receive),
        1 => wanted().prop_map(Step::Probe),
        1 => (0..8usize).prop_map(Step::Cancel),
    ]
}

proptest! {
    #[test]
    fn the_first_that_fits_is_taken(steps in prop::collection::vec(step(), 1..200)) {
        let mut matcher = Matcher::<usize, usize>::default();
        let mut linear = Linear::default();
        let mut started: Vec<(usize, EntryId)> = Vec::new();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Arrive(key) => {
                    prop_assert_eq!(matcher.is_alone(&key), linear.is_alone(&key));
                    let taken = matcher.take_receive(&key);
                    if taken.is_none() {
                        matcher.keep_message(key, number);
                    }
                    prop_assert_eq!(taken, linear.arrive(key, number));
                }
                Step::Receive(wanted) => {
                    let selection = wanted.selection();
                    let taken = matcher.take_message(&selection).map(|(_, message)| message);
                    if taken.is_none() {
                        let id = matcher.keep_receive(&selection, number);
                        started.push((number, id));
                    }
                    prop_assert_eq!(taken, linear.receive(wanted, number));
                }
                Step::Probe(wanted) => {
                    let seen = matcher.message(&wanted.selection()).map(|(_, message)| *message);
                    let expected = linear.first(&wanted).map(|index| linear.messages[index].0);
                    prop_assert_eq!(seen, expected);
                }
                Step::Cancel(ago) => {
                    let Some(&(number, id)) = started.iter().rev().nth(ago) else {
                        continue;
                    };
                    let cancelled = matcher.cancel(id);
                    let expected = linear.receives.iter().position(|(other, _)| *other == number);
                    prop_assert_eq!(cancelled, expected.map(|_| number));
                    expected.map(|index| linear.receives.remove(index));
                }
            }
            let expected = (linear.receives.len(), linear.messages.len());
            prop_assert_eq!(matcher.waiting(), expected);
        }
    }
}

#[test]
fn lists_of_tags_that_are_used_once_are_cleared_away() {
    let mut matcher = Matcher::<u32, u32>::default();
    for tag in 0..100_000 {
        let key = Key { context: ContextId(0), source: Rank(0), tag: Tag(tag) };
        matcher.keep_message(key, tag);
        assert_eq!(matcher.take_message(&key.exact()).map(|(_, tag)| tag), Some(tag));
    }
    assert!(matcher.messages.list_count() < 10_000);
}
