//! Makes a module that today's assembler made one that kernels before 4.16 load.
//!
//! Calls go through the linker's table (`R_X86_64_PLT32`), which such kernels do not know. Their
//! own linker would treat them like plain relative calls (`R_X86_64_PC32`), so they are called
//! that.

const PC32: u32 = 2;
const PLT32: u32 = 4;
const SHT_RELA: u32 = 4;
/// Size of a section's header, and of an entry of a table of relocations.
const SECTION: usize = 64;
const ENTRY: usize = 24;

/// Renames the relocations; `None` if this is no 64-bit object file of whole tables.
pub(super) fn without_plt(module: &mut [u8]) -> Option<()> {
    let sections = at(module, 40)?;
    let count = usize::from(u16::from_le_bytes(module.get(60..62)?.try_into().ok()?));
    for section in 0..count {
        let header = sections.checked_add(SECTION * section)?;
        if word(module, header.checked_add(4)?)? != SHT_RELA {
            continue;
        }
        let (start, size) = (at(module, header.checked_add(24)?)?, at(module, header.checked_add(32)?)?);
        for entry in module.get_mut(start..start.checked_add(size)?)?.as_chunks_mut::<ENTRY>().0 {
            // The kind is the lower half of the entry's second word.
            let kind = &mut entry[8..12];
            if kind == PLT32.to_le_bytes() {
                kind.copy_from_slice(&PC32.to_le_bytes());
            }
        }
    }
    Some(())
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// An offset or a size.
fn at(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An object file with one table of relocations, of these kinds.
    fn object(kinds: &[u32]) -> Vec<u8> {
        let mut file = vec![0; 64];
        let table: Vec<u8> = kinds
            .iter()
            .flat_map(|kind| [vec![7; 8], kind.to_le_bytes().to_vec(), vec![9; 4], vec![0; 8]].concat())
            .collect();
        file[40..48].copy_from_slice(&(64 + table.len() as u64).to_le_bytes());
        file[60..62].copy_from_slice(&1u16.to_le_bytes());
        let mut header = vec![0; SECTION];
        header[4..8].copy_from_slice(&SHT_RELA.to_le_bytes());
        header[24..32].copy_from_slice(&64u64.to_le_bytes());
        header[32..40].copy_from_slice(&(table.len() as u64).to_le_bytes());
        [file, table, header].concat()
    }

    #[test]
    fn calls_through_the_table_become_plain_ones() {
        let mut module = object(&[PLT32, 11, PC32, PLT32]);
        without_plt(&mut module).expect("an object file");
        assert_eq!(module, object(&[PC32, 11, PC32, PC32]));
    }

    #[test]
    fn a_file_that_is_no_object_is_told() {
        assert_eq!(without_plt(&mut [0; 40]), None);
        let mut cut = object(&[PLT32]);
        cut.truncate(100);
        assert_eq!(without_plt(&mut cut), None);
    }
}
