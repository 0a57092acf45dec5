//! Dense array of the requests under way, which are tested together.
//!
//! `MPI_Testsome` costs 1 to 6 ns for each request and pass, tests one by one 25 to 50 ns. A
//! complete request is replaced by the last one.

use super::Refused;

/// Tests requests together.
pub(super) trait TestSome {
    /// Type of the requests.
    type Request;
    /// Type of the outcome of a complete request.
    type Outcome;

    /// Tests one request. Returns its outcome if it is complete.
    fn test(&mut self, request: &mut Self::Request) -> Result<Option<Self::Outcome>, Refused>;

    /// Tests all requests. Appends the index and the outcome of every complete request to
    /// `completed`, in any order. Complete requests are not tested again.
    fn test_some(
        &mut self,
        requests: &mut [Self::Request],
        completed: &mut Vec<(usize, Self::Outcome)>,
    ) -> Result<(), Refused>;
}

/// Requests, each with the operation that it belongs to.
pub(super) struct Slab<T: TestSome, O> {
    tester: T,
    requests: Vec<T::Request>,
    operations: Vec<O>,
    /// Empty between passes.
    completed: Vec<(usize, T::Outcome)>,
}

impl<T: TestSome, O> Slab<T, O> {
    pub(super) fn new(tester: T) -> Self {
        Slab { tester, requests: Vec::new(), operations: Vec::new(), completed: Vec::new() }
    }

    pub(super) fn push(&mut self, request: T::Request, operation: O) {
        self.requests.push(request);
        self.operations.push(operation);
    }

    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Tests all requests and calls `ended` for each complete one.
    #[inline]
    pub(super) fn pass(&mut self, mut ended: impl FnMut(O, T::Outcome)) -> Result<(), Refused> {
        if let [request] = &mut *self.requests {
            let Some(outcome) = self.tester.test(request)? else { return Ok(()) };
            self.requests.clear();
            if let Some(operation) = self.operations.pop() {
                ended(operation, outcome);
            }
            return Ok(());
        }
        self.tester.test_some(&mut self.requests, &mut self.completed)?;
        // From the end, so that the indices of the others stay valid.
        self.completed.sort_unstable_by_key(|&(place, _)| place);
        while let Some((place, outcome)) = self.completed.pop() {
            self.requests.swap_remove(place);
            ended(self.operations.swap_remove(place), outcome);
        }
        Ok(())
    }

    /// Returns every request with its operation.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&mut T::Request, &mut O)> {
        self.requests.iter_mut().zip(&mut self.operations)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Tester that completes the requests with the given numbers, in order of their indices or
    /// backwards.
    struct Oracle {
        complete: Vec<u32>,
        backwards: bool,
    }

    impl TestSome for Oracle {
        type Request = u32;
        type Outcome = u32;

        fn test(&mut self, request: &mut u32) -> Result<Option<u32>, Refused> {
            Ok(self.complete.contains(request).then_some(*request))
        }

        fn test_some(
            &mut self,
            requests: &mut [u32],
            completed: &mut Vec<(usize, u32)>,
        ) -> Result<(), Refused> {
            let places = requests.iter().enumerate();
            let found = places.filter(|(_, request)| self.complete.contains(request));
            completed.extend(found.map(|(place, &request)| (place, request)));
            if self.backwards {
                completed.reverse();
            }
            Ok(())
        }
    }

    fn ended(slab: &mut Slab<Oracle, u32>, complete: Vec<u32>) -> Vec<u32> {
        slab.tester.complete = complete;
        let mut ended = Vec::new();
        slab.pass(|operation, outcome| {
            assert_eq!(operation, outcome, "the operation of another request");
            ended.push(operation);
        })
        .unwrap();
        ended.sort_unstable();
        ended
    }

    proptest! {
        #[test]
        fn every_operation_ends_once_with_its_own_request(
            backwards: bool,
            rounds in prop::collection::vec((0u32..6, prop::collection::vec(0u32..40, 0..8)), 0..12),
        ) {
            let mut slab = Slab::new(Oracle { complete: Vec::new(), backwards });
            let (mut next, mut open) = (0, Vec::new());
            for (pushes, mut complete) in rounds {
                for _ in 0..pushes {
                    slab.push(next, next);
                    open.push(next);
                    next += 1;
                }
                complete.sort_unstable();
                complete.dedup();
                complete.retain(|number| open.contains(number));
                open.retain(|number| !complete.contains(number));
                prop_assert_eq!(ended(&mut slab, complete.clone()), complete);
            }
            prop_assert_eq!(slab.is_empty(), open.is_empty());
            prop_assert_eq!(ended(&mut slab, open.clone()), open);
            prop_assert!(slab.is_empty());
        }
    }

    #[test]
    fn requests_keep_their_operations() {
        let mut slab = Slab::new(Oracle { complete: Vec::new(), backwards: false });
        (10..15).for_each(|number| slab.push(number, number));
        assert_eq!(ended(&mut slab, vec![11]), [11]);
        let mut left: Vec<_> = slab.iter_mut().map(|(request, own)| (*request, *own)).collect();
        left.sort_unstable();
        assert_eq!(left, [10, 12, 13, 14].map(|number| (number, number)));
    }
}
