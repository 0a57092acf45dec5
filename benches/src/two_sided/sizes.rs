//! Sizes of measured messages, and names of the figures.

/// Messages of the ping-pong, in bytes, with their names in figures.
pub(super) const SIZES: [(usize, &str); 9] = [
    (8, "8B"),
    (64, "64B"),
    (512, "512B"),
    (4 << 10, "4KiB"),
    (32 << 10, "32KiB"),
    (64 << 10, "64KiB"),
    (256 << 10, "256KiB"),
    (1 << 20, "1MiB"),
    (4 << 20, "4MiB"),
];

/// Smallest message whose bandwidth is reported too.
pub(super) const LARGE: usize = 64 << 10;

/// Messages in flight in the measurement of the message rate.
pub(super) const WINDOW: usize = 64;

/// Numbers of posted receives that the message does not match.
pub(super) const DEPTHS: [u32; 5] = [1, 10, 100, 1_000, 10_000];

/// Figure and its value.
pub(super) type Value = (String, f64);

/// Returns the figures of a one-way time.
pub(super) fn one_way((size, name): (usize, &str), seconds: f64) -> Vec<Value> {
    let mut values = vec![(format!("latency_{name}_ns"), seconds * 1e9)];
    if size >= LARGE {
        values.push((bandwidth(name), size as f64 / seconds * 1e-9));
    }
    values
}

/// Returns the name of the figure of a bandwidth.
pub(super) fn bandwidth(name: &str) -> String {
    format!("bandwidth_{name}_gbs")
}
