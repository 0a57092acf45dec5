//! Settings that all processes of a run must have in common.

use super::{
    Bootstrap, BootstrapError,
    message::{self, Fields},
};

/// Key of the settings of a process.
const KEY: &str = "settings";

/// Settings of a process as bytes, which processes exchange to compare them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSettings(Vec<u8>);

impl RunSettings {
    /// Creates the settings with these names and values, in the same order in all processes.
    pub fn new(settings: &[(&str, &str)]) -> Self {
        let mut bytes = Vec::new();
        for (name, value) in settings {
            message::push(&mut bytes, name.as_bytes());
            message::push(&mut bytes, value.as_bytes());
        }
        Self(bytes)
    }

    /// Returns the settings as the others are to get them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Compares the settings of process `here`, which are these, with those that `process` has sent.
    ///
    /// **Errors**: [`BootstrapError::Refused`], which names the first that differs, and both values.
    pub fn compare(&self, here: u32, process: u32, other: &[u8]) -> Result<(), BootstrapError> {
        if other == self.0 {
            return Ok(());
        }
        let (mut own, mut there) = (Fields(&self.0), Fields(other));
        while let (Some(name), Some(value)) = (own.text(), own.text()) {
            let said = (there.text(), there.text());
            let (Some(other_name), Some(other_value)) = said else { break };
            if (&other_name, &other_value) != (&name, &value) {
                let reason = format!(
                    "process {process} has {other_name} {other_value}, process {here} has {name} {value}"
                );
                return Err(BootstrapError::Refused { reason });
            }
        }
        let reason = format!("process {process} has more or fewer settings than the others");
        Err(BootstrapError::Refused { reason })
    }
}

/// Compares the settings of all processes, by one fence of the bootstrap.
///
/// **Errors**: [`BootstrapError::Refused`] if a process has others; those of the bootstrap.
pub(super) fn compare(
    bootstrap: &mut dyn Bootstrap,
    settings: &[(&str, &str)],
) -> Result<(), BootstrapError> {
    let own = RunSettings::new(settings);
    bootstrap.put(KEY, own.as_bytes())?;
    bootstrap.fence()?;
    for process in 0..bootstrap.processes() {
        let other = bootstrap.get(process, KEY)?;
        own.compare(bootstrap.process(), process, &other)?;
    }
    Ok(())
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    #[test]
    fn first_setting_that_differs_is_named() {
        let own = RunSettings::new(&[("ranks", "4"), ("rows", "9")]);
        let differs = |there: &[(&str, &str)]| {
            let there = RunSettings::new(there);
            own.compare(0, 1, there.as_bytes()).map_err(|error| error.to_string())
        };
        assert_eq!(differs(&[("ranks", "4"), ("rows", "9")]), Ok(()));
        let named = |text: &str| Err(text.to_owned());
        let other = differs(&[("ranks", "6"), ("rows", "8")]);
        assert_eq!(other, named("process 1 has ranks 6, process 0 has ranks 4"));
        let other = differs(&[("ranks", "4"), ("cols", "9")]);
        assert_eq!(other, named("process 1 has cols 9, process 0 has rows 9"));
        for there in [&[("ranks", "4")][..], &[("ranks", "4"), ("rows", "9"), ("cols", "1")], &[]] {
            let more = named("process 1 has more or fewer settings than the others");
            assert_eq!(differs(there), more, "{there:?}");
        }
        assert!(own.compare(0, 1, &[255; 3]).is_err());
    }
}
