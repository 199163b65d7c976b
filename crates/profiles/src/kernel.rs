//! The profile that stands for the kernel of a real host.

use crate::builtin::names;
use kontig_mm::Profile;
use kontig_mm::sysctl::Sysctl;

/// The name of the profile for a kernel's release ([`crate::of_kernel`]).
pub(crate) fn profile_for(release: &str) -> Option<&'static str> {
    let kernel = version(release)?;
    let released = || names().filter_map(|name| Some((exact(name)?, name)));
    let (_, name) = released().filter(|(v, _)| *v <= kernel).max().or(released().min())?;
    Some(name)
}

/// Whether a profile is of this very kernel: `6.1` of `6.1.0-49-cloud-amd64`, but not of `6.11.3`,
/// for which it may stand in.
pub fn is_of_kernel(profile: &str, release: &str) -> bool {
    exact(profile).is_some_and(|of| version(release) == Some(of))
}

/// Says that reclaim is not predicted as on a host with the multi-generational LRU; `who` names the
/// host: "this host runs".
pub fn lru_gen_left_out(who: &str) -> String {
    format!(
        "{who} with the multi-generational LRU on (/sys/kernel/mm/lru_gen/enabled), which is left out: reclaim goes \
         by active and inactive lists here"
    )
}

/// Says how the reclaim of a profile, under this value of `lru_gen.enabled`, differs from that of
/// distributions' kernels; `None` where it does not, or those leave the multi-generational LRU off.
pub fn lru_gen_of_distributions(profile: &Profile, enabled: u32) -> Option<String> {
    if !profile.lru_gen.enabled {
        return None;
    }
    let who = "Debian 13, Ubuntu since 23.10 and Fedora run kernels of this age";
    match enabled {
        _ if !has_lru_gen(profile) => Some(lru_gen_left_out(who)),
        7 => None,
        other => Some(format!(
            "{who} with the multi-generational LRU on, walks of page tables included (/sys/kernel/mm/lru_gen/enabled \
             is 7): here lru_gen.enabled is {other}"
        )),
    }
}

/// Whether the profile's kernel has a multi-generational LRU that is modelled.
pub fn has_lru_gen(profile: &Profile) -> bool {
    Sysctl::find("lru_gen.enabled").is_some_and(|sysctl| sysctl.exists(profile))
}

/// Says which profiles are nearest to a version without one of its own: those of this kernel with
/// patches, or before its release, else those before and behind it. `None` if the name is no
/// version, or has a profile.
pub(crate) fn neighbours(name: &str) -> Option<String> {
    let asked = version(name)?;
    if names().any(|name| exact(name) == Some(asked)) {
        return None;
    }
    // Oldest kernel first, as the files are.
    let known: Vec<_> = names().filter_map(|name| Some((version(name)?, name))).collect();
    let (older, newer) = known.split_at(known.partition_point(|(version, _)| *version < asked));
    Some(match (older.last(), newer.first()) {
        (_, Some((version, name))) if *version == asked => format!("only '{name}' is of this kernel"),
        (Some((_, older)), Some((_, newer))) => format!("it is between {older} and {newer}"),
        (Some((_, newest)), None) => format!("it is newer than {newest}, the newest"),
        (None, oldest) => format!("it is older than {}, the oldest", oldest?.1),
    })
}

/// The first two numbers of a release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split('.').map(|part| {
        let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        part[..digits].parse().ok()
    });
    Some((numbers.next()??, numbers.next()??))
}

/// The version of a profile that is a released kernel's: `6.15`, but not `6.15-posted`.
fn exact(name: &str) -> Option<(u32, u32)> {
    let (major, minor) = name.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_has_the_newest_rules_that_are_not_newer() {
        let name = profile_for;
        assert_eq!(name("6.12.9-amd64"), Some("6.12"));
        assert_eq!(name("6.1.0-49-cloud-amd64"), Some("6.1"));
        assert_eq!(name("5.15.0-generic"), Some("5.10"));
        assert_eq!(name("99.0-rc1"), names().last());
        assert_eq!(name("4.4.0-21-generic"), Some("4.4"));
        assert_eq!(name("2.6.32-754.el6"), Some("3.13"));
        assert_eq!(name("strange"), None);
    }

    #[test]
    fn generations_of_pages_are_said_of_kernels_from_6_12_on() {
        let mut first = names().skip_while(|name| !crate::linux(name).lru_gen.enabled);
        assert_eq!(first.next(), Some("6.12"));
        assert!(first.all(|name| crate::linux(name).lru_gen.enabled));
    }

    #[test]
    fn a_profile_without_generations_says_so_and_one_with_them_says_how_they_differ() {
        let said = |name: &str, value| lru_gen_of_distributions(&crate::linux(name), value);
        assert_eq!([said("6.1", 0), said("6.12", 7), said("7.2", 7)], [None, None, None]);
        for value in [0, 1] {
            let ending = format!("(/sys/kernel/mm/lru_gen/enabled is 7): here lru_gen.enabled is {value}");
            assert!(said("6.12", value).is_some_and(|s| s.ends_with(&ending)));
        }
        assert!(said("6.15", 0).is_some_and(|s| s.ends_with("by active and inactive lists here")));
    }

    #[test]
    fn a_version_without_rules_of_its_own_has_neighbours() {
        let newest = format!("it is newer than {}, the newest", names().last().expect("there are some"));
        let of = |name| neighbours(name);
        assert_eq!(
            (of("6.13").as_deref(), of("5.15").as_deref()),
            (Some("it is between 6.12 and 6.14"), Some("it is between 5.10 and 6.1"))
        );
        assert_eq!((of("99.0"), of("2.6").as_deref()), (Some(newest), Some("it is older than 3.13, the oldest")));
        assert_eq!(of("4.5").as_deref(), Some("it is between 4.4-kcompactd and 4.6"));
        assert_eq!((of("4.4"), of("6.1"), of("6.1.9"), of("mine"), of("")), (None, None, None, None, None));
        // Compared as numbers: 6.18 is newer than 6.2 and 6.15.
        assert_eq!(of("6.18").as_deref(), Some("it is between 6.15 and 7.2"));
    }

    #[test]
    fn a_kernel_is_told_from_one_whose_number_only_begins_alike() {
        assert!(is_of_kernel("6.1", "6.1.0-49-cloud-amd64") && is_of_kernel("6.12", "6.12.9"));
        assert!(!is_of_kernel("6.1", "6.11.3") && !is_of_kernel("6.1", "6.18.44"));
        assert!(!is_of_kernel("6.15-posted", "6.15.0") && !is_of_kernel("mine", "mine"));
    }
}
