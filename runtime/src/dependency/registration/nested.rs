//! Registration of weak accesses, of accesses of children, and behind accesses that were passed on.

use super::Registration;
use crate::data::Mode;
use crate::dependency::bottom_map::Entry;
use crate::dependency::lending::Lending;
use crate::dependency::{Clauses, Declared, Domain};
use crate::record::{AccessHead, Waiter};

impl Registration {
    /// Registers an access that is weak, or that lies in an access of the parent.
    #[cold]
    pub(super) fn nested_access(
        &mut self,
        clauses: &dyn Clauses<'_>,
        domain: &mut Domain,
        declared: &Declared<'_>,
        new: Entry,
    ) {
        let (core, mode) = (declared.core(), declared.mode());
        let (lender, map) = (declared.lender(), core.map_index());
        self.waiter = Waiter::new(self.id, declared.is_weak());
        let mut lending = declared.is_weak().then(|| Lending::of(new.rect));
        let (joins, mut joined) = (clauses.joins(self.nth()), None);
        if !new.rect.is_empty() {
            core.tiles().for_each(&new.rect, |tile, rect| {
                let map = match lender {
                    Some(lender) => domain.lendings.of(lender).map(tile),
                    None => &mut domain.maps(map)[tile],
                };
                if let Some(lending) = &mut lending {
                    lending.begin_with(tile, map.inherit(&rect, mode));
                }
                let new = Entry { rect, ..new };
                if mode == Mode::Reduction {
                    self.reduction(map, joins, &mut joined, declared, new);
                } else {
                    map.register(new, mode, |earlier| self.link(earlier));
                }
            });
        } else {
            let map = match lender {
                Some(lender) => domain.lendings.of(lender).map(0),
                None => &mut domain.maps(map)[0],
            };
            map.register_empty(new);
        }
        self.link_behind(domain, declared);
        self.waiter = Waiter::new(self.id, false);
        if !new.rect.is_empty() {
            self.check_for_failures(domain, declared, lending.as_mut());
        }
        if let Some(lending) = lending {
            domain.lendings.add(new.head, lending);
        }
    }

    /// Links the task behind the accesses inside conflicting ones that were passed on.
    #[cold]
    pub(super) fn link_behind(&mut self, domain: &mut Domain, declared: &Declared<'_>) {
        let mut next = 0;
        while let Some(passed_on) = self.passed_on(next) {
            next += 1;
            let (tiles, rect) = (declared.core().tiles(), declared.rect());
            domain.lendings.for_each_conflict(
                passed_on,
                tiles,
                &rect,
                declared.mode(),
                |earlier| {
                    self.link(earlier);
                },
            );
        }
        if let Some(unusual) = &mut self.unusual {
            unusual.behind.clear();
        }
    }

    /// Returns access number `nth` of those inside which conflicts are still to be searched.
    fn passed_on(&self, nth: usize) -> Option<&'static AccessHead> {
        self.unusual.as_ref()?.behind.get(nth).copied()
    }

    /// Poisons the task if its region is poisoned; its children, if it only lends the region.
    fn check_for_failures(
        &self,
        domain: &mut Domain,
        declared: &Declared<'_>,
        lending: Option<&mut Lending>,
    ) {
        let (rect, map) = (declared.rect(), declared.core().map_index());
        let failures: Vec<_> = match declared.lender() {
            Some(lender) => domain.lendings.of(lender).poisoned(&rect).collect(),
            None => domain.all_poisoned(map, &rect).collect(),
        };
        match lending {
            Some(lending) => {
                failures.iter().for_each(|(poisoned, failure)| lending.note(poisoned, failure));
            }
            None => failures.iter().for_each(|(_, failure)| self.task.poison(failure)),
        }
    }
}
