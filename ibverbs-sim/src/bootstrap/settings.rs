//! Settings that all processes of a run must have in common.

use super::{
    Bootstrap, BootstrapError,
    message::{self, Fields},
};

/// Key of the settings of a process.
const KEY: &str = "settings";

/// Compares the settings of all processes, by one fence of the bootstrap.
///
/// **Errors**: [`BootstrapError::Refused`] if a process has others; those of the bootstrap.
pub(super) fn compare(
    bootstrap: &mut dyn Bootstrap,
    settings: &[(&str, &str)],
) -> Result<(), BootstrapError> {
    let mut own = Vec::new();
    for (name, value) in settings {
        message::push(&mut own, name.as_bytes());
        message::push(&mut own, value.as_bytes());
    }
    bootstrap.put(KEY, &own)?;
    bootstrap.fence()?;
    for process in 0..bootstrap.processes() {
        let other = bootstrap.get(process, KEY)?;
        if other == own {
            continue;
        }
        let (mut here, mut there) = (Fields(&own), Fields(&other));
        while let (Some(name), Some(value)) = (here.text(), here.text()) {
            let said = (there.text(), there.text());
            let (Some(other_name), Some(other_value)) = said else { break };
            if (&other_name, &other_value) != (&name, &value) {
                let differs = format!(
                    "process {process} has {other_name} {other_value}, process {} has {name} {value}",
                    bootstrap.process()
                );
                return Err(BootstrapError::Refused { reason: differs });
            }
        }
        let reason = format!("process {process} has more or fewer settings than the others");
        return Err(BootstrapError::Refused { reason });
    }
    Ok(())
}
