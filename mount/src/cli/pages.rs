//! Manual pages and shell completions, made of the command line's own definition, of `.help` and of docs/semantics.md: nothing is said twice. A
//! test holds the pages in docs/man/ against them; `cellfs pages DIR` writes them.

use super::error::{CliError, CliResult};
use super::{CommandLine, mount, roff};
use crate::magic::{HELP, guide_page};
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use std::fs;
use std::io;
use std::path::PathBuf;

/// Print a completion script for a shell
#[derive(Args)]
#[command(after_help = "\
Examples:
  cellfs completion bash > /etc/bash_completion.d/cellfs
  cellfs completion zsh > /usr/local/share/zsh/site-functions/_cellfs
  cellfs completion fish > ~/.config/fish/completions/cellfs.fish")]
pub(super) struct CompletionCommand {
    /// The shell
    shell: Shell,
}

/// Write the manual pages and completions into a directory
#[derive(Args)]
#[command(after_help = "Example:\n  cellfs pages docs/man")]
pub(super) struct PagesCommand {
    /// The directory
    directory: PathBuf,
}

pub(super) fn run_completion(command: &CompletionCommand) -> CliResult<()> {
    use io::Write;
    let written = io::stdout().write_all(&completion(command.shell));
    written.map_err(|error| CliError::Failed(format!("cannot write to standard output: {error}")))
}

pub(super) fn run_pages(command: &PagesCommand) -> CliResult<()> {
    for (name, content) in manual_pages()? {
        let path = command.directory.join(name);
        fs::write(&path, content).map_err(|error| CliError::io("write", &path, &error))?;
    }
    Ok(())
}

fn completion(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CommandLine::command(), "cellfs", &mut script);
    script
}

/// Every manual page: file name and content.
///
/// # Errors
/// The command line cannot be shown, which is a defect.
pub fn manual_pages() -> CliResult<Vec<(String, String)>> {
    let mut root = CommandLine::command().disable_help_subcommand(true);
    root.build();
    let mut pages = Vec::new();
    let see_also = "\\fBcellfs\\-tree\\fR(7), \\fBmount.cellfs\\fR(8), \\fBfusermount3\\fR(1), \\fBmount\\fR(8)";
    pages.push(("cellfs.1".to_owned(), of_command(&root, "cellfs", 1, see_also)?));
    for command in root.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help") {
        let name = format!("cellfs-{}", command.get_name());
        pages.push((format!("{name}.1"), of_command(command, &name, 1, &format!("\\fBcellfs\\fR(1), {see_also}"))?));
    }
    let helper = mount::HelperCommand::command();
    let see_also = "\\fBcellfs\\fR(1), \\fBcellfs\\-mount\\fR(1), \\fBfstab\\fR(5), \\fBmount\\fR(8), \\fBfuse\\fR(8)";
    pages.push(("mount.cellfs.8".to_owned(), of_command(&helper, "mount.cellfs", 8, see_also)?));
    pages.push(("cellfs-tree.7".to_owned(), tree()));
    Ok(pages)
}

/// clap_mangen's sections, but for what clap shows after the options: its examples stand line by line.
fn of_command(command: &Command, name: &str, section: u8, see_also: &str) -> CliResult<String> {
    let man = Man::new(command.clone().name(name.to_owned()).disable_help_subcommand(true));
    let mut page = Vec::new();
    let mut rendered = || -> io::Result<()> {
        man.render_name_section(&mut page)?;
        man.render_synopsis_section(&mut page)?;
        man.render_description_section(&mut page)?;
        man.render_options_section(&mut page)?;
        if command.has_subcommands() {
            man.render_subcommands_section(&mut page)?;
        }
        Ok(())
    };
    rendered().map_err(|error| CliError::Failed(format!("the page {name} cannot be made: {error}")))?;
    let mut text = roff::title(name, section);
    text.push_str(&String::from_utf8_lossy(&page));
    if let Some(after) = command.get_after_help() {
        text.push_str(".SH NOTES\n");
        text.push_str(&roff::verbatim(&after.to_string()));
    }
    text.push_str(&format!(".SH \"SEE ALSO\"\n{see_also}\n"));
    // Requests of the head that clap_mangen repeats in every section.
    let text = text.replace("\\fB\\-o\\fR ]", "\\fB\\-o\\fR \\fIOPT,...\\fR]");
    let repeated = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";
    Ok(text.replacen(repeated, "\u{0}", 1).replace(repeated, "").replace('\u{0}', repeated))
}

/// The tree: `.help`, then the user's contract.
fn tree() -> String {
    let mut page = roff::title("cellfs-tree", 7);
    page.push_str(".SH NAME\ncellfs\\-tree \\- what is where in a mounted cellfs store, and what may be relied on\n");
    page.push_str(".SH SYNOPSIS\n");
    page.push_str(&roff::verbatim(HELP));
    page.push_str(&roff::from_markdown(guide_page("semantics.md").unwrap_or_default()));
    page.push_str(".SH \"SEE ALSO\"\n\\fBcellfs\\fR(1), \\fBcellfs\\-mount\\fR(1), \\fBmount.cellfs\\fR(8)\n");
    page
}
