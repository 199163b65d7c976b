//! The rules of every node, as the command line and a file say them.

use clap::Args;
use kontig_error::files::read_short;
use kontig_error::{AskedWrongly, Error};
use kontig_live::guard::policy::{BadPolicy, CPU_PERCENT, ForHost, Options, Policy};
use kontig_terminal::number::fraction;
use std::path::{Path, PathBuf};

/// The rules of every node.
#[derive(Args)]
pub struct PolicyArgs {
    /// Blocks to keep at hand: 2000x2M on every node, or 2000x2M@0 on node 0 and no other; several
    /// may be given. Without it and without a policy, the kernel's score is kept as by a
    /// proactiveness of 20
    #[arg(long, value_name = "BLOCKS", allow_hyphen_values = true)]
    keep: Vec<String>,
    /// File with the rules of every node (TOML), read anew at SIGHUP; options go before it
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Share of one CPU that compactions take at most in the long run
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    cpu_percent: Option<f64>,
}

impl PolicyArgs {
    /// The policy's file, if there is one, and the options; `sync` is one of those.
    pub(super) fn read(&self, host: ForHost, sync: bool) -> Result<Policy, Error> {
        let file = match &self.policy {
            None => String::new(),
            Some(path) => read_short(path)?,
        };
        let wrong = |bad: BadPolicy| {
            let path = self.policy.as_deref().unwrap_or(Path::new("")).display().to_string();
            Error::from(AskedWrongly::Malformed { path, line: bad.line, reason: bad.reason })
        };
        let options = Options { keep: self.keep.clone(), cpu_percent: self.cpu_percent, sync };
        let policy = Policy::parse(&file, host).map_err(wrong)?;
        Ok(policy.with(&options, host).map_err(AskedWrongly::Value)?)
    }
}

fn percent(text: &str) -> Result<f64, String> {
    fraction(text, CPU_PERCENT, "percent")
}
