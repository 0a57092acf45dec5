#![allow(unsafe_code, reason = "a library is loaded, and its functions are called")]
//! The library itself, opened at run time.
//!
//! Its functions are asked for with their symbol versions, which fix the layout of records: a later
//! library keeps those of 1.17 under the same versions. That is why neither the linker nor a crate for
//! dynamic loading finds them, but `dlvsym`. All other functions are in tables of objects.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    ptr::{self, NonNull},
    sync::OnceLock,
};

use super::{
    OfiError,
    abi::{self, FabricAttributes, Info},
};
use crate::{
    process_limits::with_process_limits,
    shared_library::{self, SharedLibrary},
};

const NAME: &CStr = c"libfabric.so.1";
/// Variable by which libfabric learns that nobody wants its cache of registrations, which watches all
/// memory of the process. Memory is registered explicitly here.
const MONITOR: (&str, &str) = ("FI_MR_CACHE_MONITOR", "disabled");

type GetInfo = unsafe extern "C" fn(
    u32,
    *const c_char,
    *const c_char,
    u64,
    *const Info,
    *mut *mut Info,
) -> c_int;
type FreeInfo = unsafe extern "C" fn(*mut Info);
type DuplicateInfo = unsafe extern "C" fn(*const Info) -> *mut Info;
type ErrorText = unsafe extern "C" fn(c_int) -> *const c_char;
type OpenFabric =
    unsafe extern "C" fn(*mut FabricAttributes, *mut *mut abi::Fabric, *mut c_void) -> c_int;

/// Functions of the library.
pub(super) struct Library {
    /// Version of the library, as its two numbers in one.
    pub(super) version: u32,
    get_info: GetInfo,
    free_info: FreeInfo,
    duplicate_info: DuplicateInfo,
    fabric: OpenFabric,
    error_text: ErrorText,
}

impl Library {
    /// Opens the library, once.
    pub(super) fn open() -> Result<&'static Self, OfiError> {
        static LIBRARY: OnceLock<Result<Library, OfiError>> = OnceLock::new();
        LIBRARY.get_or_init(Self::load).as_ref().map_err(Clone::clone)
    }

    fn load() -> Result<Self, OfiError> {
        disable_monitor();
        let library = SharedLibrary::open(NAME).map_err(|reason| OfiError::NoLibrary { reason })?;
        let old = (c"FABRIC_1.0", "FABRIC_1.0");
        let records = (c"FABRIC_1.3", "FABRIC_1.3");
        let version = find(library, c"fi_version", "fi_version", old)?;
        // SAFETY: the function of this name and version has this type.
        let version: unsafe extern "C" fn() -> u32 = unsafe { std::mem::transmute(version) };
        // SAFETY: the function has no conditions.
        let version = unsafe { version() };
        if version < abi::API_VERSION {
            return Err(OfiError::OldLibrary { major: version >> 16, minor: version & 0xffff });
        }
        let get_info = find(library, c"fi_getinfo", "fi_getinfo", records)?;
        let free_info = find(library, c"fi_freeinfo", "fi_freeinfo", records)?;
        let duplicate_info = find(library, c"fi_dupinfo", "fi_dupinfo", records)?;
        let fabric = find(library, c"fi_fabric", "fi_fabric", (c"FABRIC_1.1", "FABRIC_1.1"))?;
        let error_text = find(library, c"fi_strerror", "fi_strerror", old)?;
        Ok(Self {
            version,
            // SAFETY: the functions of these names and versions have these types.
            get_info: unsafe { std::mem::transmute::<*const c_void, GetInfo>(get_info) },
            // SAFETY: as above.
            free_info: unsafe { std::mem::transmute::<*const c_void, FreeInfo>(free_info) },
            // SAFETY: as above.
            duplicate_info: unsafe {
                std::mem::transmute::<*const c_void, DuplicateInfo>(duplicate_info)
            },
            // SAFETY: as above.
            fabric: unsafe { std::mem::transmute::<*const c_void, OpenFabric>(fabric) },
            // SAFETY: as above.
            error_text: unsafe { std::mem::transmute::<*const c_void, ErrorText>(error_text) },
        })
    }

    /// Returns the text of an error, which calls return as a negative number.
    pub(super) fn error_text(&self, code: i32) -> String {
        // SAFETY: the function takes any number.
        let text = unsafe { (self.error_text)(code.saturating_abs()) };
        text_of(text).unwrap_or_else(|| format!("error {code}"))
    }

    /// Returns the error of a call, unless its result is 0.
    pub(super) fn check(
        &self,
        call: &'static str,
        provider: &str,
        result: c_int,
    ) -> Result<(), OfiError> {
        match result {
            0 => Ok(()),
            code => Err(OfiError::Call {
                call,
                provider: provider.to_owned(),
                reason: with_process_limits(self.error_text(code), Some(-code)),
            }),
        }
    }

    /// Lists what there is, as far as it fits `hints`.
    pub(super) fn infos(&'static self, hints: Option<&Infos>) -> Result<Infos, OfiError> {
        let hints = hints.map_or(ptr::null(), |hints| hints.first.as_ptr().cast_const());
        let mut first = ptr::null_mut();
        let (node, service) = (ptr::null(), ptr::null());
        // SAFETY: the hints are a whole record, or none; the result has a place.
        let result =
            unsafe { (self.get_info)(abi::API_VERSION, node, service, 0, hints, &raw mut first) };
        if result != 0 && result != -abi::NO_DATA {
            self.check("fi_getinfo", "not chosen", result)?;
        }
        match NonNull::new(first) {
            Some(first) => Ok(Infos { library: self, first }),
            None => self.copy(ptr::null()),
        }
    }

    /// Returns an empty record, to be filled with hints.
    pub(super) fn empty(&'static self) -> Result<Infos, OfiError> {
        self.copy(ptr::null())
    }

    /// Copies one record, or makes an empty one.
    fn copy(&'static self, of: *const Info) -> Result<Infos, OfiError> {
        // SAFETY: the record is one of a list, or none.
        let copy = unsafe { (self.duplicate_info)(of) };
        let first = NonNull::new(copy);
        let what = "memory";
        let reason = || "none left".to_owned();
        let first = first.ok_or_else(|| OfiError::System { what, reason: reason() })?;
        Ok(Infos { library: self, first })
    }

    /// Opens the network of a record.
    pub(super) fn fabric(&self, of: &Infos) -> Result<NonNull<abi::Fabric>, OfiError> {
        let attributes = of.first().fabric_attr;
        let mut fabric = ptr::null_mut();
        // SAFETY: the attributes are those of a record that the library has made.
        let result = unsafe { (self.fabric)(attributes, &raw mut fabric, ptr::null_mut()) };
        self.check("fi_fabric", &of.provider(), result)?;
        NonNull::new(fabric).ok_or_else(|| OfiError::Call {
            call: "fi_fabric",
            provider: of.provider(),
            reason: "no object".to_owned(),
        })
    }
}

/// List of records that the library has made, at least one.
pub(super) struct Infos {
    pub(super) library: &'static Library,
    first: NonNull<Info>,
}

// SAFETY: the list belongs to this value, and the library changes it no more.
unsafe impl Send for Infos {}
// SAFETY: as above.
unsafe impl Sync for Infos {}

impl Infos {
    /// Returns the first record.
    pub(super) fn first(&self) -> &Info {
        // SAFETY: the list belongs to this value, and nobody else changes it.
        unsafe { self.first.as_ref() }
    }

    /// Returns the first record, for those who fill it.
    pub(super) fn first_mut(&mut self) -> &mut Info {
        // SAFETY: as above, and this value is borrowed exclusively.
        unsafe { self.first.as_mut() }
    }

    /// Returns the first record, for calls of the library.
    pub(super) fn pointer(&self) -> *mut Info {
        self.first.as_ptr()
    }

    /// Returns all records.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Info> {
        let next = |info: &&Info| {
            // SAFETY: each record of the list points to the next one, or to none, and stays as long.
            unsafe { info.next.as_ref() }
        };
        std::iter::successors(Some(self.first()), next)
    }

    /// Copies the record at a position.
    pub(super) fn nth(&self, position: usize) -> Result<Self, OfiError> {
        let found = self.iter().nth(position);
        self.library.copy(found.map_or(ptr::null(), ptr::from_ref))
    }

    /// Returns the name of the provider of the first record.
    pub(super) fn provider(&self) -> String {
        provider(self.first()).unwrap_or_default()
    }
}

impl Drop for Infos {
    fn drop(&mut self) {
        // SAFETY: the list came from the library, and nobody has it any more.
        unsafe { (self.library.free_info)(self.first.as_ptr()) };
    }
}

/// Returns the name of the provider of a record.
pub(super) fn provider(of: &Info) -> Option<String> {
    // SAFETY: the attributes of a record of the library stay as long as that.
    let attributes = unsafe { of.fabric_attr.as_ref() }?;
    text_of(attributes.prov_name)
}

/// Returns the name of the interface of a record.
pub(super) fn interface(of: &Info) -> Option<String> {
    // SAFETY: as in `provider`.
    let attributes = unsafe { of.domain_attr.as_ref() }?;
    text_of(attributes.name)
}

/// Copies a text of the library.
fn text_of(text: *const c_char) -> Option<String> {
    // SAFETY: texts of the library end with a zero, and stay while they are copied.
    unsafe { shared_library::text_of(text) }
}

/// Finds a function of a version.
fn find(
    library: SharedLibrary,
    symbol: &CStr,
    name: &'static str,
    (version, version_name): (&CStr, &'static str),
) -> Result<*const c_void, OfiError> {
    let found = library.function_of_version(symbol, version);
    let found = found.ok_or(OfiError::NoSymbol { symbol: name, version: version_name })?;
    Ok(found.as_ptr().cast_const())
}

/// Switches the cache of registrations off, if that can be done safely: this thread is the only one, so
/// nobody reads the environment meanwhile. Launchers set the variable as well.
fn disable_monitor() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let is_alone = status.lines().any(|line| line == "Threads:\t1");
    if is_alone && std::env::var_os(MONITOR.0).is_none() {
        // SAFETY: there is no other thread.
        unsafe { std::env::set_var(MONITOR.0, MONITOR.1) };
    }
}
