//! Prefetches of cache lines.
#![allow(unsafe_code, reason = "an instruction that the standard library does not offer")]

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefetched_place_is_as_before() {
        let place = (7_u64, [1_u8; 100]);
        prefetch_to_write(&place);
        assert_eq!(place, (7, [1; 100]));
    }
}
