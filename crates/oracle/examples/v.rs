//! try
use kontig_oracle::replay::Care;
use kontig_oracle::verify::{Verdict, verify_with};
fn main() {
    for dir in std::env::args().skip(1) {
        let every = std::env::var("EVERY").ok().and_then(|e| e.parse().ok());
        match verify_with(std::path::Path::new(&dir), Care { check_every: every }) {
            Ok(Verdict::Different(d)) => println!("{dir}: {d}"),
            Ok(Verdict::Equal(c)) => println!("{dir}: EQUAL {c:?}"),
            Ok(other) => println!("{dir}: {other:?}"),
            Err(e) => println!("{dir}: {e}"),
        }
    }
}
