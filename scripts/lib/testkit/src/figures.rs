//! Benchmark figures, kept in a file: for each question, the names of its rows and the measured values.

use std::fmt::Write as _;
use std::path::PathBuf;

/// The figures of one run.
#[derive(Debug, Default)]
pub struct Figures {
    file: Option<PathBuf>,
    /// In the order in which they were noted.
    questions: Vec<(String, Vec<(String, f64)>)>,
}

impl Figures {
    /// Figures for the file after `--figures`, if given; and the other arguments, without cargo's own.
    #[must_use]
    pub fn from_arguments() -> (Vec<String>, Self) {
        let (mut others, mut file) = (Vec::new(), None);
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match &*argument {
                "--figures" => file = arguments.next().map(PathBuf::from),
                _ if argument.starts_with("--") => {}
                _ => others.push(argument),
            }
        }
        let questions = Vec::new();
        (others, Self { file, questions })
    }

    /// Notes a measured value, in the unit that the question names.
    pub fn note(&mut self, question: &str, row: &str, figure: f64) {
        let known = self.questions.iter().position(|it| it.0 == question);
        let at = known.unwrap_or_else(|| {
            self.questions.push((question.to_owned(), Vec::new()));
            self.questions.len() - 1
        });
        self.questions[at].1.push((row.to_owned(), figure));
    }

    /// Writes the figures as JSON, if a file was given.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn write(&self) {
        let Some(file) = &self.file else { return };
        let mut text = String::from("{\n");
        for (at, (question, rows)) in self.questions.iter().enumerate() {
            let comma = if at > 0 { ",\n" } else { "" };
            let _ = write!(text, "{comma}  {question:?}: {{");
            for (at, (row, figure)) in rows.iter().enumerate() {
                let comma = if at > 0 { "," } else { "" };
                let _ = write!(text, "{comma}\n    {row:?}: {figure:.3}");
            }
            text.push_str("\n  }");
        }
        text.push_str("\n}\n");
        std::fs::write(file, text).expect("the figures can be written");
    }
}
