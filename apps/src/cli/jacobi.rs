//! `talpf jacobi`.

use clap::Args;
use talpf_apps::Error;
use talpf_apps::jacobi::Jacobi;
use talpf_apps::run::Variant;

use super::app;
use super::heat::HeatOptions;
use super::run_options::{RunOptions, variant_of};

/// Steps where nobody says how many.
const STEPS: usize = 1000;

#[derive(Args, Debug)]
#[command(allow_negative_numbers = true)]
pub(super) struct Options {
    /// How to run it
    #[arg(long, value_parser = variant_of::<Jacobi>(), default_value = "talpf-cached")]
    variant: Variant,

    #[command(flatten)]
    problem: HeatOptions,

    #[command(flatten)]
    run: RunOptions,
}

pub(super) fn run(options: Options) -> Result<(), Error> {
    app::run::<Jacobi>(options.variant, &options.problem.problem(STEPS)?, &options.run)
}
