//! Endpoints beside the main one of a process, for reads alone. Closing one ends its reads, and no others.

use std::os::fd::OwnedFd;

use rustix::event::epoll;

use super::{OfiError, abi, object::Object, queue::Queue};

/// An endpoint with its queue, and with addresses of its own. It is closed before what it was made of.
pub(super) struct Apart {
    pub(super) endpoint: Object<abi::Endpoint>,
    pub(super) queue: Queue,
    pub(super) addresses: Object<abi::AddressVector>,
    /// Domain of the endpoint alone; `None` if it is that of the process.
    pub(super) domain: Option<Object<abi::Domain>>,
}

impl Apart {
    /// Makes `sleep_on` readable with the queue.
    pub(super) fn wakes(&self, sleep_on: &OwnedFd) -> Result<(), OfiError> {
        let Some(descriptor) = self.queue.descriptor() else { return Ok(()) };
        let data = epoll::EventData::new_u64(0);
        let added = epoll::add(sleep_on, descriptor, data, epoll::EventFlags::IN);
        let what = "an event";
        added.map_err(|error| OfiError::System { what, reason: error.to_string() })
    }
}
