//! Readings of the clock of process 0, in comments of the trace of another process.

use super::EXACT_LIMIT;
use crate::processes::ClockReading;

/// Begin, middle and end of such a comment.
const TEXTS: [&str; 4] = ["clock: ", " ns here is ", " ns of process 0, within ", " ns"];

/// Returns the comment that states a reading.
pub(super) fn clock_comment(reading: &ClockReading) -> String {
    let &ClockReading { here_ns, there_ns, error_ns } = reading;
    let [begin, here, there, end] = TEXTS;
    format!("{begin}{here_ns}{here}{there_ns}{there}{error_ns}{end}")
}

/// Returns the reading that a comment states; `None` also for times that Paraver cannot show.
pub(super) fn reading_of(comment: &[u8]) -> Option<ClockReading> {
    let [begin, here, there, end] = TEXTS;
    let text = str::from_utf8(comment).ok()?.strip_prefix(begin)?.strip_suffix(end)?;
    let (here_ns, text) = text.split_once(here)?;
    let (there_ns, error_ns) = text.split_once(there)?;
    let exact = |ns: &str| ns.parse().ok().filter(|ns| *ns <= EXACT_LIMIT);
    let [here_ns, there_ns, error_ns] = [here_ns, there_ns, error_ns].map(exact);
    Some(ClockReading { here_ns: here_ns?, there_ns: there_ns?, error_ns: error_ns? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_comes_back() {
        let reading = ClockReading { here_ns: EXACT_LIMIT, there_ns: 0, error_ns: 17 };
        assert_eq!(reading_of(clock_comment(&reading).as_bytes()), Some(reading));
        for other in ["clock: 1 ns", "begins at 3 ns of the run", "clock: 1 ns here is x"] {
            assert_eq!(reading_of(other.as_bytes()), None, "{other}");
        }
    }
}
