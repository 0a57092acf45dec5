//! The MPI library of this process, from initialisation to finalisation.
#![allow(unsafe_code, reason = "calls MPI")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ThreadId};

use ::mpi::Threading;

use super::call::check;
use super::{RawCommunicator, Refused, ffi};

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

// SAFETY: the library is plain numbers and a flag. MPI may be called by all threads
// (`check_threads`), and is finalised on its own thread alone (`end`).
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
    /// Initialises MPI for calls of all threads.
    ///
    /// If the program has initialised MPI itself, that initialisation is used, and the program
    /// finalises MPI.
    ///
    /// **Errors**: called before in this process; MPI is finalised; MPI provides less than
    /// `MPI_THREAD_MULTIPLE`; an error of MPI.
    pub fn initialize() -> Result<Library, Refused> {
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
        if owned {
            initialize()?;
        } else {
            check_threads(::mpi::environment::threading_support(), BY_THE_PROGRAM)?;
        }
        let all = RawCommunicator::world();
        all.return_errors()?;
        let world = all.duplicate()?;
        let (local_size, cores) = neighbours(world)?;
        Ok(Library {
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

    /// Returns the bytes that each process has given, by number. Blocks until all processes call this.
    ///
    /// **Errors**: an error of MPI.
    pub fn all_gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>, Refused> {
        const WORD: usize = size_of::<u64>();
        let (here, size) = (self.rank as usize, self.size as usize);
        let mut lengths = vec![0; size];
        lengths[here] = own.len() as u64;
        self.world.unite(&mut lengths)?;
        let each = lengths.iter().max().map_or(0, |most| (*most as usize).div_ceil(WORD));
        let mut words = vec![0; each * size];
        for (word, bytes) in words[here * each..].iter_mut().zip(own.chunks(WORD)) {
            let mut padded = [0; WORD];
            padded[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(padded);
        }
        self.world.unite(&mut words)?;
        let of = |(process, length): (usize, &u64)| {
            let words = words[process * each..][..each].iter();
            words.flat_map(|word| word.to_le_bytes()).take(*length as usize).collect()
        };
        Ok(lengths.iter().enumerate().map(of).collect())
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

/// Initialises MPI, and finalises it again if it provides too little.
fn initialize() -> Result<(), Refused> {
    // SAFETY: a constant of the library.
    let required = unsafe { ffi::RSMPI_THREAD_MULTIPLE };
    let mut provided = 0;
    let (argc, argv) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: neither initialised nor ended; the arguments of the program may be absent.
    let code = unsafe { ffi::MPI_Init_thread(argc, argv, required, &mut provided) };
    check("MPI_Init_thread", code)?;
    check_threads(Threading::from(provided), BY_THIS_CRATE).inspect_err(|_| {
        // SAFETY: initialised above, and nothing uses it after this.
        unsafe { ffi::MPI_Finalize() };
    })
}

/// Advice for an MPI that this crate has initialised.
const BY_THIS_CRATE: &str = "build with, and run under, an MPI library that is configured for it";
/// Advice for an MPI that the program has initialised.
const BY_THE_PROGRAM: &str = "give it to MPI_Init_thread as the required level, or leave the \
                              initialisation to Library::initialize";

/// Checks the level of thread support: workers call MPI at the same time.
///
/// **Errors**: any level below `MPI_THREAD_MULTIPLE`.
fn check_threads(provided: Threading, advice: &str) -> Result<(), Refused> {
    let name = match provided {
        Threading::Single => "MPI_THREAD_SINGLE",
        Threading::Funneled => "MPI_THREAD_FUNNELED",
        Threading::Serialized => "MPI_THREAD_SERIALIZED",
        Threading::Multiple => return Ok(()),
    };
    let reason = format!("MPI provides {name} and MPI_THREAD_MULTIPLE is needed: {advice}");
    Err(Refused { call: "MPI_Init_thread", code: 0, reason })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_than_all_threads_is_refused_with_what_to_do() {
        let levels = [
            (Threading::Single, "MPI_THREAD_SINGLE"),
            (Threading::Funneled, "MPI_THREAD_FUNNELED"),
            (Threading::Serialized, "MPI_THREAD_SERIALIZED"),
        ];
        for (provided, name) in levels {
            for advice in [BY_THIS_CRATE, BY_THE_PROGRAM] {
                let text = check_threads(provided, advice).expect_err("too little").to_string();
                assert!(text.contains(&format!("provides {name} ")), "{text}");
                assert!(text.contains("MPI_THREAD_MULTIPLE is needed"), "{text}");
                assert!(text.contains(advice), "{text}");
            }
        }
        assert_eq!(check_threads(Threading::Multiple, BY_THIS_CRATE), Ok(()));
    }
}
