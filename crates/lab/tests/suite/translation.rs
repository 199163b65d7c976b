//! A run whose accesses cost address translation says how far to trust their times.

use kontig_lab::experiment::Experiment;
use kontig_lab::plan::Views;
use kontig_lab::resolved::Resolved;
use kontig_lab::session::Session;

const EXPERIMENT: &str = r#"id = "small"
summary = "A heap of 8 MiB"
assumptions = "None."
machine = "zen4-guest-16g"

[[workload.phase]]
name = "measure"
measured = true
task = [{ run = MEASURE }]

[[variant]]
name = "v"
profile = "6.1"
"#;

fn remarks(measure: &str) -> Vec<String> {
    let experiment: Experiment = toml::from_str(&EXPERIMENT.replace("MEASURE", measure)).unwrap();
    let session = Session::new(vec![Resolved::new(experiment, None).unwrap()], 1, &Views::default()).unwrap();
    let (mut outcomes, error) = session.run(1, &|_| Ok(()));
    assert_eq!(error, None);
    outcomes.pop().unwrap().result.remarks.into_iter().map(|remark| remark.text).collect()
}

#[test]
fn the_model_s_error_is_said_of_accesses_and_of_nothing_else() {
    let said = |remarks: Vec<String>| remarks.iter().any(|text| text.contains("% off the loops it is fitted to"));
    let accesses = r#"{ kind = "accesses", size = "8 MiB", pattern = "chase", accesses = 1000 }"#;
    assert!(said(remarks(accesses)));
    assert!(!said(remarks(r#"{ kind = "heap", size = "8 MiB" }"#)));
}
