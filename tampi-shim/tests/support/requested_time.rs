//! Runs of tests in virtual time, if the environment asks for that.

use std::sync::Arc;

use ibverbs_sim::LinkModel;
use talpf_runtime::VirtualTime;
use tampi_shim::Config;

/// Returns the settings of a test, or those of the same run in virtual time with the link model that
/// the variable `TALPF_TEST_LINK` names.
pub(crate) fn in_requested_time(mut config: Config) -> Config {
    if let Ok(link) = std::env::var("TALPF_TEST_LINK")
        && config.device.fault.is_none()
        && config.device.link.is_none()
    {
        config.device.link = Some(LinkModel::parse(&link).expect("a link model"));
        let costs = Arc::default();
        config.runtime.virtual_time = Some(VirtualTime { cores: 2, costs, task_overhead_ns: 0 });
    }
    config
}
