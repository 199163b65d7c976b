//! The use of a frame, concluded from its word in `/proc/kpageflags`.
//!
//! The bits are the kernel's `KPF_*` (`include/uapi/linux/kernel-page-flags.h`), which never change
//! their meaning. A slab page may carry any of the bits that tell users' pages apart, because its
//! fields are used for something else; so may a free page, from its last use. So the use goes by
//! precedence, in the order of [`State::of`].

macro_rules! states {
    ($($(#[$doc:meta])* $name:ident = $letter:literal, $words:literal;)*) => {
        /// The use of a frame of memory.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum State {
            $($(#[$doc])* $name,)*
        }

        impl State {
            pub const ALL: &[State] = &[$(State::$name,)*];

            /// The letter in a snapshot's file.
            pub const fn letter(self) -> u8 {
                match self { $(State::$name => $letter,)* }
            }
            /// Its name in labels of series: the type's, which words for people may leave behind.
            pub fn label(self) -> String {
                let name = match self { $(State::$name => stringify!($name),)* };
                let mut label = String::new();
                for (place, letter) in name.char_indices() {
                    if place > 0 && letter.is_ascii_uppercase() {
                        label.push('_');
                    }
                    label.push(letter.to_ascii_lowercase());
                }
                label
            }
            /// The use in words.
            pub const fn words(self) -> &'static str {
                match self { $(State::$name => $words,)* }
            }
        }
    };
}

states! {
    /// There is no memory at this address.
    Hole = b'.', "no memory";
    /// Memory that the allocator has never been given.
    NotManaged = b'x', "memory the allocator was not given";
    /// Free, but on no list until a request finds nothing else: inferred, no flag says it.
    Deferred = b'i', "free, initialised when wanted";
    /// Taken at boot, for good: firmware, the kernel's own image, its tables.
    Reserved = b'r', "reserved at boot";
    /// In a free block.
    Free = b'F', "free";
    /// On some CPU's list of free pages: inferred, no flag says it.
    Cached = b'c', "free on a CPU's list";
    /// No flag says anything: kernel memory of some use, or somebody's page on its way.
    Unknown = b'u', "kernel memory of unknown use";
    /// Objects of the kernel.
    Slab = b's', "slab";
    PageTable = b't', "page tables";
    /// A compound page of the kernel's: buffers of drivers, stacks, large objects.
    Compound = b'k', "large kernel buffers";
    /// Of the pool of huge pages (hugetlbfs).
    HugeTlb = b'h', "pool of huge pages";
    /// Taken out of use: broken, or given back to the hypervisor.
    Offline = b'o', "out of use";
    /// A user's anonymous page.
    Anon = b'a', "anonymous";
    /// Of a file in memory (tmpfs, shared memory).
    Shmem = b'v', "shared memory";
    /// Of a file, not written yet or being written.
    FileDirty = b'd', "file, dirty";
    /// Of a file, clean, in some process's address space.
    FileMapped = b'm', "file, mapped";
    /// Of a file, clean, in nobody's address space: it can be dropped.
    FileClean = b'f', "file, clean";
    /// A user's page that may not leave memory.
    Locked = b'l', "locked in memory";
}

/// The `KPF_*` bits of `/proc/kpageflags`.
mod bit {
    pub const DIRTY: u64 = 1 << 4;
    pub const LRU: u64 = 1 << 5;
    pub const SLAB: u64 = 1 << 7;
    pub const WRITEBACK: u64 = 1 << 8;
    pub const BUDDY: u64 = 1 << 10;
    pub const MMAP: u64 = 1 << 11;
    pub const ANON: u64 = 1 << 12;
    pub const SWAPBACKED: u64 = 1 << 14;
    pub const COMPOUND_HEAD: u64 = 1 << 15;
    pub const COMPOUND_TAIL: u64 = 1 << 16;
    pub const HUGE: u64 = 1 << 17;
    pub const UNEVICTABLE: u64 = 1 << 18;
    pub const HWPOISON: u64 = 1 << 19;
    pub const NOPAGE: u64 = 1 << 20;
    pub const OFFLINE: u64 = 1 << 23;
    pub const PGTABLE: u64 = 1 << 26;
    pub const RESERVED: u64 = 1 << 32;
    pub const MLOCKED: u64 = 1 << 33;
}

/// Whether the frame continues the compound page before it.
pub fn is_tail(flags: u64) -> bool {
    flags & bit::COMPOUND_TAIL != 0
}

/// Uses of frames in the order of their numbers: a tail has its head's, each free frame its own.
#[derive(Default)]
pub struct Heads(Option<State>);

impl Heads {
    /// The next frame's state, and whether it continues the one before.
    pub fn next(&mut self, flags: u64) -> (State, bool) {
        let own = State::of(flags);
        match self.0 {
            Some(state) if is_tail(flags) => (state, true),
            _ if is_tail(flags) => (own, false),
            _ => {
                // A frame without tails is the head of nothing; a free frame's tails are inferred.
                self.0 = (own != State::Free && own != State::Unknown).then_some(own);
                (own, false)
            }
        }
    }
}

impl State {
    /// The use of a frame with these flags. Pass the head's flags for a tail: older kernels do not
    /// repeat them.
    pub fn of(flags: u64) -> State {
        let has = |bits: u64| flags & bits != 0;
        match () {
            _ if has(bit::NOPAGE) => State::Hole,
            _ if has(bit::HWPOISON | bit::OFFLINE) => State::Offline,
            _ if has(bit::RESERVED) => State::Reserved,
            _ if has(bit::BUDDY) => State::Free,
            _ if has(bit::SLAB) => State::Slab,
            _ if has(bit::PGTABLE) => State::PageTable,
            _ if has(bit::HUGE) => State::HugeTlb,
            // Off the LRU for a moment, anonymous pages still have their flags. Files' do, too, but
            // there theirs are also what a page keeps from its last use.
            _ if has(bit::LRU | bit::ANON) => State::of_user(flags),
            _ if has(bit::COMPOUND_HEAD | bit::COMPOUND_TAIL) => State::Compound,
            _ => State::Unknown,
        }
    }

    fn of_user(flags: u64) -> State {
        let has = |bits: u64| flags & bits != 0;
        match () {
            _ if has(bit::UNEVICTABLE | bit::MLOCKED) => State::Locked,
            _ if has(bit::ANON) => State::Anon,
            _ if has(bit::SWAPBACKED) => State::Shmem,
            _ if has(bit::DIRTY | bit::WRITEBACK) => State::FileDirty,
            _ if has(bit::MMAP) => State::FileMapped,
            _ => State::FileClean,
        }
    }

    /// The state that a snapshot's file writes as this letter.
    pub fn of_letter(letter: u8) -> Option<State> {
        State::ALL.iter().copied().find(|s| s.letter() == letter)
    }

    /// Whether compaction can move it: users' pages. That nobody has pinned one is not known.
    pub const fn is_movable(self) -> bool {
        matches!(
            self,
            State::Anon | State::Shmem | State::FileDirty | State::FileMapped | State::FileClean | State::Locked
        )
    }

    /// Whether the allocator can hand it out as it is.
    pub const fn is_free(self) -> bool {
        matches!(self, State::Free | State::Cached | State::Deferred)
    }

    /// Whether such frames that touch form the largest aligned blocks.
    pub const fn joins(self) -> bool {
        matches!(self, State::Free | State::Deferred)
    }

    /// Whether it is no memory that the allocator could have placed otherwise.
    pub const fn is_fixed(self) -> bool {
        matches!(self, State::Hole | State::NotManaged | State::Reserved | State::Offline)
    }

    /// Whether it stays where it is and keeps any block around it from becoming free.
    pub const fn is_obstacle(self) -> bool {
        !self.is_movable() && !self.is_free()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words as 6.18 shows them, each with what it was found on.
    #[test]
    fn a_label_is_the_name_of_the_type_whatever_the_words_are() {
        let labels = [State::Slab, State::PageTable, State::HugeTlb, State::Unknown].map(State::label);
        assert_eq!(labels, ["slab", "page_table", "huge_tlb", "unknown"]);
    }

    #[test]
    fn words_of_a_real_kernel_are_understood() {
        let words = [
            (0x400, State::Free),
            (0x408, State::Free),
            (0x4_0000_5828, State::Anon),
            (0x6_0000_5008, State::Locked),
            (0x10080, State::Slab),
            (0x21_1080, State::Slab),
            (0x4_0000_086c, State::FileMapped),
            (0x8_0000_0028, State::FileClean),
            (0x8_0000_0038, State::FileDirty),
            (0x400_0000, State::PageTable),
            (0x141_0000, State::Compound),
            (0x1_0000_0000, State::Reserved),
            (0x10_0000, State::Hole),
            (0, State::Unknown),
        ];
        for (word, state) in words {
            assert_eq!(State::of(word), state, "{word:#x}");
        }
    }

    #[test]
    fn every_state_has_a_letter_of_its_own() {
        for state in State::ALL {
            assert_eq!(State::of_letter(state.letter()), Some(*state));
        }
    }

    #[test]
    fn a_frame_neither_free_nor_movable_is_an_obstacle() {
        assert!(State::Slab.is_obstacle() && State::Unknown.is_obstacle() && State::HugeTlb.is_obstacle());
        assert!(!State::Cached.is_obstacle() && !State::Locked.is_obstacle() && !State::Free.is_obstacle());
    }
}
