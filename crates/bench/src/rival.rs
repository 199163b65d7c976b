//! Other allocators, loaded from shared libraries and measured beside the engine.
//!
//! A rival is a shared library that exports one table of functions, `kontig_rival_1`:
//!
//! ```c
//! struct kontig_rival {
//!     const char *name;                               /* printed in the table */
//!     size_t (*bytes)(uint32_t frames);               /* memory needed for these frames */
//!     void *(*make)(uint32_t frames, void *memory);   /* all free; memory is zeroed and huge */
//!     void (*end)(void *rival);                       /* must not free the memory */
//!     uint32_t (*alloc)(void *rival, uint32_t order); /* first frame, or UINT32_MAX */
//!     void (*free)(void *rival, uint32_t frame, uint32_t order);
//!     /* the frames of the block will be freed one by one */
//!     void (*split)(void *rival, uint32_t frame, uint32_t order);
//!     void (*settle)(void *rival);                    /* frees frames cached for the CPU */
//! };
//! extern const struct kontig_rival kontig_rival_1;
//! ```
//!
//! A rival is called through this table, so beside a rival the engine is called through one as
//! well: neither is inlined into the benchmark. That costs the engine a few nanoseconds per
//! operation, since the order of a request is no longer a constant; such ratios err against the
//! engine. The memory of both comes from the program's allocator.

use crate::subject::{Contender, Kontig, Subject};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;
use std::ptr::NonNull;

/// A rival's table of functions, described with the module.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Functions {
    /// A static string that ends with a zero.
    pub name: *const c_char,
    /// Bytes of memory it needs.
    pub bytes: unsafe extern "C" fn(frames: u32) -> usize,
    pub make: unsafe extern "C" fn(frames: u32, memory: *mut c_void) -> *mut c_void,
    pub end: unsafe extern "C" fn(rival: *mut c_void),
    pub alloc: unsafe extern "C" fn(rival: *mut c_void, order: u32) -> u32,
    pub free: unsafe extern "C" fn(rival: *mut c_void, frame: u32, order: u32),
    /// Declares that a block's frames will be freed one by one.
    pub split: unsafe extern "C" fn(rival: *mut c_void, frame: u32, order: u32),
    /// Frees frames cached for the CPU.
    pub settle: unsafe extern "C" fn(rival: *mut c_void),
}

/// Returned by `alloc` if there is no block.
const NONE: u32 = u32::MAX;
/// The symbol of the table.
const TABLE: &CStr = c"kontig_rival_1";
/// The least size of a rival's memory: the program's allocator puts arrays of this size on huge
/// pages, where a rival's memory should be as well.
const HUGE_PAGE: usize = 2 << 20;

/// A subject behind a table of functions.
pub struct Called {
    functions: Functions,
    rival: NonNull<c_void>,
    memory: NonNull<u8>,
    layout: Layout,
}

impl Called {
    /// # Safety
    /// The functions behave as the module describes.
    unsafe fn new(functions: Functions, frames: u32) -> Called {
        // SAFETY: a pure function of the number of frames.
        let bytes = unsafe { (functions.bytes)(frames) };
        let layout = Layout::from_size_align(bytes.max(HUGE_PAGE), HUGE_PAGE).expect("a size that memory can have");
        // SAFETY: the size is not zero. `make` gets the memory it
        // asked for, and owns it until `end`.
        let (memory, rival) = unsafe {
            let memory = NonNull::new(alloc_zeroed(layout)).expect("enough memory");
            (memory, (functions.make)(frames, memory.as_ptr().cast()))
        };
        Called { functions, rival: NonNull::new(rival).expect("a rival with this number of frames"), memory, layout }
    }
}

impl Drop for Called {
    fn drop(&mut self) {
        // SAFETY: made by `make` and ended once; the memory came from the
        // global allocator with this layout.
        unsafe {
            (self.functions.end)(self.rival.as_ptr());
            dealloc(self.memory.as_ptr(), self.layout);
        }
    }
}

// SAFETY (all four): `rival` was made by `make` and is not ended before `self` is; `&mut self` is
// its only user.
impl Subject for Called {
    #[inline]
    fn alloc(&mut self, order: u8) -> Option<u32> {
        let frame = unsafe { (self.functions.alloc)(self.rival.as_ptr(), u32::from(order)) };
        (frame != NONE).then_some(frame)
    }
    #[inline]
    fn free(&mut self, pfn: u32, order: u8) {
        unsafe { (self.functions.free)(self.rival.as_ptr(), pfn, u32::from(order)) }
    }
    fn split(&mut self, pfn: u32, order: u8) {
        unsafe { (self.functions.split)(self.rival.as_ptr(), pfn, u32::from(order)) }
    }
    fn settle(&mut self) {
        unsafe { (self.functions.settle)(self.rival.as_ptr()) }
    }
}

/// The engine, called through a table like a rival.
pub fn kontig() -> Contender<Called> {
    // SAFETY (each): the pointer is the box that `make` leaked, until `end` takes it back.
    unsafe extern "C" fn bytes(_frames: u32) -> usize {
        0
    }
    unsafe extern "C" fn make(frames: u32, _memory: *mut c_void) -> *mut c_void {
        Box::into_raw(Box::new(Kontig::new(frames))).cast()
    }
    unsafe extern "C" fn end(rival: *mut c_void) {
        drop(unsafe { Box::from_raw(rival.cast::<Kontig>()) });
    }
    unsafe extern "C" fn alloc(rival: *mut c_void, order: u32) -> u32 {
        unsafe { &mut *rival.cast::<Kontig>() }.alloc(order as u8).unwrap_or(NONE)
    }
    unsafe extern "C" fn free(rival: *mut c_void, frame: u32, order: u32) {
        unsafe { &mut *rival.cast::<Kontig>() }.free(frame, order as u8);
    }
    unsafe extern "C" fn split(rival: *mut c_void, frame: u32, order: u32) {
        unsafe { &mut *rival.cast::<Kontig>() }.split(frame, order as u8);
    }
    unsafe extern "C" fn settle(rival: *mut c_void) {
        unsafe { &mut *rival.cast::<Kontig>() }.settle();
    }
    let functions = Functions { name: c"Kontig".as_ptr(), bytes, make, end, alloc, free, split, settle };
    // SAFETY: these functions behave as the module describes.
    Contender::new("Kontig", move |frames| unsafe { Called::new(functions, frames) })
}

/// Loads a rival from a shared library, which stays loaded.
///
/// # Errors
/// The loader's message.
pub fn load(path: &Path) -> Result<Contender<Called>, String> {
    let said = |what: &str| format!("{}: {what}", path.display());
    // Without a slash the loader would search the library path.
    let file = std::fs::canonicalize(path).map_err(|e| said(&e.to_string()))?;
    let file = CString::new(file.into_os_string().into_encoded_bytes()).map_err(|e| said(&e.to_string()))?;
    // SAFETY: both strings end with a zero. Loading runs the library's
    // code, which the user has chosen.
    let table = unsafe {
        let library = libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if library.is_null() {
            let why = libc::dlerror();
            let why = if why.is_null() { "no shared library".into() } else { CStr::from_ptr(why).to_string_lossy() };
            return Err(said(&format!("cannot be loaded: {why}")));
        }
        libc::dlsym(library, TABLE.as_ptr()).cast::<Functions>()
    };
    let Some(table) = NonNull::new(table) else {
        return Err(said(&format!("no rival: it has no table '{}' (see --help)", TABLE.to_string_lossy())));
    };
    // SAFETY: a library with this symbol promises what the module describes, and is never unloaded.
    let (functions, name) = unsafe { (*table.as_ptr(), CStr::from_ptr(table.as_ref().name).to_string_lossy()) };
    // SAFETY: as above.
    Ok(Contender::new(name.as_ref(), move |frames| unsafe { Called::new(functions, frames) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_does_the_same_when_it_is_called_through_a_table() {
        const FRAMES: u32 = 1 << 15;
        let (mut direct, mut called) = (Kontig::new(FRAMES), kontig().make(FRAMES));
        for order in [0, 9, 3, 0] {
            assert_eq!(direct.fill(order), called.fill(order));
            assert_eq!(called.alloc(order), None);
        }
        direct.free(77, 0);
        called.free(77, 0);
        called.settle();
        assert_eq!(called.alloc(0), Some(77));
    }

    #[test]
    fn a_library_that_is_no_rival_is_refused_in_one_line() {
        let refused = |path: &str| load(Path::new(path)).err().expect("it is refused");
        assert!(refused("/nowhere/librival.so").starts_with("/nowhere/librival.so: No such file"));
        let no_library = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        assert!(refused(no_library).starts_with(&format!("{no_library}: cannot be loaded: ")));
    }
}
