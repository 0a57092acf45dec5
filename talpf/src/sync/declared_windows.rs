//! The windows of a sync that is being declared.

use smallvec::SmallVec;
use talpf_runtime::{ArrayLabel, Rect, Region};

use crate::error::Error;
use crate::held_guard::HeldGuard;
use crate::numbers::{LaneNumber, Round};
use crate::slot::SlotTable;
use crate::window::{Area, Areas, Kind};

/// The windows of a sync, by number.
pub(super) type DeclaredWindows<'r> = SmallVec<[DeclaredWindow<'r>; 2]>;

/// A declared window.
pub(super) struct DeclaredWindow<'r> {
    pub(super) kind: Kind,
    pub(super) opens: Opens<'r>,
}

/// The source of the guard with which a window opens.
pub(super) enum Opens<'r> {
    /// A task on the region, to be spawned.
    Task(Region<'r, ()>),
    /// A guard that the caller has given.
    Now { guard: HeldGuard, array: u64, rect: Rect },
}

impl Opens<'_> {
    /// Returns the array of the window, and its part of the array.
    #[inline]
    fn part(&self) -> (u64, Rect) {
        match self {
            Opens::Task(region) => (region.array_id(), region.rect()),
            Opens::Now { array, rect, .. } => (*array, *rect),
        }
    }
}

/// Adds the areas of the windows of a round to `areas`, which was empty, and sorts them.
///
/// **Errors**: a region that is not of a windowed slot, or outside its array; windows that overlap.
#[inline]
pub(super) fn add_areas_of(
    windows: &[DeclaredWindow<'_>],
    slots: &SlotTable,
    (lane, round): (LaneNumber, Round),
    areas: &mut Areas,
) -> Result<(), Error> {
    for DeclaredWindow { kind, opens } in windows {
        if let Opens::Task(region) = opens {
            region.check()?;
        }
        let (array, rect) = opens.part();
        areas.push(slots.windowed(array, |slot| Area {
            slot: slot.number,
            rect,
            cols: slot.cols(),
            kind: *kind,
        })?);
    }
    let overlap = |number: usize| {
        let (array, _) = windows[number].opens.part();
        Error::WindowsOverlap { lane, round, array: ArrayLabel::of_id(array) }
    };
    areas.sort().map_err(overlap)
}
