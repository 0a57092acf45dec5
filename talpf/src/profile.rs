//! Profiles: the machines on which programs run in virtual time.
//!
//! A profile is a text in TOML with three tables, each of which may be left out:
//!
//! ```toml
//! [link]                       # see `ibverbs_sim::LinkModel`
//! latency = "2us"
//! [machine]
//! cores = 31                   # cores of a rank, 1 to 1024
//! polling = "100ns"            # as `TALPF_POLLING_FREQUENCY`
//! task_overhead = "1us"        # what the runtime takes for a task, on the core that runs it
//! [costs]
//! jacobi = "500ns + 1.5ns"     # of a task, and of a unit of its work
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use ibverbs_sim::{LinkModel, LinkModelError, ProfileEntry};
use talpf_runtime::{Cost, VirtualTime};

use crate::config::{Config, PollingFrequency};
use crate::error::Error;

/// A machine on which programs run in virtual time.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    name: String,
    link: LinkModel,
    cores: Option<u32>,
    polling: Option<PollingFrequency>,
    task_overhead_ns: u64,
    costs: Arc<BTreeMap<String, Cost>>,
}

/// Cores of a rank where neither the profile nor the user says how many.
const CORES: u32 = 1;
const MOST_CORES: u32 = 1024;
/// Text of what is expected of a cost.
const COST: &str = "the time of a unit of work, such as 1.5ns, behind that of a task, if it has \
                    one, as in 500ns + 1.5ns";

impl Profile {
    /// Reads a profile that comes with `ibverbs-sim`, by its name, or one from a file.
    ///
    /// **Errors**: no such profile or file; a key or a value that is not allowed, with its line and
    /// the allowed ones.
    ///
    /// ```
    /// use talpf::Profile;
    ///
    /// let profile = Profile::load("kunpeng-4x4")?;
    /// assert_eq!(profile.cores(), 31);
    /// assert!(profile.has_cost("jacobi"));
    /// # Ok::<(), talpf::Error>(())
    /// ```
    pub fn load(name: &str) -> Result<Self, Error> {
        let shipped = LinkModel::profile_text(name);
        let text = match shipped {
            Ok(text) => text.to_owned(),
            Err(unknown) if !Path::new(name).exists() => return Err(refused(name, unknown)),
            Err(_) => fs::read_to_string(name).map_err(|error| Error::NoSettings {
                path: name.into(),
                reason: error.to_string(),
            })?,
        };
        Self::parse(name, &text)
    }

    /// Reads a profile from a text, and gives it a name.
    ///
    /// **Errors**: a key or a value that is not allowed, with its line and the allowed ones.
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        Self::read(name, text).map_err(|reason| refused(name, reason))
    }

    fn read(name: &str, text: &str) -> Result<Self, LinkModelError> {
        let (mut cores, mut polling, mut task_overhead_ns) = (None, None, 0);
        let mut costs = BTreeMap::new();
        for entry in LinkModel::table(text, "machine")? {
            match entry.key.as_str() {
                "cores" => cores = Some(cores_of(&entry)?),
                "polling" => {
                    let parsed = PollingFrequency::parse(&entry.value);
                    let expected = "adaptive, or a whole number with ns, us or ms";
                    polling = Some(parsed.map_err(|_| entry.refuse(expected))?);
                }
                "task_overhead" => task_overhead_ns = overhead_ns(&entry)?,
                _ => return Err(entry.refuse_key("cores, polling, task_overhead")),
            }
        }
        for entry in LinkModel::table(text, "costs")? {
            let cost = cost(&entry.value).ok_or_else(|| entry.refuse(COST))?;
            costs.insert(entry.key, cost);
        }
        let link = LinkModel::from_toml(text)?;
        let (name, costs) = (name.to_owned(), Arc::new(costs));
        Ok(Profile { name, link, cores, polling, task_overhead_ns, costs })
    }

    /// Returns the profile with one cost more, or another: `jacobi=1.5ns`.
    ///
    /// **Errors**: another form.
    pub fn with_cost(mut self, text: &str) -> Result<Self, Error> {
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        let [key, value] = [key, value].map(|text| text.trim().to_owned());
        let entry = ProfileEntry { key, value, line: None };
        let cost = cost(&entry.value).filter(|_| !entry.key.is_empty());
        let cost = cost.ok_or_else(|| refused(&self.name, entry.refuse(COST)))?;
        Arc::make_mut(&mut self.costs).insert(entry.key, cost);
        Ok(self)
    }

    /// Returns the name by which the profile was loaded.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the cores of a rank.
    pub fn cores(&self) -> u32 {
        self.cores.unwrap_or(CORES)
    }

    /// Returns the model of the links.
    pub fn link(&self) -> &LinkModel {
        &self.link
    }

    /// Returns `true` if the profile says what a kind of work costs.
    pub fn has_cost(&self, kind: &str) -> bool {
        self.costs.contains_key(kind)
    }

    /// Returns the polling frequency of the machine, if the profile has one.
    pub fn polling(&self) -> Option<PollingFrequency> {
        self.polling
    }

    /// Returns the settings of the same run in virtual time, with `cores` for each rank. The polling
    /// frequency stays.
    pub fn simulate(&self, cores: u32, mut config: Config) -> Config {
        config.runtime.virtual_time = Some(self.virtual_time(cores));
        config.device.link = Some(self.link.clone());
        config
    }

    /// Returns the virtual machine of a runtime, with `cores` for each rank.
    pub fn virtual_time(&self, cores: u32) -> VirtualTime {
        let (costs, task_overhead_ns) = (Arc::clone(&self.costs), self.task_overhead_ns);
        VirtualTime { cores, task_overhead_ns, costs }
    }
}

fn refused(profile: &str, reason: LinkModelError) -> Error {
    Error::Profile { profile: profile.to_owned(), reason }
}

fn cores_of(entry: &ProfileEntry) -> Result<u32, LinkModelError> {
    let cores = entry.value.parse().ok().filter(|cores| (1..=MOST_CORES).contains(cores));
    cores.ok_or_else(|| entry.refuse("a whole number from 1 to 1024"))
}

fn overhead_ns(entry: &ProfileEntry) -> Result<u64, LinkModelError> {
    let picoseconds = LinkModel::parse_time(&entry.value);
    let expected = "a time of whole nanoseconds, such as 1us";
    let whole = picoseconds.filter(|picoseconds| picoseconds.is_multiple_of(1_000));
    whole.map(|picoseconds| picoseconds / 1_000).ok_or_else(|| entry.refuse(expected))
}

/// Reads the time of a unit, behind that of a task and a plus sign.
fn cost(text: &str) -> Option<Cost> {
    let (fixed, unit) = text.split_once('+').unwrap_or(("0ns", text));
    let [fixed_ps, unit_ps] = [fixed, unit].map(LinkModel::parse_time);
    Some(Cost { fixed_ps: fixed_ps?, unit_ps: unit_ps? })
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Profile::read("mine", text).expect_err(text).to_string()
    }

    #[test]
    fn all_tables_are_read() {
        let text = "[link]\nlatency = '3ns'\n[machine]\ncores = 7\npolling = '100ns'\n\
                    task_overhead = '2us'\n[costs]\na = '2ns'\nb = '5us + 0.25ns'\n";
        let profile = Profile::parse("mine", text).unwrap();
        assert_eq!((profile.cores(), profile.link().one_way_ns(0, 1, 9)), (7, 3));
        assert_eq!(profile.costs["a"], Cost { fixed_ps: 0, unit_ps: 2_000 });
        assert_eq!(profile.costs["b"], Cost { fixed_ps: 5_000_000, unit_ps: 250 });
        let more = profile.with_cost("a = 1ns").unwrap().with_cost("c=0ns").unwrap();
        assert_eq!(more.costs["a"].unit_ps, 1_000);
        assert!(more.has_cost("c") && !more.has_cost("d"));
        let virtual_time = more.simulate(5, Config::default()).runtime.virtual_time.unwrap();
        assert_eq!((virtual_time.cores, virtual_time.task_overhead_ns), (5, 2_000));
        assert_eq!(more.polling().unwrap().to_string(), "every 100ns");
        assert_eq!(Profile::parse("mine", "").unwrap().cores(), 1);
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, said) in [
            ("[machine]\ncores = 0\n", "line 2: cores = 0: give a whole number from 1 to 1024"),
            ("[machine]\ncores = 1025\n", "line 2: cores = 1025: give a whole number"),
            ("[machine]\npolling = 'often'\n", "line 2: polling = often: give adaptive"),
            ("[machine]\nranks = 4\n", "line 2: no such key: ranks; the keys are cores, polling"),
            ("[machine]\ntask_overhead = '1.5ns'\n", "line 2: task_overhead = 1.5ns: give a time"),
            ("[costs]\n\na = '-1ns'\n", "line 3: a = -1ns: give the time of a unit of work"),
            ("[costs]\na = '1ns + 2ns + 3ns'\n", "line 2: a = 1ns + 2ns + 3ns: give"),
            ("costs = 1\n", "line 1: costs = 1: give a table"),
            ("[link]\nlatency = '1'\n", "line 2: latency = 1: give a time"),
        ] {
            let error = refusal(text);
            assert!(error.starts_with(said), "{text:?}: {error}");
        }
        let error = Profile::load("no such file").unwrap_err().to_string();
        assert!(error.starts_with("no such file: no such profile: no such file; the"), "{error}");
        let error = Profile::load("ideal").unwrap().with_cost("a").unwrap_err().to_string();
        assert!(error.starts_with("ideal: a = : give the time of a unit of work"), "{error}");
    }

    #[test]
    fn every_profile_that_comes_along_is_read() {
        for name in LinkModel::profiles() {
            Profile::load(name).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}
