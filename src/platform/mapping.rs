//! A file mapped into memory, of which single pages are faulted in: an error of the drive is an answer, not the end of the program.
#![expect(unsafe_code, reason = "each block maps, advises or unmaps memory that this type alone owns and that nobody reads through")]

use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::null_mut;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// A shared mapping of a file for reading.
#[derive(Debug)]
pub struct Mapping {
    address: *mut c_void,
    len: usize,
}

// SAFETY: the memory is never read or written through the address; the kernel's calls on it may be made by any thread.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes of a file and asks the kernel not to read ahead of faults.
    pub(super) fn new(file: BorrowedFd<'_>, len: u64) -> io::Result<Self> {
        let len = usize::try_from(len).map_err(io::Error::other)?;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let address = unsafe { mmap(null_mut(), len, ProtFlags::READ, MapFlags::SHARED, file, 0)? };
        let this = Self { address, len };
        // SAFETY: the whole of the mapping.
        unsafe { madvise(address, len, Advice::Random)? };
        Ok(this)
    }

    /// Faults a part in for reading, as touching its pages would (`MADV_POPULATE_READ`, since Linux 5.14). Of more than a page all is asked for at once
    /// before, as a system does that reads around a fault.
    pub(super) fn fault(&self, offset: u64, len: u64) -> io::Result<()> {
        let page = rustix::param::page_size();
        let start = usize::try_from(offset).map_err(io::Error::other)? / page * page;
        let end = usize::try_from(offset.saturating_add(len)).map_err(io::Error::other)?.next_multiple_of(page);
        // The last page may be cut short by the file's end, but is mapped as a whole.
        if start >= end || end > self.len.next_multiple_of(page) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let address = self.address.wrapping_byte_add(start);
        if end - start > page {
            // SAFETY: pages within the mapping.
            unsafe { madvise(address, end - start, Advice::WillNeed)? };
        }
        // SAFETY: pages within the mapping.
        unsafe { madvise(address, end - start, Advice::LinuxPopulateRead)? };
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this mapping, which nobody uses any more. There is nothing to do where that fails.
        let _ = unsafe { munmap(self.address, self.len) };
    }
}
