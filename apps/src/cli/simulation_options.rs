//! Options of a run in virtual time.

use clap::{Args, ValueEnum};
use talpf::Profile;
use talpf_apps::Error;
use talpf_apps::run::{App, Simulation, Variant};

use super::number_within::number_within;

/// Virtual machine of a run in virtual time.
#[derive(Args, Debug)]
pub(super) struct SimulationOptions {
    /// Run in virtual time, on the links and with the costs of a profile or of a TOML file
    #[arg(long, value_name = "PROFILE")]
    simulate: Option<String>,

    /// Cores of each simulated rank [default: from the profile]
    #[arg(long, value_name = "C", requires = "simulate")]
    #[arg(value_parser = number_within(Simulation::CORES))]
    cores_per_rank: Option<usize>,

    /// Cost of a kind of work, in place of that of the profile, such as jacobi=1.5ns
    #[arg(long, value_name = "WORK=TIME", requires = "simulate")]
    cost: Vec<String>,

    /// Execute the bodies of kernels; without, arrays take no memory, there is no result, and times are
    /// the same [default: yes]
    #[arg(long, value_enum, value_name = "yes|no", hide_possible_values = true)]
    #[arg(requires = "simulate")]
    execute: Option<Execute>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Execute {
    Yes,
    No,
}

impl SimulationOptions {
    /// Returns `true` if runs take virtual time.
    pub(super) fn is_given(&self) -> bool {
        self.simulate.is_some()
    }

    /// Returns `true` if bodies are not executed, so that there is no result.
    pub(super) fn has_no_result(&self) -> bool {
        self.execute == Some(Execute::No)
    }

    /// Returns the virtual machine, if the run takes virtual time. Its profile lives as long as the
    /// process.
    ///
    /// **Errors**: an application or a variant that does not run in virtual time; an option of
    /// `others` that is given; a profile that cannot be used, or lacks a cost.
    pub(super) fn simulation<A: App>(
        &self,
        variant: Variant,
        others: &[(&'static str, bool)],
    ) -> Result<Option<Simulation>, Error> {
        let Some(name) = &self.simulate else { return Ok(None) };
        if let Some((option, _)) = others.iter().find(|(_, is_given)| *is_given) {
            return Err(Error::NotTogether { option, with: "--simulate" });
        }
        if A::WORK.is_empty() {
            return Err(Error::NotSimulated { what: A::NAME });
        }
        if !variant.is_simulated() {
            return Err(Error::NotSimulated { what: variant.name() });
        }
        let loaded = Profile::load(name)?;
        let profile = self.cost.iter().try_fold(loaded, |profile, cost| profile.with_cost(cost))?;
        if let Some(kind) = A::WORK.iter().find(|kind| !profile.has_cost(kind)) {
            return Err(Error::NoCost { profile: name.clone(), kind });
        }
        let cores = self.cores_per_rank.map_or(profile.cores(), |cores| cores as u32);
        let executes = !self.has_no_result();
        Ok(Some(Simulation { profile: Box::leak(Box::new(profile)), cores, executes }))
    }
}
