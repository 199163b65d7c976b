//! LLFree behind the table of functions that `crates/bench/src/rival.rs` describes.
//!
//! One CPU, with LLFree's own policy of two classes: small frames and huge ones.

use llfree::{Alloc, Class, Classing, FrameId, HUGE_ORDER, Init, LLFree, MetaData, Request, TREE_HUGE};
use std::ffi::{c_char, c_void};

/// The table, as the benchmark reads it.
#[repr(C)]
pub struct Functions {
    name: *const c_char,
    bytes: unsafe extern "C" fn(u32) -> usize,
    make: unsafe extern "C" fn(u32, *mut c_void) -> *mut c_void,
    end: unsafe extern "C" fn(*mut c_void),
    alloc: unsafe extern "C" fn(*mut c_void, u32) -> u32,
    free: unsafe extern "C" fn(*mut c_void, u32, u32),
    split: unsafe extern "C" fn(*mut c_void, u32, u32),
    settle: unsafe extern "C" fn(*mut c_void),
}

// SAFETY: the name is a static string, and nothing else is shared.
unsafe impl Sync for Functions {}

const PAGE: usize = 4096;

/// The sizes of its three buffers, each of whole pages.
fn sizes(frames: u32) -> [usize; 3] {
    let size = LLFree::metadata_size(&Classing::simple(1).0, frames as usize);
    [size.local, size.trees, size.lower].map(|bytes| bytes.next_multiple_of(PAGE))
}

/// The request of the only CPU, of the class that its size has in [`Classing::simple`].
#[inline(always)]
fn request(order: u32) -> Request {
    Request::new(order as usize, Class(u8::from(order as usize >= HUGE_ORDER)), Some(0))
}

unsafe extern "C" fn bytes(frames: u32) -> usize {
    sizes(frames).iter().sum()
}

unsafe extern "C" fn make(frames: u32, memory: *mut c_void) -> *mut c_void {
    let [local, trees, lower] = sizes(frames);
    // SAFETY: `memory` has the bytes asked for and is the rival's until `end`; the parts are
    // disjoint.
    let part = |at: usize, bytes: usize| unsafe { std::slice::from_raw_parts_mut(memory.cast::<u8>().add(at), bytes) };
    let meta = MetaData { local: part(0, local), trees: part(local, trees), lower: part(local + trees, lower) };
    let made = LLFree::new(frames as usize, Init::FreeAll, &Classing::simple(1).0, meta);
    Box::into_raw(Box::new(made.expect("buffers of the sizes it asked for"))).cast()
}

// SAFETY (each below): the pointer is the box that `make` leaked, until `end` takes it back.
unsafe extern "C" fn end(rival: *mut c_void) {
    drop(unsafe { Box::from_raw(rival.cast::<LLFree>()) });
}

unsafe extern "C" fn alloc(rival: *mut c_void, order: u32) -> u32 {
    let rival = unsafe { &*rival.cast::<LLFree>() };
    rival.get(None, request(order)).map_or(u32::MAX, |(frame, _)| frame.0 as u32)
}

unsafe extern "C" fn free(rival: *mut c_void, frame: u32, order: u32) {
    let rival = unsafe { &*rival.cast::<LLFree>() };
    rival.put(FrameId(frame as usize), request(order)).expect("the block was allocated");
}

/// It frees parts of a huge page as they come.
unsafe extern "C" fn split(_rival: *mut c_void, _frame: u32, _order: u32) {}

unsafe extern "C" fn settle(rival: *mut c_void) {
    unsafe { &*rival.cast::<LLFree>() }.drain();
}

#[unsafe(no_mangle)]
pub static kontig_rival_1: Functions = Functions {
    name: if TREE_HUGE == 32 { c"LLFree t32".as_ptr() } else { c"LLFree t4".as_ptr() },
    bytes,
    make,
    end,
    alloc,
    free,
    split,
    settle,
};
