//! `patter man`: manual pages.

use crate::error::{CommandResult, Outcome};
use crate::file::unwritable;
use crate::ui;
use clap::Args;
use std::path::PathBuf;

/// Print the manual page, or write the pages of all commands to a folder
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter man | man -l -\n  \
                        patter man --dir ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// Write the pages of all commands to this folder, which is created if needed
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

impl Man {
    /// Prints or writes the pages of a program.
    pub(crate) fn print(&self, program: clap::Command) -> CommandResult {
        match &self.dir {
            None => {
                let mut page = Vec::new();
                clap_mangen::Man::new(program).render(&mut page)?;
                ui::print(&String::from_utf8_lossy(&page))?;
            }
            Some(folder) => {
                std::fs::create_dir_all(folder)
                    .and_then(|()| clap_mangen::generate_to(program, folder))
                    .map_err(|error| unwritable(folder, &error))?;
                ui::status(&format!("wrote the manual pages to {}", folder.display()))?;
            }
        }
        Ok(Outcome::Success)
    }
}
