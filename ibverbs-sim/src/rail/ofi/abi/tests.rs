//! The records have the sizes and offsets that the C compiler finds in the headers of libfabric.

use std::mem::{offset_of, size_of};

use super::{info::*, objects::*, operations::*, *};
use crate::c_headers::{Number, are_those_of, constants, record};

fn numbers() -> Vec<Number> {
    let mut all = Vec::new();
    record!(
        all,
        Info.whole,
        "fi_info",
        next,
        caps,
        mode,
        addr_format,
        src_addrlen,
        dest_addrlen,
        src_addr,
        dest_addr,
        handle,
        tx_attr,
        rx_attr,
        ep_attr,
        domain_attr,
        fabric_attr,
        nic
    );
    record!(
        all,
        TransmitAttributes.whole,
        "fi_tx_attr",
        caps,
        mode,
        op_flags,
        msg_order,
        comp_order,
        inject_size,
        size,
        iov_limit,
        rma_iov_limit,
        tclass
    );
    record!(
        all,
        ReceiveAttributes.whole,
        "fi_rx_attr",
        caps,
        mode,
        op_flags,
        msg_order,
        comp_order,
        total_buffered_recv,
        size,
        iov_limit
    );
    record!(
        all,
        EndpointAttributes.whole,
        "fi_ep_attr",
        kind = "type",
        protocol,
        protocol_version,
        max_msg_size,
        msg_prefix_size,
        max_order_raw_size,
        max_order_war_size,
        max_order_waw_size,
        mem_tag_format,
        tx_ctx_cnt,
        rx_ctx_cnt,
        auth_key_size,
        auth_key
    );
    record!(
        all,
        DomainAttributes.whole,
        "fi_domain_attr",
        domain,
        name,
        threading,
        control_progress,
        data_progress,
        resource_mgmt,
        av_type,
        mr_mode,
        mr_key_size,
        cq_data_size,
        cq_cnt,
        ep_cnt,
        tx_ctx_cnt,
        rx_ctx_cnt,
        max_ep_tx_ctx,
        max_ep_rx_ctx,
        max_ep_stx_ctx,
        max_ep_srx_ctx,
        cntr_cnt,
        mr_iov_limit,
        caps,
        mode,
        auth_key,
        auth_key_size,
        max_err_data,
        mr_cnt,
        tclass
    );
    record!(
        all,
        FabricAttributes.whole,
        "fi_fabric_attr",
        fabric,
        name,
        prov_name,
        prov_version,
        api_version
    );
    record!(all, Fid.whole, "fid", fclass, context, ops);
    record!(all, Calls, "fi_ops", size, close, bind, control);
    record!(all, Fabric.whole, "fid_fabric", fid, ops, api_version);
    record!(
        all,
        FabricCalls,
        "fi_ops_fabric",
        size,
        domain,
        passive_ep,
        eq_open,
        wait_open,
        trywait
    );
    record!(all, Domain.whole, "fid_domain", fid, ops, mr);
    record!(all, DomainCalls, "fi_ops_domain", size, av_open, cq_open, endpoint);
    record!(all, MemoryCalls, "fi_ops_mr", size, reg);
    record!(all, MemoryRegion.whole, "fid_mr", fid, mem_desc, key);
    record!(all, AddressVector.whole, "fid_av", fid, ops);
    record!(
        all,
        AddressVectorAttributes.whole,
        "fi_av_attr",
        kind = "type",
        rx_ctx_bits,
        count,
        ep_per_node,
        name,
        map_addr,
        flags
    );
    record!(all, AddressVectorCalls, "fi_ops_av", size, insert);
    record!(all, CompletionQueue.whole, "fid_cq", fid, ops);
    record!(
        all,
        CompletionQueueAttributes.whole,
        "fi_cq_attr",
        size,
        flags,
        format,
        wait_obj,
        signaling_vector,
        wait_cond,
        wait_set
    );
    record!(all, CompletionQueueCalls, "fi_ops_cq", size, read, readfrom, readerr, sread);
    record!(all, Endpoint, "fid_ep", fid, ops, cm, msg, rma);
    record!(all, EndpointCalls, "fi_ops_ep", size, cancel, getopt, setopt);
    record!(all, NameCalls, "fi_ops_cm", size, setname, getname);
    record!(
        all,
        MessageCalls,
        "fi_ops_msg",
        size,
        recv,
        recvv,
        recvmsg,
        send,
        sendv,
        sendmsg,
        inject
    );
    record!(all, RmaCalls, "fi_ops_rma", size, read, readv, readmsg, write, writev, writemsg);
    record!(all, Message.whole, "fi_msg", msg_iov, desc, iov_count, addr, context, data);
    record!(all, RmaAddress.whole, "fi_rma_iov", addr, len, key);
    record!(
        all,
        RmaMessage.whole,
        "fi_msg_rma",
        msg_iov,
        desc,
        iov_count,
        addr,
        rma_iov,
        rma_iov_count,
        context,
        data
    );
    record!(all, Completion.whole, "fi_cq_data_entry", op_context, flags, len, buf, data);
    record!(
        all,
        ErrorEntry.whole,
        "fi_cq_err_entry",
        op_context,
        flags,
        len,
        buf,
        data,
        tag,
        olen,
        err,
        prov_errno,
        err_data,
        err_data_size
    );
    constants!(
        all,
        API_VERSION = "FI_VERSION(1, 17)",
        ADDRESS_UNSPECIFIED = "FI_ADDR_UNSPEC",
        MSG = "FI_MSG",
        RMA = "FI_RMA",
        RECV = "FI_RECV",
        TRANSMIT = "FI_TRANSMIT",
        MULTI_RECV = "FI_MULTI_RECV",
        CONTEXT = "FI_CONTEXT",
        CONTEXT2 = "FI_CONTEXT2",
        MR_LOCAL = "FI_MR_LOCAL",
        MR_VIRT_ADDR = "FI_MR_VIRT_ADDR",
        MR_ALLOCATED = "FI_MR_ALLOCATED",
        MR_PROV_KEY = "FI_MR_PROV_KEY",
        MR_ENDPOINT = "FI_MR_ENDPOINT",
        ORDER_SAS = "FI_ORDER_SAS",
        PROGRESS_MANUAL = "FI_PROGRESS_MANUAL",
        THREAD_SAFE = "FI_THREAD_SAFE",
        RESOURCES_MANAGED = "FI_RM_ENABLED",
        ENDPOINT_RDM = "FI_EP_RDM",
        ADDRESSES_AS_TABLE = "FI_AV_TABLE",
        FORMAT_IPV4 = "FI_SOCKADDR_IN",
        FORMAT_IPV6 = "FI_SOCKADDR_IN6",
        COMPLETION_FORMAT_DATA = "FI_CQ_FORMAT_DATA",
        WAIT_NONE = "FI_WAIT_NONE",
        WAIT_DESCRIPTOR = "FI_WAIT_FD",
        GET_WAIT = "FI_GETWAIT",
        ENABLE = "FI_ENABLE",
        OPTION_ENDPOINT = "FI_OPT_ENDPOINT",
        OPTION_MIN_MULTI_RECV = "FI_OPT_MIN_MULTI_RECV",
        AGAIN = "FI_EAGAIN",
        NO_DATA = "FI_ENODATA",
        CANCELED = "FI_ECANCELED",
        ERROR_AVAILABLE = "FI_EAVAIL",
    );
    all
}

#[test]
fn records_and_constants_are_those_of_the_headers() {
    let headers = ["fabric", "fi_domain", "fi_endpoint", "fi_rma", "fi_cm", "fi_eq", "fi_errno"];
    let headers = headers.map(|name| format!("rdma/{name}.h"));
    are_those_of("libfabric", "/usr/include", &headers, &numbers());
}
