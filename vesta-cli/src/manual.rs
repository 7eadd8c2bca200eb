//! The manual and the completions, generated from the command lines.

use std::io;
use std::path::Path;

use clap_complete::Shell;
use vesta_boot::{Error, Role};

use crate::cli::tree;
use crate::output::{print, say, written};
use crate::{Answer, Done};

pub(crate) fn completions(shell: Shell) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut tree(), "vesta", &mut script);
    print(&String::from_utf8_lossy(&script))
}

pub(crate) fn man(folder: Option<&Path>) -> Done {
    match folder {
        None => written(clap_mangen::Man::new(tree()).render(&mut io::stdout()))?,
        Some(folder) => {
            let write = || {
                std::fs::create_dir_all(folder)?;
                clap_mangen::generate_to(tree(), folder)?;
                // The servers that have their own programs.
                [Role::Rest, Role::Server].into_iter().try_for_each(|role| {
                    let command = vesta_boot::command(role).name(role.name());
                    clap_mangen::Man::new(command).generate_to(folder).map(drop)
                })
            };
            write().map_err(|error: io::Error| {
                Error::setting(format!("cannot write into {}: {error}", folder.display()))
            })?;
            say(&format!("wrote the manual into {}", folder.display()));
        }
    }
    Ok(Answer::Yes)
}
