//! The manual and the completions, generated from the command lines.

use std::io;
use std::path::Path;

use clap_complete::Shell;
use vesta_boot::Error;

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
                clap_mangen::generate_to(tree(), folder)
            };
            write().map_err(|error: io::Error| {
                Error::setting(format!("cannot write into {}: {error}", folder.display()))
            })?;
            say(&format!("wrote the manual into {}", folder.display()));
        }
    }
    Ok(Answer::Yes)
}
