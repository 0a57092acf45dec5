//! The MPI library of this process, from initialisation to finalisation.
#![allow(unsafe_code, reason = "calls MPI")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ThreadId};

use super::call::check;
use super::{RawCommunicator, Refused, ffi};

/// Threads that may call MPI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// All threads (`MPI_THREAD_MULTIPLE`).
    #[default]
    Multiple,
    /// Only the thread that initialised MPI (`MPI_THREAD_FUNNELED`).
    Single,
}

impl fmt::Display for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Threads::Multiple => "multiple",
            Threads::Single => "single",
        })
    }
}

/// The initialised MPI library. A process can have one only once: MPI cannot be initialised again.
///
/// Dropping it finalises MPI, if it has initialised it, after all started operations have
/// completed. Only the thread that has initialised MPI may do that, so the value cannot be sent to
/// another thread:
///
/// ```compile_fail,E0277
/// fn on_another_thread(library: tampi_shim::mpi::Library) {
///     std::thread::spawn(move || drop(library));
/// }
/// ```
#[derive(Debug)]
pub struct Library {
    threads: Threads,
    main_thread: ThreadId,
    owned: bool,
    world: RawCommunicator,
    rank: u32,
    size: u32,
    local_size: u32,
    cores: usize,
    max_tag: u32,
    ended: AtomicBool,
    stays: PhantomData<*const ()>,
}

/// The library as a part of values that several threads use. Dropped on another thread than the one
/// that has initialised MPI, it does not finalise MPI.
#[derive(Debug)]
pub(super) struct Shared(pub(super) Library);

// SAFETY: the library is plain numbers and a flag. It may be called by other threads as MPI grants
// (`may_call`), and ends MPI on its own thread alone (`end`).
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Deref for Shared {
    type Target = Library;

    #[inline]
    fn deref(&self) -> &Library {
        &self.0
    }
}

static TAKEN: AtomicBool = AtomicBool::new(false);

impl Library {
    /// Initialises MPI for `wanted` threads. MPI may grant less: see [`Library::threads`].
    ///
    /// If the program has initialised MPI itself, that initialisation is used, and the program
    /// finalises MPI.
    ///
    /// **Errors**: called before in this process; MPI is finalised; an error of MPI.
    pub fn initialize(wanted: Threads) -> Result<Library, Refused> {
        let again =
            |reason: &str| Refused { call: "MPI_Init_thread", code: 0, reason: reason.to_owned() };
        if TAKEN.swap(true, Ordering::SeqCst) {
            return Err(again("MPI is initialised once in a process"));
        }
        let (mut initialized, mut finalized) = (0, 0);
        // SAFETY: may be called at any time; writes one number.
        check("MPI_Initialized", unsafe { ffi::MPI_Initialized(&mut initialized) })?;
        // SAFETY: may be called at any time; writes one number.
        check("MPI_Finalized", unsafe { ffi::MPI_Finalized(&mut finalized) })?;
        if finalized != 0 {
            return Err(again("MPI has ended"));
        }
        let owned = initialized == 0;
        let granted = if owned { initialize(wanted)? } else { query_threads()? };
        let all = RawCommunicator::world();
        all.return_errors()?;
        let world = all.duplicate()?;
        let (local_size, cores) = neighbours(world)?;
        Ok(Library {
            threads: if granted { wanted } else { Threads::Single },
            main_thread: thread::current().id(),
            owned,
            rank: world.rank()?,
            size: world.size()?,
            local_size,
            cores,
            max_tag: max_tag()?,
            world,
            ended: AtomicBool::new(false),
            stays: PhantomData,
        })
    }

    /// Returns the threads that may call MPI.
    pub fn threads(&self) -> Threads {
        self.threads
    }

    /// Returns `true` if all threads may call MPI.
    #[inline]
    pub fn may_call_anywhere(&self) -> bool {
        self.threads == Threads::Multiple
    }

    /// Returns `true` if the calling thread may call MPI.
    #[inline]
    pub fn may_call(&self) -> bool {
        self.may_call_anywhere() || thread::current().id() == self.main_thread
    }

    /// Returns a communicator of all ranks that only this crate uses.
    pub(crate) fn world(&self) -> RawCommunicator {
        self.world
    }

    /// Returns the rank of this process.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Returns the number of processes.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Returns the number of processes on this machine.
    pub fn local_size(&self) -> u32 {
        self.local_size
    }

    /// Returns the number of cores that the processes on this machine may use together.
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// Returns the largest tag of a message.
    pub fn max_tag(&self) -> u32 {
        self.max_tag
    }

    /// Returns the version string of the MPI library.
    ///
    /// **Errors**: an error of MPI.
    pub fn version(&self) -> Result<String, Refused> {
        let mut text = [0 as c_char; ffi::MPI_MAX_LIBRARY_VERSION_STRING as usize + 1];
        let mut length = 0;
        // SAFETY: the buffer is longer than the longest text.
        let code = unsafe { ffi::MPI_Get_library_version(text.as_mut_ptr(), &mut length) };
        check("MPI_Get_library_version", code)?;
        // SAFETY: MPI has written a string with its end into the buffer, which outlives the use.
        Ok(unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned())
    }

    /// Finalises MPI once, if this value has initialised it and on the thread that has. All started
    /// operations have completed, and no thread calls MPI afterwards.
    pub(super) fn end(&self) {
        if self.ended.swap(true, Ordering::SeqCst) || thread::current().id() != self.main_thread {
            return;
        }
        // Nobody can act on an error at the end.
        let _ = self.world.free();
        if self.owned {
            // SAFETY: this library has initialised MPI, and nothing uses it after this.
            unsafe { ffi::MPI_Finalize() };
        }
    }

    /// Ends all processes at once, including this one.
    pub fn abort(&self, code: i32) -> ! {
        // SAFETY: MPI is initialised for as long as `self` lives.
        unsafe { ffi::MPI_Abort(self.world.handle(), code) };
        std::process::abort()
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        if thread::panicking() && !self.ended.load(Ordering::SeqCst) {
            // The others wait for this process, which cannot notify them any more.
            self.abort(1);
        }
        self.end();
    }
}

/// Returns the number of ranks on this machine, and of cores that they may use together. Blocks
/// until all ranks call it.
fn neighbours(world: RawCommunicator) -> Result<(u32, usize), Refused> {
    let here = world.of_this_machine()?;
    let mut cores = [0u64; 16];
    // Without an affinity mask, the number of cores that the runtime finds.
    match rustix::thread::sched_getaffinity(None) {
        Ok(set) => (0..64 * cores.len()).filter(|core| set.is_set(*core)).for_each(|core| {
            cores[core / 64] |= 1 << (core % 64);
        }),
        Err(_) => cores[0] = u64::MAX >> (64 - talpf_runtime::cores().min(64)),
    }
    here.unite(&mut cores)?;
    let size = here.size()?;
    here.free()?;
    let count: u32 = cores.iter().map(|word| word.count_ones()).sum();
    Ok((size, count.max(1) as usize))
}

/// Initialises MPI. Returns `true` if it grants the wanted threads.
fn initialize(wanted: Threads) -> Result<bool, Refused> {
    // SAFETY: a constant of the library.
    let multiple = unsafe { ffi::RSMPI_THREAD_MULTIPLE };
    // SAFETY: a constant of the library.
    let funneled = unsafe { ffi::RSMPI_THREAD_FUNNELED };
    let required = match wanted {
        Threads::Multiple => multiple,
        Threads::Single => funneled,
    };
    let mut granted = 0;
    let (argc, argv) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: neither initialised nor ended; the arguments of the program may be absent.
    let code = unsafe { ffi::MPI_Init_thread(argc, argv, required, &mut granted) };
    check("MPI_Init_thread", code)?;
    Ok(granted >= required)
}

/// Returns `true` if an MPI that the program has initialised grants all threads.
fn query_threads() -> Result<bool, Refused> {
    let mut granted = 0;
    // SAFETY: MPI is initialised.
    check("MPI_Query_thread", unsafe { ffi::MPI_Query_thread(&mut granted) })?;
    // SAFETY: a constant of the library.
    Ok(granted >= unsafe { ffi::RSMPI_THREAD_MULTIPLE })
}

fn max_tag() -> Result<u32, Refused> {
    /// Largest tag that every MPI must support.
    const LEAST: c_int = 32_767;
    let mut value: *const c_int = ptr::null();
    let mut found = 0;
    let world = RawCommunicator::world().handle();
    let key = ffi::MPI_TAG_UB as c_int;
    let to = (&raw mut value).cast::<c_void>();
    // SAFETY: MPI is initialised; it writes a pointer to a number that it keeps.
    check("MPI_Comm_get_attr", unsafe { ffi::MPI_Comm_get_attr(world, key, to, &mut found) })?;
    // SAFETY: null, or as written above.
    let most = unsafe { value.as_ref() }.filter(|_| found != 0);
    Ok(most.map_or(LEAST, |most| *most).max(LEAST) as u32)
}
