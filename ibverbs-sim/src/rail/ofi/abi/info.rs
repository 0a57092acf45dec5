//! Description of a provider: what is asked for, and what it has.

use std::ffi::{c_char, c_void};

/// Properties of a provider on an interface; `struct fi_info`. They form a list.
#[repr(C)]
pub(in super::super) struct Info {
    pub(in super::super) next: *mut Info,
    pub(in super::super) caps: u64,
    pub(in super::super) mode: u64,
    pub(in super::super) addr_format: u32,
    pub(in super::super) src_addrlen: usize,
    pub(in super::super) dest_addrlen: usize,
    pub(in super::super) src_addr: *mut c_void,
    pub(in super::super) dest_addr: *mut c_void,
    pub(in super::super) handle: *mut c_void,
    pub(in super::super) tx_attr: *mut TransmitAttributes,
    pub(in super::super) rx_attr: *mut ReceiveAttributes,
    pub(in super::super) ep_attr: *mut EndpointAttributes,
    pub(in super::super) domain_attr: *mut DomainAttributes,
    pub(in super::super) fabric_attr: *mut FabricAttributes,
    pub(in super::super) nic: *mut c_void,
}

/// Properties of what an endpoint sends; `struct fi_tx_attr`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in super::super) struct TransmitAttributes {
    pub(in super::super) caps: u64,
    pub(in super::super) mode: u64,
    pub(in super::super) op_flags: u64,
    pub(in super::super) msg_order: u64,
    pub(in super::super) comp_order: u64,
    pub(in super::super) inject_size: usize,
    pub(in super::super) size: usize,
    pub(in super::super) iov_limit: usize,
    pub(in super::super) rma_iov_limit: usize,
    pub(in super::super) tclass: u32,
}

/// Properties of what an endpoint receives; `struct fi_rx_attr`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in super::super) struct ReceiveAttributes {
    pub(in super::super) caps: u64,
    pub(in super::super) mode: u64,
    pub(in super::super) op_flags: u64,
    pub(in super::super) msg_order: u64,
    pub(in super::super) comp_order: u64,
    pub(in super::super) total_buffered_recv: usize,
    pub(in super::super) size: usize,
    pub(in super::super) iov_limit: usize,
}

/// Properties of an endpoint; `struct fi_ep_attr`, with its `type` first.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in super::super) struct EndpointAttributes {
    pub(in super::super) kind: u32,
    pub(in super::super) protocol: u32,
    pub(in super::super) protocol_version: u32,
    pub(in super::super) max_msg_size: usize,
    pub(in super::super) msg_prefix_size: usize,
    pub(in super::super) max_order_raw_size: usize,
    pub(in super::super) max_order_war_size: usize,
    pub(in super::super) max_order_waw_size: usize,
    pub(in super::super) mem_tag_format: u64,
    pub(in super::super) tx_ctx_cnt: usize,
    pub(in super::super) rx_ctx_cnt: usize,
    pub(in super::super) auth_key_size: usize,
    pub(in super::super) auth_key: *mut u8,
}

/// Properties of a domain, which is an adapter or an interface; `struct fi_domain_attr`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in super::super) struct DomainAttributes {
    pub(in super::super) domain: *mut c_void,
    pub(in super::super) name: *mut c_char,
    pub(in super::super) threading: u32,
    pub(in super::super) control_progress: u32,
    pub(in super::super) data_progress: u32,
    pub(in super::super) resource_mgmt: u32,
    pub(in super::super) av_type: u32,
    pub(in super::super) mr_mode: i32,
    pub(in super::super) mr_key_size: usize,
    pub(in super::super) cq_data_size: usize,
    pub(in super::super) cq_cnt: usize,
    pub(in super::super) ep_cnt: usize,
    pub(in super::super) tx_ctx_cnt: usize,
    pub(in super::super) rx_ctx_cnt: usize,
    pub(in super::super) max_ep_tx_ctx: usize,
    pub(in super::super) max_ep_rx_ctx: usize,
    pub(in super::super) max_ep_stx_ctx: usize,
    pub(in super::super) max_ep_srx_ctx: usize,
    pub(in super::super) cntr_cnt: usize,
    pub(in super::super) mr_iov_limit: usize,
    pub(in super::super) caps: u64,
    pub(in super::super) mode: u64,
    pub(in super::super) auth_key: *mut u8,
    pub(in super::super) auth_key_size: usize,
    pub(in super::super) max_err_data: usize,
    pub(in super::super) mr_cnt: usize,
    pub(in super::super) tclass: u32,
}

/// Properties of a network; `struct fi_fabric_attr`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(in super::super) struct FabricAttributes {
    pub(in super::super) fabric: *mut c_void,
    pub(in super::super) name: *mut c_char,
    pub(in super::super) prov_name: *mut c_char,
    pub(in super::super) prov_version: u32,
    pub(in super::super) api_version: u32,
}
