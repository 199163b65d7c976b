//! The processor and the memory of this host, as they describe themselves.

use kontig_translation::Tlb;
use raw_cpuid::native_cpuid::cpuid_count;
use raw_cpuid::{CacheType, CpuId, CpuIdReader, CpuIdResult, DatType};
use std::fs;

pub(super) struct Host {
    pub(super) name: String,
    pub(super) tlb1: Tlb,
    pub(super) tlb2: Tlb,
    /// Bytes of the second level of caches.
    pub(super) l2: usize,
    /// Bytes of the last level.
    pub(super) l3: usize,
    pub(super) is_guest: bool,
}

impl Host {
    /// # Errors
    /// What the processor does not say.
    pub(super) fn read() -> Result<Host, String> {
        let cpu = CpuId::new();
        let name = cpu.get_processor_brand_string().map(|brand| brand.as_str().trim().to_string());
        let is_guest = cpu.get_feature_info().is_some_and(|features| features.has_hypervisor());
        let is_intel = cpu.get_vendor_info().is_some_and(|vendor| vendor.as_str() == "GenuineIntel");
        let older = || is_intel.then(|| of_descriptors(cpuid_count(2, 0)))?;
        let [tlb1, tlb2] = tlbs(&cpu).or_else(older).ok_or("this processor does not say how large its TLB is")?;
        let caches = "this processor does not say how large its caches are";
        let (l2, l3) = (cache(&cpu, 2).ok_or(caches)?, cache(&cpu, 3).ok_or(caches)?);
        Ok(Host { name: name.unwrap_or_else(|| "an unnamed processor".into()), tlb1, tlb2, l2, l3, is_guest })
    }
}

/// Bytes of a level of caches.
fn cache<R: CpuIdReader>(cpu: &CpuId<R>, level: u8) -> Option<usize> {
    let mut caches = cpu.get_cache_parameters()?;
    let of = caches.find(|cache| cache.level() == level && cache.cache_type() != CacheType::Instruction)?;
    Some(of.associativity() * of.physical_line_partitions() * of.coherency_line_size() * of.sets())
}

/// Both levels of the TLB for data.
fn tlbs<R: CpuIdReader>(cpu: &CpuId<R>) -> Option<[Tlb; 2]> {
    amd(cpu).or_else(|| intel(cpu))
}

/// A level with these numbers of entries for small pages, for huge ones, and for those of 1 GiB.
fn tlb(small: u32, huge: u32, gigantic: u32) -> Option<Tlb> {
    let own = |entries: u32| (entries > 0 && entries != small).then_some(entries);
    (small > 0).then_some(Tlb { huge: own(huge), gigantic: (gigantic > 0).then_some(gigantic), ..Tlb::of(small) })
}

fn amd<R: CpuIdReader>(cpu: &CpuId<R>) -> Option<[Tlb; 2]> {
    let (first, second) = (cpu.get_l1_cache_and_tlb_info()?, cpu.get_l2_l3_cache_and_tlb_info()?);
    let gigantic = cpu.get_tlb_1gb_page_info();
    let gigantic = gigantic.map_or((0, 0), |info| (info.dtlb_l1_1gb_size(), info.dtlb_l2_1gb_size()));
    let first = tlb(first.dtlb_4k_size().into(), first.dtlb_2m_4m_size().into(), gigantic.0.into())?;
    let second = tlb(second.dtlb_4k_size().into(), second.dtlb_2m_4m_size().into(), gigantic.1.into())?;
    Some([first, second])
}

fn intel<R: CpuIdReader>(cpu: &CpuId<R>) -> Option<[Tlb; 2]> {
    // Loads' entries stand for all where stores have their own.
    let at = |level: u8| {
        let all = || {
            let of = cpu.get_deterministic_address_translation_info();
            of.into_iter().flatten().filter(move |entry| {
                let kind = entry.cache_type();
                let is_data = matches!(kind, DatType::DataTLB | DatType::UnifiedTLB | DatType::LoadOnly);
                entry.cache_level() == level && is_data
            })
        };
        let entries = |of: &dyn Fn(&raw_cpuid::DatInfo) -> bool| {
            // A level can be several structures, each of other sizes of pages.
            all().filter(|entry| of(entry)).map(|entry| u32::from(entry.ways()) * entry.sets()).sum()
        };
        tlb(
            entries(&|entry| entry.has_4k_entries()),
            entries(&|entry| entry.has_2mb_entries()),
            entries(&|entry| entry.has_1gb_entries()),
        )
    };
    Some([at(1)?, at(2)?])
}

/// Intel's processors before Ice Lake describe each TLB by a byte (Software Developer's Manual,
/// CPUID leaf 2). raw-cpuid stops at the first byte it does not know, such as Skylake's second
/// level.
fn of_descriptors(leaf: CpuIdResult) -> Option<[Tlb; 2]> {
    let words = [leaf.eax & !0xff, leaf.ebx, leaf.ecx, leaf.edx];
    // The highest bit says that a register describes nothing.
    let bytes: Vec<u8> = words.into_iter().filter(|word| word >> 31 == 0).flat_map(u32::to_le_bytes).collect();
    let entries = |of: &[(u8, u32)]| of.iter().find(|(byte, _)| bytes.contains(byte)).map(|(_, entries)| *entries);
    // For small pages of data, for huge ones, for those of 1 GiB, and the second level, which the
    // first two share and which may have some for the third.
    let small = entries(&[(0x03, 64), (0x64, 512), (0xa0, 32)])?;
    let huge = entries(&[(0x05, 32), (0x5a, 32), (0x63, 32)]).unwrap_or(0);
    let gigantic = entries(&[(0x63, 4)]).unwrap_or(0);
    let second = entries(&[(0xc3, 1536), (0xc1, 1024), (0xca, 512)])?;
    let gigantic_second = entries(&[(0xc3, 16)]).unwrap_or(0);
    Some([tlb(small, huge, gigantic)?, tlb(second, second, gigantic_second)?])
}

/// The release of the running kernel.
pub(super) fn kernel() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("Linux {}", release.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_all_pages_share_are_said_once() {
        assert_eq!(tlb(72, 72, 0), Some(Tlb::of(72)));
        assert_eq!(tlb(64, 32, 4), Some(Tlb { entries: 64, huge: Some(32), gigantic: Some(4) }));
        assert_eq!(tlb(0, 32, 0), None);
    }

    #[test]
    fn a_zen_4_core_has_72_and_3072_entries() {
        // Leaves 8000_0005h, 8000_0006h of an EPYC 9R14, as far as they matter. Its hypervisor
        // hides 8000_0019h; here that has entries for pages of 1 GiB in the first level alone.
        #[derive(Clone)]
        struct Zen4;
        impl CpuIdReader for Zen4 {
            fn cpuid2(&self, eax: u32, _: u32) -> CpuIdResult {
                let none = CpuIdResult { eax: 0, ebx: 0, ecx: 0, edx: 0 };
                match eax {
                    0 => CpuIdResult { eax: 0x10, ebx: 0x6874_7541, ecx: 0x444d_4163, edx: 0x6974_6e65 },
                    0x8000_0000 => CpuIdResult { eax: 0x8000_0021, ..none },
                    0x8000_0005 => CpuIdResult { eax: 0xff48_ff40, ebx: 0xff48_ff40, ..none },
                    0x8000_0006 => CpuIdResult { eax: 0x5c00_2200, ebx: 0x6c00_4200, ecx: 0x0400_8140, ..none },
                    0x8000_0019 => CpuIdResult { eax: 0xf030_f030, ..none },
                    _ => none,
                }
            }
        }
        let tlbs = tlbs(&CpuId::with_cpuid_reader(Zen4)).expect("it says so");
        assert_eq!(tlbs, [Tlb { gigantic: Some(48), ..Tlb::of(72) }, Tlb::of(3072)]);
    }

    #[test]
    fn a_skylake_server_core_describes_its_tlbs_by_bytes() {
        // Leaf 2 of a Xeon Gold 6252, which has no leaf 18h.
        let leaf = CpuIdResult { eax: 0x7603_6301, ebx: 0x00f0_b5ff, ecx: 0, edx: 0x00c3_0000 };
        let all = [Tlb { entries: 64, huge: Some(32), gigantic: Some(4) }, Tlb { gigantic: Some(16), ..Tlb::of(1536) }];
        assert_eq!(of_descriptors(leaf), Some(all));
        assert_eq!(of_descriptors(CpuIdResult { edx: 0x80c3_0000, ..leaf }), None);
    }
}
