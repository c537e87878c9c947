// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text at the end of each verb's `--help`. It has examples and the names of documents.

use clap::{Command, CommandFactory as _};

/// Text at the end of a verb's `--help`.
pub struct Help {
    /// Documents, separated by commas.
    pub documents: &'static str,
    /// Commands, without the program's name, each with its purpose.
    pub examples: &'static [(&'static str, &'static str)],
}

/// Returns the command line, with examples in the help.
pub fn cli() -> Command {
    let mut cli = super::Cli::command();
    for (verb, help) in super::HELPS {
        cli = cli.mut_subcommand(name(verb), |command| command.after_help(after_help(help)));
    }
    cli.after_help(
        "Start with README.md. The --help of each verb has examples and names its document.",
    )
}

/// Returns the name of the verb that a file implements. The file's name has "_" where the verb's name has "-".
fn name(file: &str) -> String {
    file.replace('_', "-")
}

fn after_help(help: &Help) -> String {
    let examples = listed("Examples", help.examples);
    format!("{examples}\nDocument: {}", help.documents)
}

/// Lists commands under a heading, each with its purpose on the next line.
pub fn listed(heading: &str, commands: &[(&str, &str)]) -> String {
    let lines = commands
        .iter()
        .map(|(command, what)| format!("  warmswitch {command}\n      {what}\n"));
    format!("{heading}:\n{}", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::paths::root;

    #[test]
    fn each_verb_has_examples_that_are_understood_and_a_document_that_is_there() {
        let verbs = super::super::Cli::command();
        let verbs: Vec<&str> = verbs.get_subcommands().map(Command::get_name).collect();
        let helps: Vec<String> = (super::super::HELPS.iter())
            .map(|(file, _)| name(file))
            .collect();
        assert_eq!(verbs, helps);
        for (_, help) in super::super::HELPS {
            for document in help.documents.split(", ") {
                assert!(root().join(document).exists(), "{document}");
            }
            for (example, _) in help.examples {
                let (line, _) = example.split_once(" > ").unwrap_or((example, ""));
                let line = line.replace("'uname -a; free'", "uname");
                let words = ["warmswitch"].into_iter().chain(line.split(' '));
                let parsed = cli().try_get_matches_from(words);
                assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
            }
        }
    }

    #[test]
    fn each_verb_has_a_line_in_the_readme_and_its_json_a_row_in_the_formats() {
        let read = |file: &str| std::fs::read_to_string(root().join(file)).unwrap();
        let (readme, formats) = (read("README.md"), read("docs/change/FORMAT.md"));
        let lines = readme
            .lines()
            .filter_map(|line| line.strip_prefix("    warmswitch "));
        let listed: Vec<&str> = lines
            .flat_map(|line| line.split(' ').next().unwrap_or_default().split('|'))
            .collect();
        // The first cell of a row names a verb: `table`, `run --coherence`.
        let cells = formats
            .lines()
            .filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
        let with_json: Vec<&str> = cells
            .flat_map(|cell| cell.split('`').skip(1).step_by(2))
            .filter_map(|text| text.split(' ').next())
            .collect();
        for verb in super::super::Cli::command().get_subcommands() {
            let name = verb.get_name();
            let is_listed =
                listed.contains(&name) || readme.contains(&format!("warmswitch {name} "));
            assert!(is_listed, "README.md has no line for {name}");
            let has_json = verb.get_arguments().any(|a| a.get_long() == Some("json"));
            assert!(
                !has_json || with_json.contains(&name),
                "FORMAT.md has no row for {name} --json"
            );
        }
    }
}
