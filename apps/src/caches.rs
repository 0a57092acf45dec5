//! Sizes of a core's caches, from which default block sizes are derived.

use std::fmt;
use std::fs;

/// Sizes of the caches that a core has or shares. **Units**: bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caches {
    /// Size of the second level, of one core.
    pub l2: usize,
    /// Size of the last level, shared by cores.
    pub last: usize,
    /// `true` if the operating system reports both sizes.
    pub are_known: bool,
}

impl Caches {
    /// Sizes assumed for a machine that does not report its own.
    pub const ASSUMED: Self = Self { l2: 1 << 20, last: 16 << 20, are_known: false };

    /// Reads the caches of the first core; assumes typical sizes if the system does not report
    /// them.
    pub fn of_this_machine() -> Self {
        let read = |index: usize, name: &str| {
            let file = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}");
            fs::read_to_string(file).ok()
        };
        Self::of(read).unwrap_or(Self::ASSUMED)
    }

    /// Finds the levels with `read`, which returns a property by the index of a cache and its name.
    fn of(read: impl Fn(usize, &str) -> Option<String>) -> Option<Self> {
        let mut levels = Vec::new();
        for index in 0.. {
            let Some(level) = read(index, "level") else { break };
            if read(index, "type")?.trim() != "Instruction" {
                levels.push((level.trim().parse::<u32>().ok()?, bytes(&read(index, "size")?)?));
            }
        }
        let (_, l2) = *levels.iter().find(|(level, _)| *level == 2)?;
        let (_, last) = levels.into_iter().max()?;
        Some(Self { l2, last, are_known: true })
    }
}

impl fmt::Display for Caches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { l2, last, are_known } = self;
        let how = if *are_known { "" } else { ", assumed: the system does not report them" };
        write!(f, "{} KiB second level, {} KiB last level{how}", l2 >> 10, last >> 10)
    }
}

/// Parses a size of the system, such as `1024K`. Returns `None` for a cache that is switched off.
fn bytes(text: &str) -> Option<usize> {
    let text = text.trim();
    let (number, shift) = match text.strip_suffix(['K', 'k']) {
        Some(number) => (number, 10),
        None => text.strip_suffix('M').map_or((text, 0), |number| (number, 20)),
    };
    number.parse::<usize>().ok().map(|number| number << shift).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the caches of a machine whose files have these levels, types and sizes.
    fn caches(files: &[(&str, &str, &str)]) -> Option<Caches> {
        Caches::of(|index, name| {
            let (level, kind, size) = files.get(index)?;
            let text = match name {
                "level" => level,
                "type" => kind,
                _ => size,
            };
            Some(format!("{text}\n"))
        })
    }

    #[test]
    fn levels_are_found_in_any_order() {
        let [data, code] = [("1", "Data", "32K"), ("1", "Instruction", "32K")];
        let [second, third] = [("2", "Unified", "1024K"), ("3", "Unified", "32M")];
        let found = Some(Caches { l2: 1 << 20, last: 32 << 20, are_known: true });
        assert_eq!(caches(&[data, code, second, third]), found);
        assert_eq!(caches(&[third, code, second]), found);
    }

    #[test]
    fn the_second_level_may_be_the_last() {
        let found = caches(&[("1", "Data", "64K"), ("2", "Unified", "4096K")]);
        assert_eq!(found, Some(Caches { l2: 4 << 20, last: 4 << 20, are_known: true }));
    }

    #[test]
    fn incomplete_information_of_the_system_is_ignored() {
        for size in ["", "K", "0K", "1024X", "-1K"] {
            assert_eq!(caches(&[("2", "Unified", size)]), None, "{size:?}");
        }
        assert_eq!(caches(&[]), None);
        assert_eq!(caches(&[("1", "Data", "32K")]), None, "no second level");
    }
}
