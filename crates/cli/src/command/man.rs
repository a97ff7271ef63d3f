//! `patter man`: manual pages.

use super::Command;
use crate::cli::Cli;
use crate::error::{CommandResult, Outcome};
use crate::file::unwritable;
use crate::ui;
use clap::{Args, CommandFactory};
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

impl Command for Man {
    fn run(&self) -> CommandResult {
        match &self.dir {
            None => {
                let mut page = Vec::new();
                clap_mangen::Man::new(Cli::command()).render(&mut page)?;
                ui::print_raw(&String::from_utf8_lossy(&page))?;
            }
            Some(folder) => {
                std::fs::create_dir_all(folder)
                    .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
                    .map_err(|error| unwritable(folder, &error))?;
                ui::status(&format!("wrote the manual pages to {}", folder.display()))?;
            }
        }
        Ok(Outcome::Success)
    }
}
