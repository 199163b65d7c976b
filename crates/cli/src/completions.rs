//! `kontig completions`: a script that completes options, and the names that each takes.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command};
use clap_complete::Shell;
use kontig_error::Error;
use kontig_lab::{catalog, names_of_common_figures, profiles};
use kontig_mm::sysctl::{SYSCTLS, Sysctl};
use kontig_terminal::completions;

/// Prints the script of a shell.
pub fn completions(shell: Shell, command: Command) -> Result<(), Error> {
    kontig_terminal::print(&script(shell, command, &Names::read()?))
}

fn script(shell: Shell, command: Command, names: &Names) -> String {
    let command = with_names(completions::without_hidden(&command), names, shell);
    let text = completions::script(shell, command.clone());
    match shell {
        // For fish, clap completes what options take, and not what commands do.
        Shell::Fish => text + &of_commands(&command),
        Shell::Bash => text + &words() + include_str!("completions/lists.bash"),
        Shell::Zsh => with_names_of_kinds(&text, names),
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
    let names = |of: &Command| {
        let values = of.get_positionals().flat_map(Arg::get_possible_values);
        values.map(|value| value.get_name().to_owned()).collect::<Vec<_>>().join(" ")
    };
    let line = |when: String, names: String| {
        let line = format!("complete -c kontig -n \"__fish_kontig_using_subcommand {when}\" -a \"{names}\"\n");
        (!names.is_empty()).then_some(line)
    };
    let of = |command: &Command| {
        let (name, below) = (command.get_name(), command.get_subcommands().map(Command::get_name).collect::<Vec<_>>());
        let not_below = match below.as_slice() {
            [] => String::new(),
            below => format!("; and not __fish_seen_subcommand_from {}", below.join(" ")),
        };
        let own = line(format!("{name}{not_below}"), names(command));
        let of_below = |of: &Command| {
            line(format!("{name}; and __fish_seen_subcommand_from {}", of.get_name()), names(of)).unwrap_or_default()
        };
        own.unwrap_or_default() + &command.get_subcommands().map(of_below).collect::<String>()
    };
    command.get_subcommands().map(of).collect()
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
    /// Figures of every run, by words that are in their names.
    figures: Vec<String>,
}

impl Names {
    fn read() -> Result<Names, Error> {
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
            figures: names_of_common_figures().map(str::to_owned).collect(),
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
            (_, "figures") => self.figures.iter().collect(),
            ("workload", OF_KIND) => all(&["workloads"]),
            ("machine", OF_KIND) => all(&["machines"]),
            ("experiment", OF_KIND) => all(&["experiments"]),
            ("profile", OF_KIND) => all(&["profiles"]),
            ("run" | "verify", "profile") | ("show" | "diff", "profile" | "from" | "to") => all(&["profiles"]),
            _ => Vec::new(),
        }
    }
}

/// The argument of `kontig show KIND`.
const OF_KIND: &str = "of-kind";

/// The command with the names that its arguments take, for a script alone: as it is parsed, a file
/// may stand for a name.
fn with_names(command: Command, names: &Names, shell: Shell) -> Command {
    let name = command.get_name().to_owned();
    let with = |argument: Arg| {
        let own: Vec<String> = names.of(&name, argument.get_id().as_str()).into_iter().cloned().collect();
        if own.is_empty() { argument } else { argument.value_parser(PossibleValuesParser::new(own)) }
    };
    let takes_kinds = name == "show" && command.get_arguments().any(|argument| argument.get_id() == "what");
    if takes_kinds {
        return with_kinds(command.mut_args(with), names, shell);
    }
    command.mut_args(with).mut_subcommands(|command| with_names(command, names, shell))
}
/// Stands in zsh's script where the names of a kind are wanted.
const MARK: &str = "@of-kind";

/// `kontig show`, whose second word depends on the first: to clap's scripts a kind is a command of
/// its own. In zsh's, names of both cannot stand in one place, so that a function has those of a
/// kind.
fn with_kinds(show: Command, names: &Names, shell: Shell) -> Command {
    let of_kind = |of: Vec<String>| Arg::new(OF_KIND).value_parser(PossibleValuesParser::new(of));
    if shell == Shell::Zsh {
        let all = crate::show::kinds().chain(names.of("show", "what").into_iter().cloned()).collect::<Vec<_>>();
        let what = |what: Arg| what.action(ArgAction::Set).num_args(1).value_parser(PossibleValuesParser::new(all));
        return show.mut_arg("what", what).arg(of_kind(vec![MARK.into()]));
    }
    let kind = |kind: String| {
        let of = names.of(&kind, OF_KIND).into_iter().cloned().collect();
        Command::new(kind).disable_version_flag(true).arg(of_kind(of))
    };
    show.disable_help_subcommand(true).subcommands(crate::show::kinds().map(kind))
}

/// Zsh's script with a function that completes the names of the kind before.
fn with_names_of_kinds(script: &str, names: &Names) -> String {
    const HEAD: &str = "#compdef kontig\n";
    let case = |kind: String| {
        let of: Vec<&str> = names.of(&kind, OF_KIND).into_iter().map(String::as_str).collect();
        format!("        {kind}) compadd -- {} ;;\n", of.join(" "))
    };
    let cases: String = crate::show::kinds().map(case).collect();
    let function =
        format!("{HEAD}\n_kontig_of_kind() {{\n    case \"${{words[CURRENT-1]}}\" in\n{cases}    esac\n}}\n");
    script.replacen(HEAD, &function, 1).replace(&format!("({MARK})"), "_kontig_of_kind")
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
    fn no_shell_completes_what_only_the_program_calls() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let script = script(shell, crate::args::Cli::command(), &Names::read().expect("all is built in"));
            assert!(script.contains("reproduce") && script.contains("completions"), "{shell}");
            for hidden in ["write-one", "restore-at-end", MARK] {
                assert!(!script.contains(hidden), "{shell} completes {hidden}");
            }
        }
    }

    #[test]
    fn the_kinds_of_show_have_names_of_their_own() {
        let script = |shell| script(shell, crate::args::Cli::command(), &Names::read().expect("all is built in"));
        let fish = script(Shell::Fish);
        let line = |when: &str| fish.lines().find(|line| line.contains(when)).unwrap_or_else(|| panic!("{when}"));
        let machines = line("subcommand show; and __fish_seen_subcommand_from machine\" -a \"");
        assert!(machines.contains("box-2g") && !machines.contains("stutter"), "{machines}");
        let zsh = script(Shell::Zsh);
        let line = zsh.lines().find(|line| line.trim_start().starts_with("workload) compadd -- "));
        assert!(line.is_some_and(|line| line.contains(" heap ") && !line.contains(" stutter ")), "{line:?}");
        assert!(zsh.starts_with("#compdef kontig\n\n_kontig_of_kind() {") && zsh.contains("of-kind:_kontig_of_kind'"));
    }

    #[test]
    fn a_machine_is_no_profile() {
        let names = Names::read().expect("all is built in");
        let of = |command, argument, name: &str| names.of(command, argument).iter().any(|known| *known == name);
        assert!(of("run", "machine", "box-2g") && !of("run", "profile", "box-2g") && of("run", "profile", "6.1"));
        assert!(of("reproduce", "names", "stutter") && !of("reproduce", "names", "heap") && of("run", "what", "heap"));
    }
}
