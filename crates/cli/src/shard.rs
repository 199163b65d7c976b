//! `--shard I/N`: the part of a request's runs that one of N machines does.
//!
//! Every N-th run of the request, in the order of its plans, so that parts are equally long however
//! the runs differ by variant. Parts have no run in common, and together they are the request.

use kontig_error::{AskedWrongly, Error};
use kontig_lab::session::Session;
use kontig_lab::store::Store;
use std::cell::Cell;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// A part of a request, from `1/N` to `N/N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: usize,
    of: usize,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let parts = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match parts {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Shard { number, of }),
            _ => Err("write it as I/N, from 1/N to N/N: 1/8 is the first of eight parts".into()),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl Shard {
    fn has(self, run: usize) -> bool {
        run % self.of == self.number - 1
    }

    /// Its part of the session. `resumed` is the store of an earlier session.
    ///
    /// # Errors
    /// If that has runs of another part, which its result would no longer name.
    pub fn part_of(self, whole: Session, resumed: Option<(&Store, &Path)>) -> Result<Session, Error> {
        if let Some((store, dir)) = resumed {
            for (_, job) in whole.jobs().iter().enumerate().filter(|(run, _)| !self.has(*run)) {
                if store.run(&job.plan)?.is_some() {
                    let reason = format!(
                        "{} holds runs of another shard than {self}: give each shard an --out of its own",
                        dir.display()
                    );
                    return Err(AskedWrongly::Value(reason).into());
                }
            }
        }
        // The session asks about its runs in their order.
        let next = Cell::new(0);
        Ok(whole.only(|_| self.has(next.replace(next.get() + 1))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_have_no_run_in_common_and_are_together_the_whole() {
        for of in 1..=7 {
            for run in 0..50 {
                let having = (1..=of).filter(|number| Shard { number: *number, of }.has(run)).count();
                assert_eq!(having, 1, "run {run} of {of} shards");
            }
        }
    }

    #[test]
    fn a_shard_is_written_as_a_fraction_from_one_of_n_on() {
        assert_eq!("3/8".parse(), Ok(Shard { number: 3, of: 8 }));
        for wrong in ["", "3", "0/8", "9/8", "1/0", "-1/8", "a/b", "1/8/2"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
