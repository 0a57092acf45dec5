#![allow(unsafe_code, reason = "functions of a library are called")]
//! The library itself, opened at run time.
//!
//! The library keeps the state of a process, so there is one connection to the launcher at a time; a [`Session`]
//! has it.
//!
//! [`Session`]: super::session::Session

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    fmt, mem,
    ptr::{self, NonNull},
    slice,
    sync::OnceLock,
    time::Duration,
};

use super::abi::{self, Bytes, Data, Info, Process, Status, Value};
use crate::shared_library::{SharedLibrary, text_of};

/// Name of the library.
pub(super) const NAME: &str = "libpmix.so.2";
const FILE: &CStr = c"libpmix.so.2";

type Initialize = unsafe extern "C" fn(*mut Process, *const Info, usize) -> Status;
type Finalize = unsafe extern "C" fn(*const Info, usize) -> Status;
type Put = unsafe extern "C" fn(u8, *const c_char, *mut Value) -> Status;
type Commit = unsafe extern "C" fn() -> Status;
type Fence = unsafe extern "C" fn(*const Process, usize, *const Info, usize) -> Status;
type Get = unsafe extern "C" fn(
    *const Process,
    *const c_char,
    *const Info,
    usize,
    *mut *mut Value,
) -> Status;
type Text = unsafe extern "C" fn() -> *const c_char;
type ErrorText = unsafe extern "C" fn(Status) -> *const c_char;

/// Functions of the library.
pub(super) struct Library {
    initialize: Initialize,
    finalize: Finalize,
    put: Put,
    commit: Commit,
    fence: Fence,
    get: Get,
    error_text: ErrorText,
}

/// A call that has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// Name of the function.
    pub(super) call: &'static str,
    pub(super) cause: Cause,
}

/// Cause of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The others, or the launcher, have not answered in time.
    TimedOut,
    /// The value does not exist, or is of another kind.
    NoSuchValue,
    /// Something else, in the words of the library.
    Other(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.call)?;
        match &self.cause {
            Cause::TimedOut => f.write_str("no answer in time"),
            Cause::NoSuchValue => f.write_str("no such value"),
            Cause::Other(text) => f.write_str(text),
        }
    }
}

impl Library {
    /// Opens the library, once.
    ///
    /// **Errors**: the reason for which it cannot be used.
    pub(super) fn open() -> Result<&'static Self, String> {
        static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
        LIBRARY.get_or_init(Self::load).as_ref().map_err(Clone::clone)
    }

    fn load() -> Result<Self, String> {
        let library = SharedLibrary::open(FILE);
        let library = library.map_err(|reason| format!("{NAME} cannot be loaded: {reason}"))?;
        Self::of(library)
    }

    /// Finds the functions of a library.
    fn of(library: SharedLibrary) -> Result<Self, String> {
        let find = |symbol: &CStr| {
            let found = library.function(symbol).map(|found| found.as_ptr().cast_const());
            found.ok_or_else(|| format!("{NAME} has no function {}", symbol.to_string_lossy()))
        };
        let version = find(c"PMIx_Get_version")?;
        // SAFETY: the function of this name has this type in all versions.
        let version = unsafe { mem::transmute::<*const c_void, Text>(version) };
        // SAFETY: the function has no conditions.
        let version = unsafe { version() };
        // SAFETY: the text is a constant of the library.
        let version = unsafe { text_of(version) }.unwrap_or_default();
        if major_of(&version).is_none_or(|major| major < abi::OLDEST) {
            let oldest = abi::OLDEST;
            return Err(format!("{NAME} is of {version:?}; version {oldest} or later is needed"));
        }
        let (initialize, finalize) = (find(c"PMIx_Init")?, find(c"PMIx_Finalize")?);
        let (put, commit) = (find(c"PMIx_Put")?, find(c"PMIx_Commit")?);
        let (fence, get) = (find(c"PMIx_Fence")?, find(c"PMIx_Get")?);
        let error_text = find(c"PMIx_Error_string")?;
        Ok(Self {
            // SAFETY: from the oldest version on, the functions of these names have these types.
            initialize: unsafe { mem::transmute::<*const c_void, Initialize>(initialize) },
            // SAFETY: as above.
            finalize: unsafe { mem::transmute::<*const c_void, Finalize>(finalize) },
            // SAFETY: as above.
            put: unsafe { mem::transmute::<*const c_void, Put>(put) },
            // SAFETY: as above.
            commit: unsafe { mem::transmute::<*const c_void, Commit>(commit) },
            // SAFETY: as above.
            fence: unsafe { mem::transmute::<*const c_void, Fence>(fence) },
            // SAFETY: as above.
            get: unsafe { mem::transmute::<*const c_void, Get>(get) },
            // SAFETY: as above.
            error_text: unsafe { mem::transmute::<*const c_void, ErrorText>(error_text) },
        })
    }

    fn check(&self, call: &'static str, status: Status) -> Result<(), Failure> {
        let cause = match status {
            abi::SUCCESS => return Ok(()),
            abi::TIMED_OUT => Cause::TimedOut,
            abi::NOT_FOUND => Cause::NoSuchValue,
            status => {
                // SAFETY: the function takes any number.
                let text = unsafe { (self.error_text)(status) };
                // SAFETY: the text is a constant of the library.
                let text = unsafe { text_of(text) };
                Cause::Other(format!("{} ({status})", text.unwrap_or_default()))
            }
        };
        Err(Failure { call, cause })
    }

    /// Connects this process to its launcher, and returns what it is there.
    pub(super) fn initialize(&self) -> Result<Process, Failure> {
        let mut process = Process { nspace: [0; abi::JOB_BYTES], number: 0 };
        // SAFETY: the process has a place, and there are no directives.
        let status = unsafe { (self.initialize)(&raw mut process, ptr::null(), 0) };
        self.check("PMIx_Init", status).map(|()| process)
    }

    /// Ends the connection to the launcher, which then takes the process for one that may end.
    pub(super) fn finalize(&self) -> Result<(), Failure> {
        // SAFETY: there are no directives.
        let status = unsafe { (self.finalize)(ptr::null(), 0) };
        self.check("PMIx_Finalize", status)
    }

    /// Puts a value, which others get once it was committed and all have passed a fence.
    pub(super) fn put(&self, key: &CStr, bytes: &[u8]) -> Result<(), Failure> {
        let bo = Bytes { bytes: bytes.as_ptr().cast_mut().cast(), size: bytes.len() };
        let mut value = Value { kind: abi::BYTES, data: Data { bo } };
        // SAFETY: the key ends with a zero. The library copies the value, and does not change it.
        let status = unsafe { (self.put)(abi::GLOBAL, key.as_ptr(), &raw mut value) };
        self.check("PMIx_Put", status)
    }

    /// Commits what was put, and waits until all processes of the job have come to the fence.
    pub(super) fn fence(&self, timeout: Duration) -> Result<(), Failure> {
        // SAFETY: the function has no conditions once the library was initialized, and an error else.
        let status = unsafe { (self.commit)() };
        self.check("PMIx_Commit", status)?;
        let directives = [Info::flag(abi::COLLECT), Info::integer(abi::TIMEOUT, seconds(timeout))];
        // SAFETY: the directives are whole; without processes, all of the job are meant.
        let status = unsafe { (self.fence)(ptr::null(), 0, directives.as_ptr(), directives.len()) };
        self.check("PMIx_Fence", status)
    }

    /// Returns bytes that a process has put.
    pub(super) fn bytes(
        &self,
        process: &Process,
        key: &CStr,
        timeout: Duration,
    ) -> Result<Vec<u8>, Failure> {
        self.get(process, key, timeout)?.bytes()
    }

    /// Returns the number of processes of a job.
    pub(super) fn processes(&self, of: &Process, timeout: Duration) -> Result<u32, Failure> {
        let all = Process { number: abi::ALL, ..*of };
        self.get(&all, abi::JOB_SIZE, timeout)?.number()
    }

    fn get(&self, of: &Process, key: &CStr, timeout: Duration) -> Result<Owned, Failure> {
        let directives =
            [Info::flag(abi::IMMEDIATE), Info::integer(abi::TIMEOUT, seconds(timeout))];
        let mut value = ptr::null_mut();
        // SAFETY: process and directives are whole; the key ends with a zero; the value has a place.
        let status = unsafe {
            let (directives, count) = (directives.as_ptr(), directives.len());
            (self.get)(of, key.as_ptr(), directives, count, &raw mut value)
        };
        self.check("PMIx_Get", status)?;
        NonNull::new(value).map(Owned).ok_or(NO_SUCH_VALUE)
    }
}

const NO_SUCH_VALUE: Failure = Failure { call: "PMIx_Get", cause: Cause::NoSuchValue };

/// A value that the library has made for this process.
struct Owned(NonNull<Value>);

impl Owned {
    fn value(&self) -> &Value {
        // SAFETY: the library has made the value, and leaves it to this process.
        unsafe { self.0.as_ref() }
    }

    fn number(&self) -> Result<u32, Failure> {
        let value = self.value();
        if value.kind != abi::UINT32 {
            return Err(NO_SUCH_VALUE);
        }
        // SAFETY: it is of that kind.
        Ok(unsafe { value.data.uint32 })
    }

    fn content(&self) -> Option<Bytes> {
        let value = self.value();
        if value.kind != abi::BYTES {
            return None;
        }
        // SAFETY: it is of that kind.
        Some(unsafe { value.data.bo })
    }

    fn bytes(&self) -> Result<Vec<u8>, Failure> {
        let Bytes { bytes, size } = self.content().ok_or(NO_SUCH_VALUE)?;
        if bytes.is_null() || size == 0 {
            return Ok(Vec::new());
        }
        // SAFETY: the library has so many bytes there, and keeps them until the value is freed.
        Ok(unsafe { slice::from_raw_parts(bytes.cast::<u8>(), size) }.to_vec())
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(Bytes { bytes, .. }) = self.content() {
            // SAFETY: the library has allocated the bytes for this value, with `malloc`.
            unsafe { libc::free(bytes.cast()) };
        }
        // SAFETY: the library has allocated the value for this process, with `malloc`.
        unsafe { libc::free(self.0.as_ptr().cast()) };
    }
}

/// Returns the first number of a version, such as 4 of `OpenPMIx 4.2.2 (PMIx Standard: 4.2)`.
fn major_of(version: &str) -> Option<u32> {
    let digits = version.trim_start_matches(|c: char| !c.is_ascii_digit());
    digits.split('.').next()?.parse().ok()
}

/// Returns whole seconds, at least one: a timeout of 0 is none.
fn seconds(of: Duration) -> c_int {
    let seconds = of.as_secs().saturating_add(u64::from(of.subsec_nanos() > 0));
    seconds.clamp(1, i32::MAX as u64) as c_int
}

#[cfg(all(test, not(talpf_loom), not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn versions_and_seconds_are_whole() {
        let version = "OpenPMIx 4.2.2rc2 (PMIx Standard: 4.2, Stable ABI: 0.0)";
        assert_eq!(major_of(version), Some(4));
        assert_eq!((major_of("2.1"), major_of("3"), major_of("none")), (Some(2), Some(3), None));
        assert_eq!(
            [0, 1, 999, 1000, 1001].map(|ms| seconds(Duration::from_millis(ms))),
            [1, 1, 1, 1, 2]
        );
        assert_eq!(seconds(Duration::MAX), i32::MAX);
    }

    #[test]
    fn a_library_without_the_functions_is_refused() {
        let other = SharedLibrary::open(c"libc.so.6").unwrap();
        let error = Library::of(other).map(drop).unwrap_err();
        assert_eq!(error, "libpmix.so.2 has no function PMIx_Get_version");
    }
}
