//! Numbers as text, and their round steps.

/// Returns nanoseconds with three digits and a unit.
pub(super) fn time(ns: f64) -> String {
    let (unit, name) = match ns {
        ns if ns >= 1e9 => (1e9, "s"),
        ns if ns >= 1e6 => (1e6, "ms"),
        ns if ns >= 1e3 => (1e3, "us"),
        _ => (1.0, "ns"),
    };
    let value = ns / unit;
    let digits = match value {
        value if value >= 100.0 || value.fract() == 0.0 => 0,
        value if value >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {name}")
}

/// Returns the smallest of 1, 2 and 5 times a power of ten that is not less than `least`.
pub(super) fn round_step(least: u64) -> u64 {
    let mut step = 1_u64;
    loop {
        for factor in [1, 2, 5] {
            if step.saturating_mul(factor) >= least {
                return step.saturating_mul(factor);
            }
        }
        step = step.saturating_mul(10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        for (ns, text) in [(0.0, "0 ns"), (1_234.0, "1.23 us"), (45.6e6, "45.6 ms"), (2e9, "2 s")] {
            assert_eq!(time(ns), text);
        }
        assert_eq!([0, 3, 11, 50].map(round_step), [1, 5, 20, 50]);
    }
}
