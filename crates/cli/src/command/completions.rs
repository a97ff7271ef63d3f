//! `patter completions`: completion scripts for shells.

use crate::error::{CommandResult, Outcome};
use crate::ui;
use clap::Args;
use clap_complete::{Shell, generate};

/// Print a completion script for a shell
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter completions bash > ~/.local/share/bash-completion/completions/patter\n  \
                        patter completions zsh > ~/.zfunc/_patter\n  \
                        patter completions fish > ~/.config/fish/completions/patter.fish")]
pub(crate) struct Completions {
    /// Shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    /// Prints the script for a program.
    pub(crate) fn print(&self, mut program: clap::Command) -> CommandResult {
        let mut script = Vec::new();
        let name = program.get_name().to_owned();
        generate(self.shell, &mut program, name, &mut script);
        ui::print(&String::from_utf8_lossy(&script))?;
        Ok(Outcome::Success)
    }
}
