//! Colours of values, which colour-blind eyes distinguish: those of Okabe and Ito, and a gradient of
//! growing darkness.

use crate::State;

/// Red, green and blue.
pub(super) type Colour = [u8; 3];

pub(super) const BLACK: Colour = [0, 0, 0];
pub(super) const GREY: Colour = [110, 110, 110];
pub(super) const WHITE: Colour = [255, 255, 255];

/// Colours of values with labels, by number.
const DISTINCT: [Colour; 12] = [
    [0, 114, 178],
    [230, 159, 0],
    [0, 158, 115],
    [204, 121, 167],
    [86, 180, 233],
    [213, 94, 0],
    [240, 228, 66],
    [60, 60, 60],
    [100, 70, 20],
    [150, 110, 220],
    [0, 90, 60],
    [160, 160, 160],
];

/// Stops of the gradient, from small to large numbers.
const GRADIENT: [Colour; 5] =
    [[222, 235, 247], [158, 202, 225], [66, 146, 198], [8, 81, 156], [3, 30, 75]];

/// Returns the colour of a state; of one that is not ours by its number.
pub(super) fn of_state(state: i64) -> Colour {
    const NOT_CREATED: i64 = State::NotCreated.number() as i64;
    const IDLE: i64 = State::Idle.number() as i64;
    const RUNNING: i64 = State::Running.number() as i64;
    const SYNCHRONIZATION: i64 = State::Synchronization.number() as i64;
    const POLLING: i64 = State::Polling.number() as i64;
    const SCHEDULING: i64 = State::Scheduling.number() as i64;
    const BLOCKED: i64 = State::Blocked.number() as i64;
    const NOT_RECORDED: i64 = State::NotRecorded.number() as i64;
    const DATA_COPY: i64 = State::DataCopy.number() as i64;
    match state {
        NOT_CREATED => WHITE,
        IDLE => [200, 214, 229],
        RUNNING => DISTINCT[0],
        SYNCHRONIZATION => DISTINCT[5],
        POLLING => DISTINCT[1],
        SCHEDULING => DISTINCT[3],
        BLOCKED => DISTINCT[6],
        NOT_RECORDED => DISTINCT[7],
        DATA_COPY => DISTINCT[2],
        other => distinct(other),
    }
}

/// Returns the colour of a value with a label.
pub(super) fn distinct(value: i64) -> Colour {
    DISTINCT[value.saturating_sub(1).rem_euclid(DISTINCT.len() as i64) as usize]
}

/// Returns the colour at a part of the gradient, from 0 to 1.
pub(super) fn gradient(part: f64) -> Colour {
    let at = part.clamp(0.0, 1.0) * (GRADIENT.len() - 1) as f64;
    let stop = (at as usize).min(GRADIENT.len() - 2);
    let part = at - stop as f64;
    std::array::from_fn(|channel| {
        let [from, to] = [GRADIENT[stop][channel], GRADIENT[stop + 1][channel]].map(f64::from);
        (from + (to - from) * part) as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gradient_spans_its_stops_and_any_numbers() {
        assert_eq!(gradient(-5.0), GRADIENT[0]);
        assert_eq!(gradient(1.0), GRADIENT[4]);
        gradient(f64::NAN);
        gradient(f64::INFINITY);
    }

    #[test]
    fn our_states_have_colours_of_their_own() {
        let colours = State::ALL.map(|state| of_state(state.number().into()));
        let distinct: std::collections::HashSet<Colour> = colours.into_iter().collect();
        assert_eq!(distinct.len(), State::ALL.len());
    }
}
