#![allow(unsafe_code, reason = "functions of the library are called")]
//! The endpoint of a process: its provider, opened, and the operations of that.
//!
//! Any thread may call all functions: the provider was asked for that.

use std::{
    ffi::{c_int, c_void},
    net::IpAddr,
    ptr::{self, NonNull},
    sync::Arc,
};

use super::{
    OfiChoice, OfiError, abi,
    apart::Apart,
    library::{self, Infos},
    object::{Object, make},
    providers,
    queue::Queue,
    strict::Imitation,
};

/// Most bytes of the address of an endpoint.
const ADDRESS_BYTES: usize = 256;

/// Bytes of the addresses of sockets, which begin with their kind.
const SOCKET_ADDRESS_BYTES: [usize; 2] =
    [size_of::<libc::sockaddr_in>(), size_of::<libc::sockaddr_in6>()];

/// Functions that operations call.
struct Operations {
    send: abi::MessageCalls,
    memory: abi::MemoryCalls,
    addresses: abi::AddressVectorCalls,
    fabric: abi::FabricCalls,
    domain: abi::DomainCalls,
}

/// An endpoint. It is closed before what it was made of.
pub(super) struct Endpoint {
    operations: Operations,
    endpoint: Object<abi::Endpoint>,
    queue: Queue,
    addresses: Object<abi::AddressVector>,
    domain: Object<abi::Domain>,
    fabric: Object<abi::Fabric>,
    info: Infos,
    /// Most bytes of a message that needs no memory until it was sent.
    pub(super) inject_bytes: usize,
    memory_mode: i32,
    /// `true` for a provider of which an endpoint that ends within a read breaks its domain: two later operations share
    /// a record. Such a provider needs no memory of local operations registered, which would be for one domain.
    pub(super) frees_twice: bool,
    /// `true` if memory has to be bound to an endpoint.
    binds: bool,
    key_bytes: usize,
    /// Strict forms of the provider, for tests.
    imitation: Arc<Imitation>,
}

/// Outcome of a call that starts something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Started {
    Yes,
    /// The provider has no room at present.
    NoRoom,
    /// The provider has refused, with this error.
    Failed(c_int),
}

impl Started {
    pub(super) fn of(result: isize) -> Self {
        match result {
            0 => Self::Yes,
            code if code == -(abi::AGAIN as isize) => Self::NoRoom,
            code => Self::Failed(code as c_int),
        }
    }
}

impl Endpoint {
    /// Opens an endpoint whose messages have at most `message_bytes`.
    pub(super) fn open(
        choice: &OfiChoice,
        address: IpAddr,
        peers: usize,
        message_bytes: usize,
    ) -> Result<Self, OfiError> {
        let info = providers::choose(choice, address)?;
        let provider = info.provider();
        let check = |call, result| info.library.check(call, &provider, result);
        // SAFETY: the library has just made the object.
        let fabric = unsafe { Object::new(info.library.fabric(&info)?) };
        // SAFETY: the functions of an object stay as long as that.
        let fabric_calls = unsafe { fabric.record().ops.read() };
        let (domain, domain_calls) = open_domain(&fabric, &fabric_calls, &info)?;
        let addresses = open_addresses(&domain, &domain_calls, &info, peers)?;
        let imitation = Arc::new(Imitation::new(choice.strict));
        let queue = Queue::open(&domain, &domain_calls, imitation.late(), check)?;
        let endpoint = create(&domain, &domain_calls, &info, &queue, &addresses)?;
        // SAFETY: the functions of an object stay as long as that.
        let options = unsafe { endpoint.record().ops.read() };
        let (bytes, size) = ((&raw const message_bytes).cast(), size_of::<usize>());
        let (level, name) = (abi::OPTION_ENDPOINT, abi::OPTION_MIN_MULTI_RECV);
        // SAFETY: the endpoint is open; the value of this option is a number of this size.
        let set = unsafe { (options.setopt)(endpoint.fid(), level, name, bytes, size) };
        check("fi_setopt", set)?;
        check("fi_enable", endpoint.enable())?;
        let operations = Operations {
            // SAFETY: the functions of an object stay as long as that; enabling it has chosen them.
            send: unsafe { endpoint.record().msg.read() },
            // SAFETY: as above.
            memory: unsafe { domain.record().mr.read() },
            // SAFETY: as above.
            addresses: unsafe { addresses.record().ops.read() },
            fabric: fabric_calls,
            domain: domain_calls,
        };
        // SAFETY: the parts of a record stay as long as that.
        let inject_bytes =
            unsafe { info.first().tx_attr.as_ref() }.map_or(0, |sent| sent.inject_size);
        let frees_twice = providers::frees_twice(info.first());
        let attributes = providers::domain(info.first());
        let (memory_mode, key_bytes) =
            attributes.map_or((0, 0), |domain| (domain.mr_mode, domain.mr_key_size));
        Ok(Self {
            operations,
            endpoint,
            queue,
            addresses,
            domain,
            fabric,
            info,
            inject_bytes,
            memory_mode: memory_mode | imitation.forms().memory_mode(),
            frees_twice,
            binds: memory_mode & abi::MR_ENDPOINT != 0,
            key_bytes,
            imitation,
        })
    }

    /// Returns the name of the provider.
    pub(super) fn provider(&self) -> String {
        self.info.provider()
    }

    /// Returns the name of the interface.
    pub(super) fn interface(&self) -> String {
        library::interface(self.info.first()).unwrap_or_default()
    }

    /// Returns the text of an error.
    pub(super) fn error_text(&self, code: c_int) -> String {
        self.info.library.error_text(code)
    }

    fn check(&self, call: &'static str, result: c_int) -> Result<(), OfiError> {
        self.info.library.check(call, &self.provider(), result)
    }

    /// Returns the address by which peers reach the endpoint.
    pub(super) fn address(&self) -> Result<Vec<u8>, OfiError> {
        self.address_of(&self.endpoint)
    }

    /// Returns the address of an endpoint of the same provider.
    pub(super) fn address_of(&self, endpoint: &Object<abi::Endpoint>) -> Result<Vec<u8>, OfiError> {
        let mut address = vec![0u8; ADDRESS_BYTES];
        let mut length = address.len();
        // SAFETY: the functions of an object stay as long as that.
        let names = unsafe { endpoint.record().cm.read() };
        let bytes = address.as_mut_ptr().cast();
        // SAFETY: the endpoint is open, and the address has room for so many bytes.
        let result = unsafe { (names.getname)(endpoint.fid(), bytes, &raw mut length) };
        self.check("fi_getname", result)?;
        address.truncate(length);
        Ok(address)
    }

    /// Adds the address of a peer, which that has got from [`address`](Self::address).
    pub(super) fn add_peer(&self, address: &[u8]) -> Result<abi::Address, OfiError> {
        self.insert(&self.addresses, address)
    }

    /// Adds an address to an address vector.
    pub(super) fn insert(
        &self,
        addresses: &Object<abi::AddressVector>,
        address: &[u8],
    ) -> Result<abi::Address, OfiError> {
        // A provider reads as many bytes as its own addresses have, and those of a socket as their kind says.
        let own = self.address()?;
        let is_of_socket = SOCKET_ADDRESS_BYTES.contains(&own.len());
        if own.len() != address.len() || is_of_socket && own[..2] != address[..2] {
            return Err(self.insertion_error("an address of another kind".to_owned()));
        }
        let mut number = abi::ADDRESS_UNSPECIFIED;
        let (bytes, place, none) = (address.as_ptr().cast(), &raw mut number, ptr::null_mut());
        let insert = self.operations.addresses.insert;
        // SAFETY: the address vector is open, one of this provider, and the address as long as that expects.
        let added = unsafe { insert(addresses.pointer(), bytes, 1, place, 0, none) };
        if added == 1 { Ok(number) } else { Err(self.insertion_error(self.error_text(added))) }
    }

    fn insertion_error(&self, reason: String) -> OfiError {
        OfiError::Call { call: "fi_av_insert", provider: self.provider(), reason }
    }

    /// Returns the queue with the completions.
    pub(super) fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Returns `true` if the caller may sleep on the descriptor of a queue now.
    pub(super) fn may_sleep(&self, queue: &Queue) -> bool {
        let mut object = queue.object().fid();
        let trywait = self.operations.fabric.trywait;
        // SAFETY: network and completion queue are open.
        queue.descriptor().is_some()
            && !queue.has_late()
            && unsafe { trywait(self.fabric.pointer(), &raw mut object, 1) } == 0
    }

    /// Opens an endpoint beside this one, in a domain of its own or in that of this one.
    pub(super) fn open_apart(&self, is_own: bool) -> Result<Apart, OfiError> {
        let Self { operations, info, fabric, .. } = self;
        let own = is_own.then(|| open_domain(fabric, &operations.fabric, info));
        let own = own.transpose()?;
        let (domain, calls) =
            own.as_ref().map_or((&self.domain, &operations.domain), |own| (&own.0, &own.1));
        let addresses = open_addresses(domain, calls, info, 0)?;
        let check = |call, result| self.check(call, result);
        let queue = Queue::open(domain, calls, self.imitation.late(), check)?;
        let endpoint = create(domain, calls, info, &queue, &addresses)?;
        check("fi_enable", endpoint.enable())?;
        Ok(Apart { endpoint, queue, addresses, domain: own.map(|(domain, _)| domain) })
    }

    /// Returns the strict forms of the provider.
    pub(super) fn imitation(&self) -> Arc<Imitation> {
        Arc::clone(&self.imitation)
    }

    /// Sends a message whose memory can be used again at once.
    pub(super) fn inject(&self, to: abi::Address, bytes: &[u8]) -> Started {
        if self.imitation.is_full() {
            return Started::NoRoom;
        }
        let start = bytes.as_ptr().cast();
        let inject = self.operations.send.inject;
        // SAFETY: the endpoint is open, and the bytes are valid during the call.
        Started::of(unsafe { inject(self.endpoint.pointer(), start, bytes.len(), to) })
    }

    /// Sends a message.
    ///
    /// # Safety
    ///
    /// Memory and context are valid, and changed by nobody, until the completion with the context.
    pub(super) unsafe fn send(
        &self,
        to: abi::Address,
        bytes: NonNull<[u8]>,
        registered: Option<&Registered>,
        context: *mut c_void,
    ) -> Started {
        if self.imitation.is_full() {
            return Started::NoRoom;
        }
        let (start, length) = (bytes.cast::<c_void>().as_ptr(), bytes.len());
        let (endpoint, descriptor) = (self.endpoint.pointer(), descriptor_of(registered));
        let send = self.operations.send.send;
        // SAFETY: the contract of this function.
        Started::of(unsafe { send(endpoint, start, length, descriptor, to, context) })
    }

    /// Gives memory for messages that arrive, of any peer.
    ///
    /// # Safety
    ///
    /// Memory and context are valid, and used by nobody else, until the completion with the context
    /// that returns the memory; a message may be read once its completion has come.
    pub(super) unsafe fn receive(
        &self,
        memory: NonNull<[u8]>,
        registered: Option<&Registered>,
        context: *mut c_void,
    ) -> Started {
        if self.imitation.is_full() {
            return Started::NoRoom;
        }
        let room = libc::iovec { iov_base: memory.cast().as_ptr(), iov_len: memory.len() };
        let mut descriptor = descriptor_of(registered);
        let message = abi::Message {
            msg_iov: &raw const room,
            desc: &raw mut descriptor,
            iov_count: 1,
            addr: abi::ADDRESS_UNSPECIFIED,
            context,
            data: 0,
        };
        let (receive, endpoint) = (self.operations.send.recvmsg, self.endpoint.pointer());
        // SAFETY: the contract of this function; the other records are needed during the call only.
        Started::of(unsafe { receive(endpoint, &raw const message, abi::MULTI_RECV) })
    }

    /// Returns `true` if memory that messages and operations use must be registered for that.
    pub(super) fn needs_local(&self) -> bool {
        self.memory_mode & abi::MR_LOCAL != 0
    }

    /// Returns `true` if peers use addresses of registered memory, and not offsets from its start.
    pub(super) fn has_addresses(&self) -> bool {
        self.memory_mode & abi::MR_VIRT_ADDR != 0
    }

    /// Returns `true` if memory of peers can be read: memory that was registered for local operations is so for every
    /// endpoint, also a reader that was opened later, and a reader that closes does not crash the layer `ofi_rxm` by
    /// records that its provider frees twice.
    pub(super) fn reads_directly(&self) -> bool {
        let binds_local = self.needs_local() && self.memory_mode & abi::MR_ENDPOINT != 0;
        let crashes = self.frees_twice && self.provider().ends_with(";ofi_rxm");
        !binds_local && !crashes
    }

    /// Registers memory for what `access` says, with a key if the provider does not choose it.
    ///
    /// # Safety
    ///
    /// The memory is valid until the registration drops, for what `access` says.
    pub(super) unsafe fn register(
        &self,
        memory: NonNull<[u8]>,
        access: u64,
        key: u64,
    ) -> Result<Registered, OfiError> {
        // SAFETY: the contract of this function.
        unsafe { self.register_for((&self.domain, &self.endpoint), memory, access, key) }
    }

    /// Registers memory for an endpoint beside this one; otherwise as [`register`](Self::register).
    ///
    /// # Safety
    ///
    /// That of [`register`](Self::register).
    pub(super) unsafe fn register_apart(
        &self,
        apart: &Apart,
        memory: NonNull<[u8]>,
        access: u64,
        key: u64,
    ) -> Result<Registered, OfiError> {
        let domain = apart.domain.as_ref().unwrap_or(&self.domain);
        // SAFETY: the contract of this function.
        unsafe { self.register_for((domain, &apart.endpoint), memory, access, key) }
    }

    /// # Safety
    ///
    /// That of [`register`](Self::register).
    unsafe fn register_for(
        &self,
        (domain, endpoint): (&Object<abi::Domain>, &Object<abi::Endpoint>),
        memory: NonNull<[u8]>,
        access: u64,
        key: u64,
    ) -> Result<Registered, OfiError> {
        let bits = 8 * self.key_bytes.clamp(1, size_of::<u64>()) as u32;
        let key = self.imitation.key(key) >> (u64::BITS - bits);
        let (start, length) = (memory.cast::<c_void>().as_ptr(), memory.len());
        let reg = self.operations.memory.reg;
        let object: Object<abi::MemoryRegion> = make(|place| {
            let none = ptr::null_mut();
            // SAFETY: the domain is open, and the contract of this function.
            let result =
                unsafe { reg(domain.fid(), start, length, access, 0, key, 0, place, none) };
            self.check("fi_mr_reg", result)
        })?;
        if self.binds {
            self.check("fi_mr_bind", object.bind(endpoint, 0))?;
            self.check("fi_mr_enable", object.enable())?;
        }
        Ok(Registered(object))
    }
}

/// Opens a domain of a network. Returns its functions as well.
fn open_domain(
    fabric: &Object<abi::Fabric>,
    calls: &abi::FabricCalls,
    info: &Infos,
) -> Result<(Object<abi::Domain>, abi::DomainCalls), OfiError> {
    let domain = make(|place| {
        let none = ptr::null_mut();
        // SAFETY: the network is open, and the record one of its provider.
        let result = unsafe { (calls.domain)(fabric.pointer(), info.pointer(), place, none) };
        info.library.check("fi_domain", &info.provider(), result)
    })?;
    // SAFETY: the functions of an object stay as long as that.
    let calls = unsafe { domain.record().ops.read() };
    Ok((domain, calls))
}

/// Opens a table for the addresses of so many peers.
fn open_addresses(
    domain: &Object<abi::Domain>,
    calls: &abi::DomainCalls,
    info: &Infos,
    peers: usize,
) -> Result<Object<abi::AddressVector>, OfiError> {
    make(|place| {
        let mut attributes = abi::AddressVectorAttributes {
            kind: abi::ADDRESSES_AS_TABLE,
            rx_ctx_bits: 0,
            count: peers,
            ep_per_node: 0,
            name: ptr::null(),
            map_addr: ptr::null_mut(),
            flags: 0,
        };
        let (attributes, none) = (&raw mut attributes, ptr::null_mut());
        // SAFETY: the domain is open, and the settings are whole.
        let result = unsafe { (calls.av_open)(domain.pointer(), attributes, place, none) };
        info.library.check("fi_av_open", &info.provider(), result)
    })
}

/// Makes an endpoint with its queue and the addresses of peers, to be enabled.
fn create(
    domain: &Object<abi::Domain>,
    calls: &abi::DomainCalls,
    info: &Infos,
    queue: &Queue,
    addresses: &Object<abi::AddressVector>,
) -> Result<Object<abi::Endpoint>, OfiError> {
    let provider = info.provider();
    let check = |call, result| info.library.check(call, &provider, result);
    let endpoint: Object<abi::Endpoint> = make(|place| {
        let none = ptr::null_mut();
        // SAFETY: the domain is open, and the record one of its provider.
        check("fi_endpoint", unsafe {
            (calls.endpoint)(domain.pointer(), info.pointer(), place, none)
        })
    })?;
    check("fi_ep_bind", endpoint.bind(queue.object(), abi::TRANSMIT | abi::RECV))?;
    check("fi_ep_bind", endpoint.bind(addresses, 0))?;
    Ok(endpoint)
}

/// Memory that is registered with a provider. It is closed before the endpoint.
pub(super) struct Registered(Object<abi::MemoryRegion>);

impl Registered {
    /// Returns the key by which peers use the memory.
    pub(super) fn key(&self) -> u64 {
        self.0.record().key
    }

    /// Returns what local operations on the memory need.
    pub(super) fn descriptor(&self) -> *mut c_void {
        self.0.record().mem_desc
    }
}

fn descriptor_of(registered: Option<&Registered>) -> *mut c_void {
    registered.map_or(ptr::null_mut(), Registered::descriptor)
}
