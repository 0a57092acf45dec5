//! Reductions: tasks fold values into one region at the same time, each into a private copy.
//!
//! Every task follows the Collatz sequences of a range of numbers. It counts their lengths in a
//! histogram and keeps the longest one, and a task that reads both waits for all of them.
//! Run it with `cargo run -p talpf-runtime --example reduction`.

use std::ops::Range;

use talpf_runtime::operator::{Operator, Sum};
use talpf_runtime::{Array, Config, Error, Runtime};

const NUMBERS: u64 = 20_000;
const TASKS: u64 = 40;
/// Bins of the histogram, and the lengths that share one.
const BINS: usize = 10;
const WIDTH: usize = 30;

/// A sequence: its length and the number it begins with.
type Sequence = (usize, u64);

/// The operator that keeps the longer sequence; of equal ones, that of the smaller number.
struct Longest;

impl Operator<Sequence> for Longest {
    fn identity() -> Sequence {
        (0, 0)
    }

    fn combine(into: &mut Sequence, from: Sequence) {
        if from.0 > into.0 || (from.0 == into.0 && from.1 < into.1) {
            *into = from;
        }
    }
}

pub(crate) fn main() -> Result<(), Error> {
    let runtime = Runtime::new(Config::default())?;
    let histogram = Array::new(&runtime, vec![0u64; BINS], BINS)?;
    let longest = Array::new(&runtime, vec![Longest::identity()], 1)?;
    for task in 0..TASKS {
        let numbers = 1 + task * NUMBERS / TASKS..1 + (task + 1) * NUMBERS / TASKS;
        let task = runtime.task("follow").reduction(&histogram.all(), Sum);
        task.reduction(&longest.all(), Longest).spawn(move |mut histogram, mut longest| {
            follow(numbers, &mut histogram, &mut longest[0]);
        })?;
    }
    let read = runtime.task("read").input(&histogram.all()).input(&longest.all());
    let read = read.run(|histogram, longest| (histogram.to_vec(), longest[0]))?;
    let (histogram, longest) = runtime.block_on(read)??;

    let (mut expected, mut sequence) = (vec![0; BINS], Longest::identity());
    follow(1..1 + NUMBERS, &mut expected, &mut sequence);
    assert_eq!((&histogram, longest), (&expected, sequence));
    println!("lengths in bins of {WIDTH}: {histogram:?}");
    println!("the longest sequence begins with {} and has {} steps", longest.1, longest.0);
    Ok(())
}

/// Counts the sequences of `numbers` and keeps the longest.
fn follow(numbers: Range<u64>, histogram: &mut [u64], longest: &mut Sequence) {
    for number in numbers {
        let next = |&n: &u64| Some(if n % 2 == 0 { n / 2 } else { 3 * n + 1 });
        let length = std::iter::successors(Some(number), next).take_while(|n| *n > 1).count();
        histogram[(length / WIDTH).min(BINS - 1)] += 1;
        Longest::combine(longest, (length, number));
    }
}
