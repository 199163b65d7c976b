//! The sysctls of an experiment's workload, which are those of its cases or variants.

use super::value::{Wrong, same, tables_mut};
use crate::names::short_sysctl;
use std::borrow::Cow;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Gives a workload's sysctls to the cases that run it, or to the variants if there are no cases.
pub(super) fn hand_on(experiment: &mut DeTable<'_>) -> Result<(), Wrong> {
    fn take<'a>(table: &mut DeTable<'a>) -> Option<Spanned<DeValue<'a>>> {
        match table.get_mut("workload").map(Spanned::get_mut) {
            Some(DeValue::Table(workload)) => workload.remove("sysctls"),
            _ => None,
        }
    }
    let of_all = take(experiment);
    let has_cases = tables_mut(experiment, "case").next().is_some();
    for case in tables_mut(experiment, "case") {
        let of_case = if case.contains_key("workload") { take(case) } else { of_all.clone() };
        of_case.map_or(Ok(()), |sysctls| add_sysctls(case, sysctls))?;
    }
    if let Some(sysctls) = of_all.filter(|_| !has_cases) {
        tables_mut(experiment, "variant").try_for_each(|variant| add_sysctls(variant, sysctls.clone()))?;
    }
    Ok(())
}

/// Adds the sysctls of a workload that a case or variant does not set itself.
fn add_sysctls<'a>(to: &mut DeTable<'a>, sysctls: Spanned<DeValue<'a>>) -> Result<(), Wrong> {
    let Some(own) = to.get_mut("sysctls") else {
        to.insert(Spanned::new(sysctls.span(), Cow::Borrowed("sysctls")), sysctls);
        return Ok(());
    };
    let (DeValue::Table(own), DeValue::Table(theirs)) = (own.get_mut(), sysctls.into_inner()) else { return Ok(()) };
    for (name, value) in theirs {
        let stated = own.iter().find(|(own, _)| short_sysctl(own.get_ref()) == short_sysctl(name.get_ref()));
        match stated {
            Some((own, ours)) if same(ours.get_ref(), value.get_ref()) => {
                let reason = format!("'{}' says what the workload says already: leave it out", own.get_ref());
                return Err((own.span().start, reason));
            }
            Some(_) => {}
            None => _ = own.insert(name, value),
        }
    }
    Ok(())
}
