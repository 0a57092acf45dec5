//! Prefetches of cache lines.
#![allow(unsafe_code, reason = "an instruction that the standard library does not offer")]

/// Bytes of a cache line.
const LINE: u64 = 64;

/// Has the cache line at the start of `place`, which is about to be written, brought to this core
/// meanwhile. A hint: nothing else changes, and on other processors than x86-64 nothing happens.
#[inline]
pub fn prefetch_to_write<T>(place: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the instruction changes no register and no contents of memory, and faults nowhere.
    unsafe {
        let place = std::ptr::from_ref(place);
        std::arch::asm!("prefetchw [{}]", in(reg) place, options(nostack, preserves_flags));
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = place;
}

/// Has the cache lines of `memory`, which is about to be written, brought to this core meanwhile. A hint as
/// [`prefetch_to_write`].
#[inline]
pub fn prefetch_all_to_write<T>(memory: &[T]) {
    lines(memory).for_each(prefetch_to_write);
}

/// Has the cache lines of `memory`, which is about to be read, brought to this core meanwhile. A hint as
/// [`prefetch_to_write`].
#[inline]
pub fn prefetch_all<T>(memory: &[T]) {
    lines(memory).for_each(prefetch);
}

/// Has the cache lines of `bytes` bytes at `address`, which are about to be written, brought to this core meanwhile. A
/// hint as [`prefetch_to_write`]: the address may be any number.
#[inline]
pub fn prefetch_address_to_write(address: u64, bytes: u64) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    for line in
        (address / LINE..=address.wrapping_add(bytes.max(1) - 1) / LINE).map(|line| line * LINE)
    {
        // SAFETY: as in [`prefetch_to_write`].
        unsafe {
            std::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags));
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (address, bytes);
}

fn prefetch<T>(place: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: as in [`prefetch_to_write`].
    unsafe {
        let place = std::ptr::from_ref(place);
        std::arch::asm!("prefetcht0 [{}]", in(reg) place, options(nostack, preserves_flags));
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = place;
}

/// Iterates over an element on each cache line of `memory`, as long as its elements are no longer than a line.
fn lines<T>(memory: &[T]) -> impl Iterator<Item = &T> {
    let step = (LINE as usize / size_of::<T>().max(1)).max(1);
    memory.iter().step_by(step).chain(memory.last())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefetched_place_is_as_before() {
        let place = (7_u64, [1_u8; 100]);
        prefetch_to_write(&place);
        assert_eq!(place, (7, [1; 100]));
        prefetch_all(&place.1);
        prefetch_all_to_write(&place.1);
        prefetch_address_to_write(std::ptr::from_ref(&place).addr() as u64, 108);
        assert_eq!(place, (7, [1; 100]));
        for address in [0, u64::MAX - 1, u64::MAX] {
            prefetch_address_to_write(address, 3);
        }
    }

    #[test]
    fn memory_has_a_place_on_each_line() {
        let memory = [0_u64; 20];
        let places = |memory: &[u64]| -> Vec<usize> {
            let start = memory.as_ptr().addr();
            lines(memory).map(|place| (std::ptr::from_ref(place).addr() - start) / 8).collect()
        };
        assert_eq!(places(&memory), [0, 8, 16, 19]);
        assert_eq!(places(&memory[..1]), [0, 0]);
        assert!(places(&[]).is_empty());
        assert_eq!(lines(&[(); 3]).count(), 2);
    }
}
