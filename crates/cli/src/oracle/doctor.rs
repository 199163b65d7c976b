//! `kontig oracle doctor`: missing requirements for making recordings.

use clap::Args;
use kontig_error::{Error, Failed};
use kontig_recorder::doctor::{Health, examine, examine_for_a_build};
use kontig_recorder::kernel::Series;
use std::path::PathBuf;

/// Options of `kontig oracle doctor`.
#[derive(Args)]
pub struct DoctorArgs {
    #[arg(long, value_name = "SERIES", default_value_t = Series::V6_1, help = format!("Kernel: {}", Series::known()))]
    kernel: Series,
    /// Debian root with the kernel, made by oracle/make-root
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Also check what guest-build needs on this host: a compiler, kernel headers and sources
    #[arg(long)]
    build: bool,
}

/// Exits with 1 if anything is missing.
pub fn doctor(a: &DoctorArgs) -> Result<(), Error> {
    let examine = if a.build { examine_for_a_build } else { examine };
    let d = examine(a.kernel, a.root.as_deref());
    let mut text = String::new();
    for f in &d.findings {
        text += &format!("{}  {}\n", found(f.health), f.what);
    }
    if d.is_healthy() {
        let what = if a.build { "guest-build can be recorded on kernel" } else { "kernel can be recorded:" };
        text += &format!("\n{what} {}\n", a.kernel);
        return kontig_terminal::print(&text);
    }
    text += "\nas root:\n";
    text += &d.remedies.iter().map(|line| format!("  {line}\n")).collect::<String>();
    kontig_terminal::print(&text)?;
    let missing = d.findings.iter().filter(|f| f.health != Health::Fine).count();
    let reason = format!("{missing} of {} things are missing", d.findings.len());
    Err(Failed::Run { run: "oracle doctor".into(), reason }.into())
}

fn found(health: Health) -> &'static str {
    match health {
        Health::Fine => "ok      ",
        Health::Missing => "missing ",
        Health::Wrong => "wrong   ",
    }
}
