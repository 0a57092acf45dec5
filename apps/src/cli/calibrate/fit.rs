//! The costs with which runs in virtual time take as long as real ones.

use talpf_apps::Error;

/// Costs of an application: of a task, and of a unit of its work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Costs {
    pub(super) fixed_ns: f64,
    pub(super) unit_ns: f64,
}

/// Largest number of steps. Times are nearly linear in the costs, so few are enough.
const STEPS: usize = 8;
/// Error at which the costs are good enough.
const GOOD: f64 = 1e-4;

/// Finds costs with which `simulate` returns the times of a run of large tasks and of one of small
/// tasks, `real`. Costs are not negative: if they had to be, the error is that of both alike.
///
/// **Errors**: those of `simulate`.
pub(super) fn fit(
    real: [f64; 2],
    simulate: impl Fn(Costs) -> Result<[f64; 2], Error>,
) -> Result<Costs, Error> {
    let mut costs = Costs { fixed_ns: 0.0, unit_ns: 1.0 };
    for _ in 0..STEPS {
        let here = simulate(costs)?;
        let off = [0, 1].map(|run| real[run] - here[run]);
        if (0..2).all(|run| off[run].abs() <= GOOD * real[run]) {
            break;
        }
        // Steps of the derivatives: large against the rounding to nanoseconds.
        let (more_fixed, more_unit) = (1_000.0, costs.unit_ns.max(0.01));
        let fixed = simulate(Costs { fixed_ns: costs.fixed_ns + more_fixed, ..costs })?;
        let unit = simulate(Costs { unit_ns: costs.unit_ns + more_unit, ..costs })?;
        let by_fixed = [0, 1].map(|run| (fixed[run] - here[run]) / more_fixed);
        let by_unit = [0, 1].map(|run| (unit[run] - here[run]) / more_unit);
        let determinant = by_fixed[0] * by_unit[1] - by_fixed[1] * by_unit[0];
        let next = Costs {
            fixed_ns: costs.fixed_ns + (off[0] * by_unit[1] - off[1] * by_unit[0]) / determinant,
            unit_ns: costs.unit_ns + (by_fixed[0] * off[1] - by_fixed[1] * off[0]) / determinant,
        };
        costs = if next.fixed_ns >= 0.0 && next.unit_ns > 0.0 {
            next
        } else {
            // One cost alone: the mean of what either run asks for.
            let zero = Costs { fixed_ns: 0.0, ..costs };
            let here = simulate(zero)?;
            let ratios = [0, 1].map(|run| real[run] / here[run]);
            Costs { unit_ns: zero.unit_ns * (ratios[0] * ratios[1]).sqrt(), ..zero }
        };
    }
    Ok(costs)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of 10 tasks of 1,000 units and of 100 tasks of 100, with an overhead.
    fn simulate(costs: Costs) -> Result<[f64; 2], Error> {
        let run = |tasks: f64, units: f64| {
            (tasks * (costs.fixed_ns + 50.0 + units * costs.unit_ns)) / 1e9
        };
        Ok([run(10.0, 1_000.0), run(100.0, 100.0)])
    }

    #[test]
    fn costs_are_found_again() {
        let costs = Costs { fixed_ns: 730.0, unit_ns: 2.5 };
        let found = fit(simulate(costs).unwrap(), simulate).unwrap();
        assert!((found.fixed_ns - 730.0).abs() < 5.0, "{found:?}");
        assert!((found.unit_ns - 2.5).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn costs_are_not_negative() {
        // The run of small tasks is the shorter one.
        let found = fit([3e-5, 2e-5], simulate).unwrap();
        assert!(found.fixed_ns == 0.0 && found.unit_ns > 1.0, "{found:?}");
        let [large, small] = simulate(found).unwrap();
        assert!(large < 3e-5 && small > 2e-5, "{large} {small}");
    }
}
