//! `recording.toml`: the recorded kernel and the experiment.
//!
//! Recordings older than this file are described by their folder's name: it starts with the
//! kernel's series (`6.1-…`), `defrag1` in it means `vm.defrag_mode` was 1, and `proactive40` that
//! `vm.compaction_proactiveness` was 40.

use super::Part;
use super::files::Folder;
use crate::build::BuiltFrom;
use crate::error::BadRecording;
use kontig_mm::Profile;
use kontig_mm::types::PAGEBLOCK_PAGES;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The version of `recording.toml` this crate reads and writes.
pub const SCHEMA: &str = "kontig.recording/1";

/// The daemon [`About::real_time`] may name.
pub const KCOMPACTD: &str = "kcompactd";

/// The profile of a kernel series (`6.1`), if that series was recorded.
pub fn profile_of(series: &str) -> Option<Profile> {
    kontig_profiles::find(series).filter(|p| p.recorded)
}

/// The recorded kernel series.
fn known_series() -> impl Iterator<Item = String> {
    kontig_profiles::all().filter(|p| p.recorded).map(|p| p.name)
}

/// The fields of `recording.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct About {
    /// Version of the file's format.
    pub schema: String,
    pub experiment: String,
    /// Release of the kernel: `6.1.0-56-cloud-amd64`.
    pub kernel: String,
    /// The upstream version: `6.1.192`.
    #[serde(default)]
    pub version: String,
    /// The series, which has a profile: `6.1`.
    pub series: String,
    /// Number of operations, if there is a trace.
    #[serde(default)]
    pub ops: Option<i64>,
    /// Sysctls set before the experiment.
    #[serde(default)]
    pub sysctls: BTreeMap<String, toml::Value>,
    /// Daemons with a real-time policy, besides kswapd.
    #[serde(default)]
    pub real_time: Vec<String>,
    /// MiB of swap; 0 if there was none. Recordings without this key had more than they used.
    #[serde(default)]
    pub swap_mib: Option<u32>,
    /// The value of `lru_gen/enabled`: 0 for the classic lists.
    #[serde(default)]
    pub lru_gen: u8,
    /// The parent of each memory control group, from number 1 on; 0 is the root.
    #[serde(default)]
    pub groups: Vec<u16>,
    /// How many nodes are recorded, from node 1 on; 0 is one, too.
    #[serde(default)]
    pub nodes: u8,
    /// The CPU that the node's daemons have to themselves. They share the trace's without this key.
    #[serde(default)]
    pub daemons_cpu: Option<u8>,
    #[serde(default)]
    pub faults: Faults,
    /// Seed of a generated trace.
    #[serde(default)]
    pub seed: Option<u64>,
    /// The sources and the compiler of a guest's build.
    #[serde(default)]
    pub built: Option<BuiltFrom>,
    /// Files kept in another folder because their bytes are the same: the path from this folder.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
}

/// Parameters of a process that faults pages in. The default is for recordings without them.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Faults {
    /// µs between two faults.
    pub pause_us: f64,
    /// Pages touched when no huge page was available.
    pub pages: u32,
}

impl Default for Faults {
    fn default() -> Self {
        Faults { pause_us: 0.0, pages: PAGEBLOCK_PAGES }
    }
}

impl About {
    /// Reads `recording.toml`; without it, parses the folder's name.
    pub(crate) fn read(folder: &Folder, name: &str) -> Result<About, BadRecording> {
        const FILE: &str = "recording.toml";
        if !folder.has(FILE) {
            return About::from_name(folder, name);
        }
        let text = folder.text(FILE)?;
        let about: About = toml::from_str(&text).map_err(|e| {
            let line = e.span().map_or(1, |s| text[..s.start.min(text.len())].matches('\n').count() + 1);
            BadRecording::line(folder.path(FILE), line, e.message().lines().collect::<Vec<_>>().join("; "))
        })?;
        if about.schema != SCHEMA {
            let reason = format!("schema '{}' is not '{SCHEMA}'", about.schema);
            return Err(BadRecording::whole(folder.path(FILE), reason));
        }
        Ok(about)
    }

    fn from_name(folder: &Folder, name: &str) -> Result<About, BadRecording> {
        let series = name.split('-').next().unwrap_or_default();
        let is_series = series.split_once('.').is_some_and(|(a, b)| [a, b].iter().all(|n| n.parse::<u16>().is_ok()));
        if !is_series {
            let reason = "is missing, and the folder's name does not start with a kernel's series such as 6.1-";
            return Err(BadRecording::whole(folder.path("recording.toml"), reason));
        }
        let mut sysctls = BTreeMap::new();
        if let Some(rest) = name.find("proactive").map(|at| &name[at + "proactive".len()..]) {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            sysctls.insert("vm.compaction_proactiveness".into(), toml::Value::String(digits));
        }
        if name.contains("-defrag1") {
            sysctls.insert("vm.defrag_mode".into(), toml::Value::Integer(1));
        }
        Ok(About { series: series.into(), experiment: name.into(), sysctls, ..About::default() })
    }

    /// The profile of the recorded kernel.
    pub(super) fn profile(&self, name: &str) -> Result<Profile, BadRecording> {
        let unknown = || {
            format!("no profile for kernel {}; known: {}", self.series, known_series().collect::<Vec<_>>().join(", "))
        };
        profile_of(&self.series).ok_or_else(|| BadRecording::whole(name, unknown()))
    }

    /// Whether kcompactd had a real-time policy, as kswapd always has. It then preempts the task
    /// that wakes it.
    pub fn kcompactd_is_real_time(&self) -> bool {
        self.real_time.iter().any(|daemon| daemon == KCOMPACTD)
    }

    /// `vm.compaction_proactiveness` during the experiment; by default it is off.
    pub(super) fn proactiveness(&self) -> u32 {
        self.sysctls.get("vm.compaction_proactiveness").and_then(|v| shown(v).parse().ok()).unwrap_or(0)
    }

    /// The sysctls, by name, with their values as text.
    pub(super) fn sysctls_in_force(&self, part: Part) -> BTreeMap<String, String> {
        let mut set: BTreeMap<String, String> = self.sysctls.iter().map(|(k, v)| (k.clone(), shown(v))).collect();
        if self.schema.is_empty() && part == Part::Direct {
            // Recordings of direct compaction without recording.toml were made without boost.
            set.entry("vm.watermark_boost_factor".into()).or_insert_with(|| "0".into());
        }
        set
    }
}

fn shown(v: &toml::Value) -> String {
    v.as_str().map_or_else(|| v.to_string(), str::to_string)
}
