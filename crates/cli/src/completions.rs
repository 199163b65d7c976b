//! `kontig completions`: a script that completes options, and the names that each takes.

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command};
use clap_complete::Shell;
use kontig_lab::{LabError, catalog, profiles};
use kontig_mm::sysctl::{SYSCTLS, Sysctl};

/// Prints the script of a shell.
pub fn completions(shell: Shell, command: Command) -> Result<(), LabError> {
    crate::print(&script(shell, command, &Names::read()?))
}

fn script(shell: Shell, command: Command, names: &Names) -> String {
    let mut text = Vec::new();
    let mut command = with_names(command, names);
    clap_complete::generate(shell, &mut command, "kontig", &mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    match shell {
        // For fish, clap completes what options take, and not what commands do.
        Shell::Fish => text + &of_commands(&command),
        Shell::Bash => text + &words() + include_str!("completions/lists.bash"),
        _ => text,
    }
}

/// A function of bash that prints the words that a sysctl takes.
fn words() -> String {
    let newest = profiles::all().pop();
    let of = |sysctl: &&Sysctl| {
        let words: Vec<&str> = sysctl.words(newest.as_ref()?)?.collect();
        Some(format!("        {}) echo \"{}\" ;;\n", sysctl.name, words.join(" ")))
    };
    let cases: String = SYSCTLS.iter().filter_map(of).collect();
    format!("\n_kontig_words() {{\n    case \"$1\" in\n{cases}    esac\n}}\n")
}

/// The names that commands take, as fish completes them.
fn of_commands(command: &Command) -> String {
    let line = |command: &Command| {
        let values = command.get_positionals().flat_map(Arg::get_possible_values);
        let names: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
        let name = command.get_name();
        let line =
            format!("complete -c kontig -n \"__fish_kontig_using_subcommand {name}\" -a \"{}\"\n", names.join(" "));
        (!names.is_empty()).then_some(line)
    };
    command.get_subcommands().filter_map(line).collect()
}

/// Everything that an option can name.
struct Names {
    experiments: Vec<String>,
    workloads: Vec<String>,
    machines: Vec<String>,
    profiles: Vec<String>,
    switches: Vec<String>,
    sysctls: Vec<String>,
    /// The keys of all workloads' parameters.
    parameters: Vec<String>,
}

impl Names {
    fn read() -> Result<Names, LabError> {
        let workloads = catalog::workloads()?;
        let keys = workloads.iter().flat_map(|(_, file)| file.workload.parameters());
        let mut parameters: Vec<String> = keys.map(|parameter| parameter.key().to_owned()).collect();
        parameters.sort();
        parameters.dedup();
        Ok(Names {
            experiments: catalog::experiments()?.into_iter().map(|e| e.id).collect(),
            workloads: workloads.iter().map(|(name, _)| (*name).to_owned()).collect(),
            machines: catalog::machines()?.into_iter().map(|machine| machine.name).collect(),
            profiles: profiles::all().into_iter().map(|profile| profile.name).collect(),
            switches: kontig_profiles::switches().into_keys().collect(),
            sysctls: SYSCTLS.iter().filter(|sysctl| sysctl.is_setting()).map(|sysctl| sysctl.name.to_owned()).collect(),
            parameters,
        })
    }

    /// Those that an argument of a command takes; none of what takes no names. A file is completed
    /// where no name fits.
    fn of(&self, command: &str, argument: &str) -> Vec<&String> {
        let all = |lists: &[&'static str]| -> Vec<&String> {
            let list = |kind: &&str| match *kind {
                "experiments" => &self.experiments,
                "workloads" => &self.workloads,
                "machines" => &self.machines,
                _ => &self.profiles,
            };
            lists.iter().flat_map(list).collect()
        };
        match (command, argument) {
            ("run", "what") => all(&["workloads", "experiments"]),
            ("reproduce", "names") => all(&["experiments"]),
            ("show", "what") => all(&["workloads", "experiments", "machines", "profiles"]),
            ("run", "machine") => all(&["machines"]),
            ("run", "switch") => self.switches.iter().collect(),
            ("run", "set") => self.sysctls.iter().collect(),
            ("run", "with") => self.parameters.iter().collect(),
            ("run" | "verify", "profile") | ("show" | "diff", "profile" | "from" | "to") => all(&["profiles"]),
            _ => Vec::new(),
        }
    }
}

/// The command with the names that its arguments take, for a script alone: as it is parsed, a file
/// may stand for a name.
fn with_names(command: Command, names: &Names) -> Command {
    let name = command.get_name().to_owned();
    let with = |argument: Arg| {
        let own = names.of(&name, argument.get_id().as_str());
        let takes_kinds = (name.as_str(), argument.get_id().as_str()) == ("show", "what");
        let kinds = crate::show::kinds().filter(|_| takes_kinds);
        let own: Vec<String> = kinds.chain(own.into_iter().cloned()).collect();
        if own.is_empty() { argument } else { argument.value_parser(PossibleValuesParser::new(own)) }
    };
    command.mut_args(with).mut_subcommands(|command| with_names(command, names))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_shell_completes_the_names_that_options_take() {
        let all =
            ["thpscale", "kbuild+stream", "xeon-64g", "4.20-rc3", "proactive-compaction", "vm.swappiness", "jobs"];
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell, crate::args::Cli::command(), &Names::read().expect("all is built in"));
            for name in all {
                assert!(script.contains(name), "{shell} completes {name}");
            }
        }
    }

    #[test]
    fn a_machine_is_no_profile() {
        let names = Names::read().expect("all is built in");
        let of = |command, argument, name: &str| names.of(command, argument).iter().any(|known| *known == name);
        assert!(of("run", "machine", "box-2g") && !of("run", "profile", "box-2g") && of("run", "profile", "6.1"));
        assert!(of("reproduce", "names", "stutter") && !of("reproduce", "names", "heap") && of("run", "what", "heap"));
    }
}
