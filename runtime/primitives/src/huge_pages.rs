//! Huge pages for large memory: one page fault in place of 512, and as many fewer entries of the TLB.
#![allow(unsafe_code, reason = "advises the kernel about memory")]

/// Bytes of a huge page.
pub const HUGE_PAGE: usize = 2 << 20;

/// Asks the kernel for huge pages in memory that is hardly touched yet, if it is long enough to have
/// one inside. A hint: where the kernel has none, nothing changes.
pub fn prefer_huge_pages<T>(memory: &[T]) {
    const PAGE: usize = 4096;
    let start = memory.as_ptr().addr().next_multiple_of(PAGE);
    let end = memory.as_ptr_range().end.addr() & !(PAGE - 1);
    if end.saturating_sub(start) >= 2 * HUGE_PAGE {
        advise(memory.as_ptr().with_addr(start).cast(), end - start);
    }
}

#[cfg(not(miri))]
fn advise(start: *const u8, bytes: usize) {
    use rustix::mm::{Advice, madvise};
    // SAFETY: the pages are the caller's, and the advice changes nothing of what is in them.
    let _ = unsafe { madvise(start.cast_mut().cast(), bytes, Advice::LinuxHugepage) };
}

#[cfg(miri)]
fn advise(_start: *const u8, _bytes: usize) {}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    /// Returns the flags of the mapping that an address lies in.
    fn flags(address: usize) -> String {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let range = |line: &str| {
            let (start, end) = line.split(' ').next()?.split_once('-')?;
            let number = |text| usize::from_str_radix(text, 16).ok();
            Some(number(start)?..number(end)?)
        };
        let inside = |line: &&str| range(line).is_some_and(|range| range.contains(&address));
        let mut lines = maps.lines().skip_while(|line| !inside(line));
        lines.find(|line| line.starts_with("VmFlags:")).unwrap().to_owned()
    }

    #[test]
    fn long_memory_is_advised_and_short_memory_is_not() {
        if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
            eprintln!("skipped: this kernel has no transparent huge pages");
            return;
        }
        let long = vec![0_u64; 8 * HUGE_PAGE / 8];
        prefer_huge_pages(&long);
        let middle = long.as_ptr().addr() + 4 * HUGE_PAGE;
        assert!(flags(middle).contains(" hg"), "{}", flags(middle));
        assert!(long.iter().all(|&value| value == 0));
        let short = vec![0_u8; HUGE_PAGE];
        prefer_huge_pages(&short);
        assert!(!flags(short.as_ptr().addr() + HUGE_PAGE / 2).contains(" hg"));
        prefer_huge_pages::<u8>(&[]);
    }
}
