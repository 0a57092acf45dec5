//! Options of virtual cores: of a run in virtual time, or in dilated time.

use clap::{Args, ValueEnum};
use talpf::Profile;
use talpf_apps::Error;
use talpf_apps::run::{App, Dilation, Simulation, Variant};

use super::number_within::number_within;

/// Virtual machine of a run in virtual time, or virtual cores in real time.
#[derive(Args, Debug)]
pub(super) struct SimulationOptions {
    /// Run in virtual time, on the links and with the costs of a profile or of a TOML file
    #[arg(long, value_name = "PROFILE", group = "cores")]
    simulate: Option<String>,

    /// Run in real time on virtual cores: a task holds one of the C cores of its rank for F times as long
    /// as it computes, and no worker meanwhile
    #[arg(long, value_name = "F", group = "cores", requires = "cores_per_rank")]
    #[arg(value_parser = factor)]
    dilate: Option<f64>,

    /// Virtual cores of each rank, with --simulate or --dilate [default of --simulate: from the profile]
    #[arg(long, value_name = "C", requires = "cores")]
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

    /// Returns `true` if ranks have virtual cores, which variants without ranks have not.
    pub(super) fn has_virtual_cores(&self) -> bool {
        self.is_given() || self.dilate.is_some()
    }

    /// Returns the virtual cores in dilated time, if there are any.
    pub(super) fn dilation(&self) -> Option<Dilation> {
        let (factor, cores) = self.dilate.zip(self.cores_per_rank)?;
        Some(Dilation { cores: cores as u32, factor })
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

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor| Dilation::FACTORS.contains(factor));
    let (least, most) = (Dilation::FACTORS.start(), Dilation::FACTORS.end());
    factor.ok_or_else(|| format!("expected a number from {least} to {most}"))
}
